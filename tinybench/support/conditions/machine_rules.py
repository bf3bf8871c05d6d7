"""The rules of the machine check. Each states which values are fine, why they matter, and how to fix a problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tinybench.support.basics.numbers import number_of
from tinybench.support.basics.result_text import scale_unit
from tinybench.support.conditions.environment_variables import RECORDED
from tinybench.support.conditions.library_kernels import slower_kernels
from tinybench.support.conditions.linux_conditions import linux_rules
from tinybench.support.conditions.rule import ROUNDS, Rule, listed, share_text

__all__ = ["Rule", "rules_for"]


def rules_for(facts: Mapping[str, Any]) -> list[Rule]:
    """Return the rules for a machine, with commands for its operating system. Any fact may be missing."""
    rules = [*_share(facts), *_disturbances(facts), *_pace(facts), *_process(facts)]
    if facts.get("system") == "Linux":
        rules += linux_rules(facts)
    if facts.get("system") == "Darwin":
        rules += _macos()
    return rules


def _share(facts: Mapping[str, Any]) -> list[Rule]:
    """Return the rules for the resources granted to this process: cores, quota and threads."""
    cores, container = facts.get("cores") or 1, facts.get("container")
    granted = facts.get("granted") or cores
    least = max(1, int(granted))
    more = {
        "docker": "docker update --cpus=N CONTAINER, from outside",
        "podman": "podman update --cpus=N CONTAINER, from outside",
        "kubernetes": "a limit of whole processors, equal to the request, in the pod's resources",
    }.get(container or "", "sudo systemctl set-property UNIT CPUQuota=, for the unit that systemd-cgls shows")
    return [
        Rule(
            "cores",
            "cores_online",
            lambda online: online > 1,
            lambda online: f"{cores} of {online}" if online != cores else f"{online}",
            "whatever else runs, the system too, stops what is measured",
            f"a machine with two cores or more; or {ROUNDS}",
        ),
        Rule(
            "quota",
            "granted",
            lambda granted: granted >= cores,
            lambda granted: (
                f"{granted:.3g} of {number_of(cores, 'core')} granted"
                if granted < cores
                else "no limit below the cores"
            ),
            "when its share is used up, the kernel stops the group until the next period begins, often 0.1 s later",
            f"OMP_NUM_THREADS={least}, set before Python starts; or {more}",
        ),
        Rule(
            "stopped",
            "stopped",
            lambda share: share == 0,
            lambda share: f"in {share_text(share)} of the periods just now" if share else "not just now",
            "the group had used up its quota and stood still: what was measured meanwhile holds the wait",
            f"fewer threads or a larger quota: {more}",
        ),
        Rule(
            "threads",
            "threads",
            lambda threads: threads <= max(1, granted),
            lambda threads: f"up to {threads} in linear algebra, on {number_of(f'{granted:.3g}', 'core')}",
            "with more threads than cores they wait for one another, and times can be many times as long",
            f"OMP_NUM_THREADS={least}, set before Python starts",
        ),
    ]


def _disturbances(facts: Mapping[str, Any]) -> list[Rule]:
    """Return the rules for current disturbances: the load of other processes, and battery use."""
    cores = facts.get("cores_online") or 1
    shows = {"Darwin": "top -o cpu", "Windows": "Task Manager"}.get(facts.get("system", ""), "top")
    return [
        Rule(
            "load",
            "load",
            lambda share: share <= 0.2,
            lambda share: f"others keep {share * cores:.1f} of {number_of(cores, 'core')} busy",
            "they take cores, caches and the power for a high clock rate",
            f"look with {shows}, and end what need not run; or {ROUNDS}",
        ),
        Rule(
            "battery",
            "battery",
            lambda on_battery: not on_battery,
            lambda on_battery: "in use" if on_battery else "not in use",
            "to save it, the system lowers the clock rate, and more as it empties",
            "plug it in",
        ),
    ]


def _pace(facts: Mapping[str, Any]) -> list[Rule]:
    """Return the rules for core speed: kinds of cores, throttling and, except on Linux, the power plan."""
    kinds = facts.get("kinds") or [[]]
    fast = {
        "Linux": f"taskset -c {listed(kinds[-1])} python …, one kind only",
        "Darwin": f"no taskpolicy -b and no background service, which keep to the slow ones; or {ROUNDS}",
        "Windows": "start /affinity MASK python …, one kind only",
    }
    return [
        Rule(
            "kinds of cores",
            "kinds",
            lambda kinds: len(kinds) < 2,
            lambda kinds: f"{len(kinds)}" + (f": {' and '.join(map(listed, kinds[::-1]))}" if len(kinds) > 1 else ""),
            "on another kind of core the same call takes another time, and the system moves it at will",
            fast.get(facts.get("system", ""), ROUNDS),
        ),
        Rule(
            "slowed",
            "capped",
            lambda capped: not capped,
            lambda capped: "by heat or for want of voltage" if capped else "not just now",
            "the processor is slowed down: times are longer than what it can do, and change as it cools",
            f"let it cool, check fan and power supply; or {ROUNDS}",
        ),
        Rule(
            "power plan",
            "plan",
            lambda plan: plan not in ("low power mode", "power saver"),
            lambda plan: plan,
            "it keeps the clock rate low",
            "sudo pmset -a lowpowermode 0"
            if facts.get("system") == "Darwin"
            else "powercfg /setactive SCHEME_MIN, which is high performance",
        ),
    ][: 2 if facts.get("system") == "Linux" else 3]


def _steps(step: float) -> str:
    factor, unit = scale_unit(step, "s")
    return f"steps of {step / factor:.3g} {unit}"


def _process(facts: Mapping[str, Any]) -> list[Rule]:
    """Return the rules for this process: kernels, environment variables, priority, Python and clock."""
    settings = facts.get("settings") or {}
    return [
        _kernels(facts),
        Rule(
            "instructions",
            "limits",
            lambda limits: not limits,
            lambda limits: ", ".join(f"{name}={settings.get(name, '')}" for name in limits) or "none is forbidden",
            "libraries do not use instructions that the processor may have, so they can be slower",
            f"unset {' '.join(facts.get('limits') or ())}, before Python starts",
        ),
        Rule(
            RECORDED,
            "settings",
            lambda _: True,
            lambda settings: ", ".join(f"{name}={value}" for name, value in settings.items()) or "no variable set",
            "",
            "",
        ),
        Rule(
            "spinning",
            "spinning",
            lambda settings: not settings,
            lambda settings: ", ".join(settings) or "no thread is told to",
            "threads that wait keep their cores busy, beside whatever is measured next",
            f"unset {' '.join(setting.partition('=')[0] for setting in facts.get('spinning') or ())}",
        ),
        Rule(
            "priority",
            "priority",
            lambda low: not low,
            lambda low: low or "usual",
            "the system runs others first",
            "start it without nice, or from a shell of the usual priority",
        ),
        Rule(
            "Python",
            "python",
            lambda burdens: not burdens,
            lambda burdens: ", ".join(burdens) or "nothing slows it down",
            "each call and allocation costs more than it does for users",
            "a release build of Python, without debugger, coverage, tracemalloc and -X dev",
        ),
        Rule(
            "clock",
            "clock_step",
            lambda step: step <= 1e-6,
            _steps,
            "what is shorter than its step reads as 0 or as one step",
            "measure more calls at once: calibrate_loops of tinybench.timer",
        ),
    ]


def _kernels(facts: Mapping[str, Any]) -> Rule:
    """Return the rule for the kernels of the linear algebra libraries."""
    settings, flags = facts.get("settings") or {}, facts.get("flags") or ()
    slower = slower_kernels(facts.get("blas") or (), flags)
    asked = [name for name in ("OPENBLAS_CORETYPE", "BLIS_ARCH_TYPE") if name in settings]
    left_out = next(iter(slower.values()), "")
    return Rule(
        "kernel",
        "blas",
        lambda libraries: not slower_kernels(libraries, flags),
        lambda libraries: ", ".join(map(str, libraries)),
        f"the kernel leaves out {left_out}, which this processor has: a matrix product can take twice as long (on some "
        "processors it takes no longer), and its times cannot be compared with those of another kernel",
        f"unset {' '.join(asked)}, before Python starts"
        if asked
        else "a NumPy and a SciPy from pip or conda-forge, whose OpenBLAS chooses its kernel by the processor",
    )


def _macos() -> list[Rule]:
    """Return the rules that apply to macOS only."""
    return [
        Rule(
            "Rosetta",
            "translated",
            lambda translated: not translated,
            lambda translated: "translates this Python" if translated else "not in use",
            "each instruction of an Intel program is translated: it is slower, and no AVX is seen",
            "a Python for arm64: arch -arm64 python …, or install one (file $(which python) says what it is)",
        )
    ]
