"""Kernels and variables that change times or numbers: recorded with each result, and told where results differ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinybench.comparison import compare, regression_gate
from tinybench.result import BenchmarkResult
from tinybench.shell.comparison_sessions import Measured, SideProcess
from tinybench.shell.gate_run import remarks
from tinybench.shell.gate_targets import Target
from tinybench.support.comparisons.stored_results import condition_changes, stored_conditions
from tinybench.support.conditions.environment_variables import (
    HARMLESS,
    conditions_of_settings,
    differing,
    read_settings,
)
from tinybench.support.conditions.library_kernels import loaded_blas, read_pools, unused_instructions
from tinybench.tools.history.changed_conditions import conditions_over_time
from tinybench.tools.history.entry import entry_of
from tinybench.tools.history.series import Point

AVX2, AVX_512 = (
    {"avx", "avx2", "fma"},
    {"avx", "avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd"},
)
SCIPYS = {"user_api": "blas", "internal_api": "openblas", "version": "0.3.30", "architecture": "Haswell", "num_threads": 2, "filepath": "/e/site-packages/scipy.libs/libscipy_openblas-1.so"}  # fmt: skip
NUMPYS = SCIPYS | {
    "version": "0.3.31",
    "architecture": "SkylakeX",
    "filepath": "C:\\e\\site-packages\\numpy.libs\\libscipy_openblas64_-2.dll",
}
MEASURE = """
import json, sys, numpy as np, tinybench as tb
x = np.ones((64, 64), dtype=np.float32)
print(json.dumps(tb.measure_latency(lambda x: x @ x, x).to_dict()))
"""


def measured(**variables: str) -> BenchmarkResult:
    """Return a result of a fresh process that is started with these variables."""
    done = subprocess.run([sys.executable, "-c", MEASURE], env=os.environ | variables, capture_output=True, text=True, check=True)  # fmt: skip
    return BenchmarkResult.from_dict(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("kernel", "flags", "left_out"),
    [
        ("Haswell", AVX_512, "AVX-512"), ("Zen", AVX_512, "AVX-512"), ("SkylakeX", AVX_512, ""), ("Cooperlake", AVX_512, ""),
        ("SapphireRapids", AVX_512, ""), ("Haswell", AVX2, ""), ("Zen", AVX2, ""), ("Excavator", AVX2, ""),
        ("Sandybridge", AVX2, "AVX2"), ("Sandybridge", {"avx"}, ""), ("Nehalem", {"avx"}, "AVX"), ("Nehalem", set(), ""),
        ("Prescott", AVX_512, "AVX-512"), ("Katmai", AVX2, "AVX2"), ("generic", AVX2, "AVX2"), ("zen3", AVX_512, "AVX-512"),
        ("Haswell", {"avx", "avx2", "fma", "avx512f", "avx512cd"}, ""),  # Knights Landing: no kernels of SkylakeX there
        ("neoversen1", {"asimd"}, ""), ("armv8", {"asimd", "sve"}, "SVE"), ("neoversev1", {"asimd", "sve"}, ""), ("generic", {"asimd"}, ""),
        ("POWER9", set(), ""), ("unheard of", AVX_512, ""), ("", AVX_512, ""),
    ],
)  # fmt: skip
def test_what_a_kernel_leaves_out(kernel: str, flags: set[str], left_out: str) -> None:
    assert unused_instructions(kernel, flags) == left_out


@pytest.mark.parametrize("pools", [[SCIPYS, NUMPYS], [NUMPYS, SCIPYS]])
def test_libraries_are_told_apart_whichever_was_loaded_first(pools: list[dict[str, Any]]) -> None:
    openmp = {
        "user_api": "openmp",
        "internal_api": "openmp",
        "version": None,
        "num_threads": 4,
        "filepath": "/libgomp.so",
    }
    found = read_pools([*pools, openmp, {key: SCIPYS[key] for key in SCIPYS if key != "architecture"} | {"filepath": "/usr/lib/libmkl_rt.so.2"}])  # fmt: skip
    assert [(blas.package, blas.name, blas.kernel) for blas in found] == [
        ("numpy", "openblas 0.3.31", "SkylakeX"),
        ("system", "openblas 0.3.30", ""),
        ("scipy", "openblas 0.3.30", "Haswell"),
    ]


def test_numpys_library_is_named_although_scipys_was_loaded_first() -> None:
    """scikit-learn loads SciPy's library before NumPy's."""
    code = (
        "import sklearn.linear_model, json, tinybench.benchmark as b; print(json.dumps(b.system_info()['conditions']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found, alone = json.loads(done.stdout), {blas.package: blas for blas in loaded_blas() or ()}
    if "numpy" in alone:  # elsewhere it may be Accelerate, or one that all packages share
        assert (found["BLAS"], found["BLAS kernel"]) == (alone["numpy"].name, alone["numpy"].kernel)
        assert "BLAS kernel of scipy" in found


def test_variables_that_count() -> None:
    odd = {
        "OPENBLAS_CORETYPE": "Haswell",
        "MKL_CBWR": "AVX2",
        "NPY_DISABLE_CPU_FEATURES": "AVX2",
        "PYTHONMALLOC": "debug",
    }
    others = {"LANG": "C", "PATH": "/bin", "PYTHONPATH": "x", "OMP_NUM_THREADS": "", **dict.fromkeys(HARMLESS, "1")}
    assert read_settings(odd | others) == odd


def test_a_variable_that_is_missing_in_a_record_was_unset_if_the_record_lists_its_variables() -> None:
    haswell, plain = conditions_of_settings({"OPENBLAS_CORETYPE": "Haswell"}), conditions_of_settings({})
    assert differing(haswell, plain) == {"OPENBLAS_CORETYPE (environment)": ("Haswell", "unset")}
    assert differing(plain, haswell) == {"OPENBLAS_CORETYPE (environment)": ("unset", "Haswell")}
    assert differing({"OMP_NUM_THREADS (environment)": "1"}, {}) == {}, (
        "an earlier version recorded those that were set"
    )


def test_results_of_different_kernels_do_not_compare_without_a_word() -> None:
    plain, older = measured(), measured(OPENBLAS_CORETYPE="Nehalem")
    name = "OPENBLAS_CORETYPE (environment)"
    assert stored_conditions(older.metadata)[name] == "Nehalem"
    kernels = [stored_conditions(result.metadata).get("BLAS kernel") for result in (plain, older)]
    differs = kernels[0] != kernels[1]  # not with Accelerate, or on a processor that knows no other
    told = f"BLAS kernel {kernels[0]} → {kernels[1]}"
    assert (told in compare(plain, older).caution) == differs
    assert f"{name} unset → Nehalem" in compare(plain, older).caution
    gate = regression_gate(plain, older)
    assert gate.verdict.startswith("cannot tell: ")
    assert "differ" in gate.verdict
    assert f"{name}: unset → Nehalem" in gate.differences
    assert f"'{name}'" in gate.verdict.partition("in a shell")[2], "as a shell takes it"
    if kernels[1] == "Nehalem" and unused_instructions("Nehalem", AVX2):
        assert any(caution.startswith("kernel: Nehalem") for caution in older.cautions)


@pytest.mark.parametrize("quiet", ["PYTHONHASHSEED", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"])
def test_variables_of_python_that_change_no_pace_are_told_and_stop_no_gate(quiet: str) -> None:
    def result(settings: dict[str, str]) -> BenchmarkResult:
        conditions = conditions_of_settings(settings)
        values = np.random.default_rng(0).uniform(1.0, 1.1, 40).tolist()
        return BenchmarkResult(
            "latency", values, {"sessions": list(range(40)), "system": {"conditions": conditions}}, unit="s"
        )

    gate = regression_gate(result({quiet: "1"}), result({}))
    assert gate.verdict == "passes"
    assert gate.differences == (f"{quiet} (environment): 1 → unset",)
    assert regression_gate(result({"PYTHONMALLOC": "debug"}), result({})).verdict.startswith(
        "cannot tell: PYTHONMALLOC"
    )


def older(blas: str, *pools: str) -> BenchmarkResult:
    """Return a result as earlier versions saved it."""
    system = {
        "blas": "scipy-openblas 0.3.31",
        "cpu": "X",
        "cores": 2,
        "threads": {"pools": list(pools)},
        "conditions": {"BLAS": blas, "BLAS threads": "1"},
    }
    return BenchmarkResult(
        "latency", [1.0, 1.0], {"system": system, "machine": {"verdict": "ok", "warnings": []}}, unit="s"
    )


def test_results_of_earlier_versions_compare_as_far_as_they_state_their_conditions() -> None:
    numpys, scipys = "openblas 0.3.31", "openblas 0.3.30"
    one = older(numpys, f"{numpys}: 1")
    first, second = older(numpys, f"{numpys}: 1", f"{scipys}: 1"), older(scipys, f"{scipys}: 1", f"{numpys}: 1")
    assert condition_changes(first, second) == {}, "which of the two was named is chance"
    assert condition_changes(one, older("openblas 0.4", "openblas 0.4: 1", "openmp None: 1")) == {
        "BLAS": f"{numpys} → openblas 0.4"
    }
    now = measured()
    assert set(condition_changes(one, now)) <= {"BLAS", "machine check"}
    assert "other conditions" not in compare(one, now).caution


def test_a_history_tells_each_change_of_a_variable_once() -> None:
    def point(day: int, settings: dict[str, str]) -> Point:
        system = {"cpu": "X", "cores": 2, "conditions": conditions_of_settings(settings)}
        result = BenchmarkResult("latency", [1.0], {"system": system}, unit="s")
        return Point(f"c{day}", "", 1.0, 1.0, 1.0, (entry_of(result, commit=f"c{day}"),))

    haswell = {"OPENBLAS_CORETYPE": "Haswell"}
    points = [point(day, settings) for day, settings in enumerate([haswell, {}, {}, haswell, haswell])]
    found = [(change.commit, change.kind, change.before, change.after) for change in conditions_over_time(points)]
    assert found == [("c1", "library", "Haswell", "unset"), ("c3", "library", "unset", "Haswell")]


def test_nothing_is_loaded_to_ask_which_kernels_run(tmp_path: Path) -> None:
    code = (
        "import sys; from tinybench.support.conditions import library_kernels; from tinybench.support.rounds import machine_state;"
        "machine_state.library_conditions();"
        "print(sorted({'numpy', 'scipy'} & set(sys.modules)), library_kernels.loaded_blas())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]
    (tmp_path / "threadpoolctl.py").write_text("raise ImportError\n")
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.split() == ["[]", "None"]


def test_a_report_of_results_of_two_sessions_names_what_differs() -> None:
    from tinybench.support.reports.sections import mixed_conditions

    def result(settings: dict[str, str]) -> BenchmarkResult:
        return BenchmarkResult("latency", [1.0], {"system": {"conditions": conditions_of_settings(settings)}}, unit="s")

    plain, haswell = result({}), result({"OPENBLAS_CORETYPE": "Haswell"})
    assert mixed_conditions([plain, plain]) == mixed_conditions([]) == []
    (told,) = mixed_conditions([plain, haswell, haswell])
    assert "OPENBLAS_CORETYPE (environment) unset → Haswell" in told


def test_each_side_of_a_gate_tells_its_own_conditions(tmp_path: Path) -> None:
    """Code that sets a variable before it imports NumPy runs other kernels than the process that measures it."""
    start = "import numpy as np\nX = np.ones((8, 8))\ndef product():\n    return X @ X\n"
    (tmp_path / "plain.py").write_text(start)
    (tmp_path / "older.py").write_text(f"import os\nos.environ['OPENBLAS_CORETYPE'] = 'Nehalem'\n{start}")
    targets = {"old": Target("plain", "plain:product", tmp_path), "new": Target("older", "older:product", tmp_path)}
    measured = Measured({name: [1.0, 1.0] for name in targets}, [0, 0])
    for name, target in targets.items():
        side = SideProcess(name, target)
        try:
            side.ask("load", target.task())
            measured.conditions[name] = side.ask("conditions")
        finally:
            side.child.close()
    (told,) = [remark for remark in remarks(targets, measured) if "conditions" in remark]
    assert "OPENBLAS_CORETYPE (environment) unset → Nehalem" in told
    results = measured.results(targets)
    assert stored_conditions(results["new"].metadata)["OPENBLAS_CORETYPE (environment)"] == "Nehalem"
    assert "OPENBLAS_CORETYPE (environment) unset → Nehalem" in compare(results["old"], results["new"]).caution
