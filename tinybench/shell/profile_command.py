"""The `tinybench profile` command: run a script and show where its time went."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tinybench.shell.model_profile_command import profile_model, run_for
from tinybench.shell.options import FILE, Command, given, some_time, with_options
from tinybench.support.profiling.flames import save_flame, save_perfetto, save_speedscope
from tinybench.support.profiling.stacks import Profile, collapsed
from tinybench.support.rounds.machine_state import machine_notes

if TYPE_CHECKING:
    from tinybench.sampler import Sample

CHILD = Path(__file__).with_name("profiled_script.py")
Saver = Callable[[Profile, Path], Any]
FOLDER: dict[str, Saver] = {
    "flame.html": save_flame,
    "speedscope.json": save_speedscope,
    "perfetto.json": save_perfetto,
    "collapsed.txt": lambda profile, file: file.write_text(collapsed(profile.samples), encoding="utf-8"),
    "shares.csv": lambda profile, file: file.write_text(profile.shares.csv() + "\n", encoding="utf-8"),
}
PROFILING = [
    click.option("-m", "--module", is_flag=True, help="SCRIPT is the name of a module, as for python -m."),
    click.option("--interval", type=some_time, default="10ms", metavar="TIME", help="Average time between samples."),
    click.option("--out", type=FILE, metavar="FOLDER", help="Write the profile in every format, and the table as CSV."),
    click.option("--flame", type=FILE, metavar="FILE", help="Write a flame graph: .svg, or .html with the table."),
    click.option("--speedscope", type=FILE, metavar="FILE", help="Write a profile for https://www.speedscope.app."),
    click.option("--perfetto", type=FILE, metavar="FILE", help="Write a profile for https://ui.perfetto.dev."),
]


@dataclass
class ScriptRun:
    """The record of a script's process: its exit code, its samples, and metadata such as how the script ended."""

    code: int
    samples: list[Sample] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def ended(self) -> str:
        """A sentence on how the script failed, or an empty string if it succeeded."""
        if "ended" in self.about and self.code >= 0:
            return str(self.about["ended"])
        if self.code < 0:
            with contextlib.suppress(ValueError):
                return f"the script was killed by {signal.Signals(-self.code).name}"
            return f"the script was killed by signal {-self.code}"
        return f"the script ended its process at once, with exit code {self.code} (os._exit, or a crash)"

    def notes(self) -> Iterator[str]:
        """Yield remarks on what the profile does not cover."""
        if self.ended:
            yield f"{self.ended}; the profile is of what ran until then"
        if forks := self.about.get("forks"):
            yield f"the script forked {forks} {'processes' if forks > 1 else 'process'}, not looked at"
        if self.about.get("threads"):
            yield "the script had other threads; only its main thread was looked at"


class ScriptCommand(Command):
    """A command that passes arguments to a script.

    If an option of the command itself is among these arguments, it is refused unless it follows ``--``.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Raise UsageError for an option of this command among the arguments of the script."""
        words = list(args)
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name in _options_of(profile_model):
                raise click.UsageError(
                    f"{error.option_name} is an option for a model, but comes before the file: write it after the "
                    "file, as in tinybench profile model.onnx --batch 64"
                ) from None
            raise
        script, passed = ctx.params["script"], list(ctx.params["arguments"])
        if is_model(script, ctx.params["module"]):
            return rest
        end = passed.index("--") if "--" in passed else 0 if "--" in words else len(passed)
        for word in passed[:end]:
            self._refuse(word.partition("=")[0], script)
        ctx.params["arguments"] = (*passed[:end], *passed[end:][passed[end : end + 1] == ["--"] :])
        return rest

    def _refuse(self, word: str, script: str) -> None:
        option = _options_of(self).get(word)
        if option is None:
            return
        value = f" {option.metavar}" if option.metavar else ""
        raise click.UsageError(
            f"{word} comes after {script}, where arguments go to the script: write an option of tinybench before it, "
            f"tinybench profile {word}{value} {script}, and an option of the script after --, "
            f"tinybench profile {script} -- {word}{value}"
        )


def _options_of(command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command by spelling, --help included."""
    context = click.Context(command, help_option_names=["-h", "--help"])
    options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    return {spelling: each for each in options for spelling in each.opts}


def is_model(script: str, module: bool) -> bool:
    """Return whether the file to profile is a model, not a script."""
    return not module and script.endswith(".onnx")


@click.command(cls=ScriptCommand, name="profile", context_settings={"allow_interspersed_args": False})
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[--] [ARGS]...")
@with_options(PROFILING)
def profile_script(
    script: str, arguments: Sequence[str], module: bool, interval: float, out: Path | None, **files: Path | None
) -> int:
    """Show where the time of a Python script goes.

    The command runs the script as `python SCRIPT ARGS…` would, and samples its main thread, even while this thread
    waits. The table goes to standard error, so that the script's own output is unchanged. The exit code is that of the
    script. Options of this command come before SCRIPT. After --, all arguments go to the script.

    For an ONNX model in place of the script, see `tinybench profile model.onnx --help`.
    """
    if is_model(script, module):
        if options := sorted(given(click.get_current_context()).values()):
            raise click.UsageError(
                f"{', '.join(options)}: only for a script; options for a model come after the file, such as --figure"
            )
        return run_for(script, arguments)
    if not module and not Path(script).exists():
        raise FileNotFoundError(f"{script}: no such file; a module takes -m: tinybench profile -m {script}")
    wanted = _wanted(out, files)
    state = machine_notes().get("machine", {})
    run = look_at([script, *arguments], module, interval)
    seen = Profile(run.samples, run.about.get("how", f"one look every {interval * 1e3:g} ms, until it ended"))
    if run.samples:
        print(seen, file=sys.stderr)
    else:
        ran = f"{run.about.get('seconds', 0) * 1e3:.2g} ms of the script"
        print(f"tinybench: nothing was seen in {ran}: give a smaller --interval, or more to do", file=sys.stderr)
    for note in [*run.notes(), *(f"this machine: {warning}" for warning in state.get("warnings", []))]:
        print(f"tinybench: {note}", file=sys.stderr)
    for file, save in wanted.items():
        save(seen, file)
        print(f"tinybench: wrote {file}", file=sys.stderr)
    return run.code if run.code >= 0 else 128 - run.code


def _wanted(out: Path | None, files: dict[str, Path | None]) -> dict[Path, Saver]:
    """Return the output files with the functions that write them. Raise FileNotFoundError if a folder is missing."""
    savers: dict[str, Saver] = {"flame": save_flame, "speedscope": save_speedscope, "perfetto": save_perfetto}
    wanted = {file: savers[name] for name, file in files.items() if file is not None}
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        wanted |= {out / name: save for name, save in FOLDER.items()}
    if missing := [file for file in wanted if not file.parent.is_dir()]:
        folders = ", ".join(dict.fromkeys(str(file.parent) for file in missing))
        raise FileNotFoundError(f"{', '.join(map(str, missing))}: there is no folder {folders}")
    return wanted


def look_at(words: Sequence[str], module: bool, interval: float) -> ScriptRun:
    """Run a script in a subprocess that samples the script, and return the record."""
    handle, name = tempfile.mkstemp(prefix="tinybench-profile-", suffix=".jsonl")
    os.close(handle)
    file = Path(name)
    command = [sys.executable, str(CHILD), name, str(interval), "module" if module else "script", *words]
    try:
        with subprocess.Popen(command) as process, _passing_signals(process):
            code = process.wait()
        return read(file, code)
    finally:
        file.unlink()


@contextlib.contextmanager
def _passing_signals(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Ignore Ctrl-C, which the script receives from the terminal, and forward SIGTERM to the script."""
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None),
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda *_: process.terminate()),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def read(file: Path, code: int) -> ScriptRun:
    """Return the record that a script's process wrote to a file. Ignore an incomplete last line."""
    from tinybench.sampler import Sample

    run, stacks = ScriptRun(code), list[tuple[str, ...]]()
    for text in file.read_text(encoding="utf-8").splitlines(keepends=True):
        if not text.endswith("\n"):
            break
        line = json.loads(text)
        if isinstance(line, list):
            run.samples.append(Sample(line[0], stacks[line[2]], line[1]))
        elif "stack" in line:
            stacks.append(tuple(line["stack"]))
        else:
            run.about |= line
    return run
