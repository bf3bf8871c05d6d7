"""The `tinybench` command: compare, measure, gate and study models from a shell."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinybench.result import BenchmarkResult

__all__ = ["main"]

OK, REGRESSION, UNDECIDED, WRONG = 0, 1, 2, 3

EXAMPLES = """examples:
  tinybench compare fp32.onnx int8.onnx --data digits.npz --batch 256
  tinybench compare app.models:small app.models:large --data rows.npy --seconds 10 --format markdown
  tinybench measure model.onnx --data digits.npz --save baseline.json
  tinybench gate baseline.json candidate.json --max-slowdown 5%
  tinybench run a.onnx b.onnx --data digits.npz --out study
  tinybench study app.models:classifier --data digits.npz --out hardware

A model is an .onnx file, a .joblib file of scikit-learn (loading one runs code from it), or module:function where the
function returns a model (anything with predict_proba, predict, forward, run or a call). Data is an .npy array of rows,
or an .npz with X and, for accuracy, y.

exit codes: 0 done or gate passed, 1 regression, 2 the gate cannot tell yet, 3 wrong use or bad input"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = _parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as exit_:  # argparse exits with 2, which means "undecided" here
        return WRONG if exit_.code else OK
    if options.command is None:
        parser.print_help(sys.stderr)
        return WRONG
    try:
        return int(options.command(options))
    except KeyboardInterrupt:
        print("tinybench: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `tinybench … | head`
        sys.stderr.close()
        return OK
    except (OSError, ValueError, TypeError) as error:
        print(f"tinybench: {error}", file=sys.stderr)
    except Exception as error:  # a model's own error: ONNX Runtime's share no base class
        print(f"tinybench: {type(error).__name__}: {error}", file=sys.stderr)
    return WRONG


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tinybench",
        description="Benchmarks of machine-learning inference that can be trusted.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(metavar="COMMAND")

    def add(name: str, function: object, summary: str, more: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=summary, description=f"{summary}. {more}")
        command.set_defaults(command=function)
        return command

    compare = add(
        "compare",
        _compare,
        "Which model is faster, by how much, how sure",
        "Models are timed in shuffled rounds, each round every model once, and compared pair by pair with the first.",
    )
    compare.add_argument("models", nargs="+", metavar="MODEL", help="two or more; the first is the baseline")
    measure = add(
        "measure",
        _measure,
        "Measure the latency of one model",
        "The median comes from 30 rounds spread over the time, the tail from single calls. The rounds are what --save "
        "writes, for a later `tinybench gate`.",
    )
    measure.add_argument("models", nargs=1, metavar="MODEL")
    for command in (compare, measure):
        _add_data(command)
        command.add_argument("--seconds", type=float, default=4.0, help="time for all rounds (default: 4)")
        command.add_argument(
            "--mode",
            choices=("as_served", "hot"),
            default="as_served",
            help="as_served: one call a round; hot: blocks of 5 ms with warm caches (default: as_served)",
        )
        command.add_argument("--seed", type=int, help="seed of the order of the rounds")
        command.add_argument("--save", type=Path, metavar="FILE", help="write every measurement as JSON")
        command.add_argument(
            "--format", choices=("table", "markdown", "csv", "json"), default="table", help="output (default: table)"
        )
    compare.add_argument("--margin", type=_share, default=0.0, help="a change that does not matter, such as 2%%")

    gate = add(
        "gate",
        _gate,
        "Has the candidate become slower than the baseline by more than allowed",
        "Exit code 0: no; 1: yes; 2: these measurements cannot tell, and how many would. For continuous integration.",
    )
    gate.add_argument("baseline", type=Path, help="a file written by --save, or by BenchmarkResult.to_dict()")
    gate.add_argument("candidate", type=Path)
    gate.add_argument("--max-slowdown", type=_share, default=0.05, help="such as 5%% (the default) or 0.05")
    gate.add_argument("--model", help="which model, where a file holds several")
    gate.add_argument("--allow", nargs="*", default=(), help="conditions that may differ, as the refusal names them")
    gate.add_argument("--format", choices=("table", "json"), default="table")

    run = add(
        "run",
        _run,
        "The full study: latency, throughput, accuracy, memory and energy, with a report",
        "Writes tables, figures, report.md and report.html; an interrupted study goes on with --resume.",
    )
    run.add_argument("models", nargs="+", metavar="MODEL")
    _add_data(run)
    run.add_argument("--out", type=Path, default=Path("benchmark_results"), help="default: benchmark_results")
    run.add_argument("--rounds", type=int, default=100, help="rounds of latency (default: 100)")
    run.add_argument("--resume", action="store_true", help="measure only what an interrupted study has left")
    _add_requirements(run)

    study = add(
        "study",
        _study,
        "Does INT8 pay for this classifier, on this machine",
        "One scikit-learn classifier as it is, in NumPy, in ONNX FP32 and in INT8 (dynamic, static, per channel), "
        "every gain with its interval. Writes hardware_tradeoffs.csv and hardware_tradeoffs_summary.json.",
    )
    study.add_argument(
        "model", nargs="?", metavar="MODEL", help="the fitted classifier (default: the course's network on digits)"
    )
    study.add_argument("--data", type=Path, metavar="FILE", help=".npz with X and y that the fit has not seen")
    study.add_argument("--out", type=Path, default=Path("hardware_study"), help="default: hardware_study")
    study.add_argument("--batches", type=int, nargs="+", default=(1, 32, 256), help="rows per call (default: 1 32 256)")
    study.add_argument("--rounds", type=int, default=25, help="rounds for each batch size (default: 25)")
    study.add_argument("--threads", type=int, default=1, help="threads of every engine (default: 1)")
    _add_requirements(study)

    add("system", _system, "The conditions of a measurement on this machine", "As every result records them.")
    return parser


def _add_data(command: argparse.ArgumentParser) -> None:
    command.add_argument("--data", type=Path, required=True, metavar="FILE", help=".npy, or .npz with X and perhaps y")
    command.add_argument("--batch", type=int, default=1, help="rows per call (default: 1)")
    command.add_argument("--threads", type=int, default=1, help="threads of an ONNX model (default: 1)")


def _add_requirements(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--requirements",
        type=Path,
        metavar="FILE",
        help="YAML with limits such as latency_p95_ms: 5 and accuracy_min: 0.9; the report then says who meets them",
    )


def _share(text: str) -> float:
    """Read 5% or 0.05."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no share; write 5% or 0.05") from None
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not from 0 up to 100 %; write 5% or 0.05")
    return share


def load_model(spec: str, threads: int = 1) -> Any:
    """Return the model that a file or ``module:function`` names.

    Raises
    ------
    ValueError, OSError, ImportError
        If there is none; the message says what to pass.
    """
    if spec.endswith(".onnx"):
        if not Path(spec).is_file():
            raise FileNotFoundError(f"{spec}: no such file")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        try:
            return onnxruntime.InferenceSession(spec, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's errors share no base class of their own
            raise ValueError(f"{spec} does not load: {str(error).splitlines()[0]}") from None
    if spec.endswith(".joblib"):
        import joblib  # type: ignore[import-untyped]

        return joblib.load(spec)
    module, colon, function = spec.partition(":")
    if not colon:
        raise ValueError(f"{spec!r} is neither an .onnx or .joblib file nor module:function")
    if "" not in sys.path:
        sys.path.insert(0, "")
    return getattr(importlib.import_module(module), function)()


def load_data(path: Path, batch: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return a batch, all rows, and the labels where there are any."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    with path.open("rb") as file:
        try:
            loaded = np.load(file, allow_pickle=False)
            arrays = {"X": loaded} if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded}
        except Exception as error:  # a broken zip file, pickled objects, or neither format
            raise ValueError(f"{path} is no .npy or .npz file of numbers: {error}") from None
    if "X" not in arrays:
        raise ValueError(f"{path} holds {', '.join(arrays)}; name the rows X, as np.savez(file, X=rows, y=labels) does")
    rows, labels = arrays["X"], arrays.get("y")
    if batch < 1:
        raise ValueError(f"--batch is {batch}; a call takes at least one row")
    if len(rows) == 0:
        raise ValueError(f"{path} holds no rows")
    return np.resize(rows, (batch, *rows.shape[1:])), rows, labels


def _models(options: argparse.Namespace) -> dict[str, Any]:
    names = [Path(spec).stem if spec.endswith((".onnx", ".joblib")) else spec for spec in options.models]
    if len(set(names)) < len(names):
        names = list(options.models)
    if len(set(names)) < len(names):
        raise ValueError("the same model is named twice; copy the file to compare a model with itself")
    return {name: load_model(spec, options.threads) for name, spec in zip(names, options.models, strict=True)}


def _keep(results: dict[str, BenchmarkResult], save: Path | None) -> None:
    """Add the record of conditions, and write the results where asked to."""
    from tinybench.benchmark import system_info

    system = system_info()
    for name, result in results.items():
        result.metadata |= {"model": name, "system": system}
    if save:
        content = {"results": {name: result.to_dict() for name, result in results.items()}}
        save.write_text(json.dumps(content), encoding="utf-8")


def _compare(options: argparse.Namespace) -> int:
    from tinybench.quick import comparison_table, measure_for

    if len(options.models) < 2:
        raise ValueError("compare takes two or more models; for one there is `tinybench measure`")
    batch, _, _ = load_data(options.data, options.batch)
    results = measure_for(_models(options), batch, options.seconds, mode=options.mode, seed=options.seed)
    _keep(results, options.save)
    _print_results(results, comparison_table(results, options.margin), options.format)
    return OK


def _measure(options: argparse.Namespace) -> int:
    from tinybench.latency import latency_summary, measure_session_latency
    from tinybench.quick import Table, measure_for
    from tinybench.result import scale_unit

    batch, _, _ = load_data(options.data, options.batch)
    [(name, model)] = _models(options).items()
    calls = measure_for({name: model}, batch, options.seconds / 3, mode=options.mode, seed=options.seed)[name]
    session = measure_session_latency(model, batch, rounds=30, seconds=options.seconds * 2 / 3, seed=options.seed)
    _keep({name: session}, options.save)
    summary = latency_summary(calls)
    factor, unit = scale_unit(session.median, "s")
    low, high = session.median_ci()
    numbers = {"median": (session.median, f"{low / factor:.4g} to {high / factor:.4g}")}
    for quantile in ("p90", "p95", "p99"):
        ends = summary["intervals"].get(quantile)
        reason = summary["reasons"].get(quantile, "")
        numbers[quantile] = summary[quantile], f"{ends[0] / factor:.4g} to {ends[1] / factor:.4g}" if ends else reason
    rows = [
        {"statistic": statistic, f"latency ({unit})": f"{value / factor:.4g}", "95 % interval": shown}
        for statistic, (value, shown) in numbers.items()
    ]
    length = session.metadata["session_seconds"]  # where the rounds take longer, more than was asked for
    caption = f"{name}: median of {session.count} rounds over {length:.3g} s, tail of {calls.count} calls"
    _print_results({name: session}, Table(rows, caption), options.format)
    return OK


def _print_results(results: dict[str, BenchmarkResult], table: Any, form: str) -> None:
    match form:
        case "json":
            print(json.dumps({name: result.to_dict() for name, result in results.items()}))
        case "markdown":
            print(table.markdown())
        case "csv":
            print(table.csv())
        case _:
            table.caption += f"; {_where(next(iter(results.values())))}"
            print(table)


def _where(result: BenchmarkResult) -> str:
    """Return the machine of a result, and how busy it was, in a few words."""
    system = result.metadata["system"]
    load = f", load {system['load_average'][0]:.1f}" if system["load_average"] else ""
    return f"{system['cpu']}, {system['cores']} cores{load}"


def load_result(path: Path, model: str | None = None) -> BenchmarkResult:
    """Return a saved result.

    Raises
    ------
    ValueError, OSError
        If the file holds none, or several and no model is named; the message has their names.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file; `tinybench measure … --save {path}` writes one") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is not JSON ({error}); `tinybench measure … --save {path}` writes such a file"
        ) from None
    results = data.get("results") if isinstance(data, dict) else None
    if results is None:
        results = {"": data} if isinstance(data, dict) else {}
    if model is not None and model not in results:
        raise ValueError(f"{path} has no model {model!r}; it has {', '.join(results)}")
    if model is None and len(results) != 1:
        raise ValueError(f"{path} holds {len(results)} models ({', '.join(results)}); choose with --model")
    try:
        return BenchmarkResult.from_dict(results[model] if model is not None else next(iter(results.values())))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} holds no result of tinybench: {error}") from None


def _gate(options: argparse.Namespace) -> int:
    from tinybench.comparison import regression_gate

    baseline = load_result(options.baseline, options.model)
    candidate = load_result(options.candidate, options.model)
    gate = regression_gate(baseline, candidate, options.max_slowdown, allow=options.allow)
    if options.format == "json":
        fields = {"verdict": gate.verdict, "slowdown": gate.slowdown, "interval": gate.interval, "needs": gate.needs}
        print(json.dumps(fields | {"max_slowdown": gate.max_slowdown}))
    else:
        print(gate)
    return {"passes": OK, "fails": REGRESSION}.get(gate.verdict, UNDECIDED)


def _labelled(options: argparse.Namespace, batch: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a batch, all rows and their labels."""
    first, rows, labels = load_data(options.data, batch)
    if labels is None:
        raise ValueError(f"{options.data} has no labels; accuracy needs y: np.savez(file, X=rows, y=labels)")
    return first, rows, labels


def _requirements(options: argparse.Namespace) -> Any:
    from tinybench.pareto import Requirements

    return Requirements.from_yaml(options.requirements) if options.requirements else None


def _run(options: argparse.Namespace) -> int:
    from tinybench.suite import BenchmarkSuite

    requirements = _requirements(options)
    batch, rows, labels = _labelled(options, options.batch)
    suite = BenchmarkSuite(_models(options), (rows, labels), options.out, inputs=batch, measurement_runs=options.rounds)
    suite.run_full_benchmark(resume=options.resume)
    print(suite.generate_report(requirements))
    print(f"tables, figures and report.html are in {options.out}")
    return OK


def _study(options: argparse.Namespace) -> int:
    from tinybench.course import case_study
    from tinybench.quantize import tradeoff_study

    requirements = _requirements(options)
    if options.model is None:
        if options.data is not None:
            raise ValueError("--data belongs to a model of yours; name it: tinybench study MODEL --data FILE")
        case = case_study("small")
        model, rows, labels = case.model, case.X, case.y
    else:
        if options.data is None:
            raise ValueError(f"on which data? tinybench study {options.model} --data FILE, an .npz with X and y")
        model = load_model(options.model)
        _, rows, labels = _labelled(options)
    study = tradeoff_study(
        model,
        rows,
        labels,
        batch_sizes=options.batches,
        rounds=options.rounds,
        threads=options.threads,
        requirements=requirements,
        out=options.out,
        progress=lambda line: print(line, file=sys.stderr),
    )
    print(study)
    print(f"the tables are in {options.out}")
    return OK


def _system(options: argparse.Namespace) -> int:
    from tinybench.benchmark import system_info

    print(json.dumps(system_info(), indent=1))
    return OK


if __name__ == "__main__":
    sys.exit(main())
