"""Rules of the machine check for facts that only Linux reports, such as clock rate, shared cores, and clock source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tinybench.support.basics.numbers import number_of
from tinybench.support.conditions.rule import ROUNDS, Rule, listed, share_text

SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit", "xen")
CPU = "/sys/devices/system/cpu"
Change = Callable[[Any, str], str]


def linux_rules(facts: Mapping[str, Any]) -> list[Rule]:
    """Return the rules for facts that only Linux reports."""
    where = "on the host: " if facts.get("container") else ""
    sudo = "" if facts.get("superuser") and not where else "sudo "

    def change(value: Any, file: str) -> str:
        return f"{where}echo {value} | {sudo}tee {file}"

    return [*_steady(facts, change), *_shared_parts(facts, change), *_machine(facts, change)]


def _steady(facts: Mapping[str, Any], change: Change) -> list[Rule]:
    """Return the rules for the steadiness of the clock rate: governor, turbo and heat."""
    driver = facts.get("driver") or "unknown driver"
    preference = facts.get("preference")
    file = facts.get("turbo_file", "")
    no_turbo = change(1 if file.endswith("no_turbo") else 0, f"{CPU}/{file}")

    def steady(governor: str) -> bool:
        # an autonomous processor sets its clock rate itself within ms; the governor "powersave" is then not slow
        if facts.get("autonomous"):
            return not preference or not {"power", "balance_power"} & set(preference.split(", "))
        return not {"powersave", "ondemand", "conservative"} & set(governor.split(", "))

    named = f", prefers {preference}" if preference else ""
    if facts.get("autonomous"):
        why = "told to prefer saving power, the processor raises its clock rate late, and not all the way"
        do = change("performance", f"{CPU}/cpu*/cpufreq/energy_performance_preference")
    else:
        why = {
            "powersave": "with this driver it holds the lowest clock rate",
            "ondemand": "it raises the clock rate some ms after work came, so the first calls after a pause are slower",
            "conservative": "it raises the clock rate step by step, so the first calls after a pause are slower",
        }.get(facts.get("governor") or "", "cores differ in how they choose their clock rate")
        do = change("performance", f"{CPU}/cpu*/cpufreq/scaling_governor")
    return [
        Rule("governor", "governor", steady, lambda governor: f"{governor} ({driver}{named})", why, do),
        Rule(
            "turbo",
            "turbo",
            lambda on: not on,
            lambda on: "on" if on else "off",
            "how much faster than its nominal rate the processor runs depends on heat and on what other cores do",
            f"{no_turbo}; or {ROUNDS}",
        ),
        Rule(
            "heat",
            "hot",
            lambda times: times == 0,
            lambda times: f"slowed down {times:.0f} times just now" if times else "not slowed down just now",
            "a processor that is too hot runs slower, and faster again when it has cooled",
            f"let it cool, check the fan; shorter runs with pauses; or {ROUNDS}",
        ),
    ]


def _shared_parts(facts: Mapping[str, Any], change: Change) -> list[Rule]:
    """Return the rules for shared resources: cores, memory, and processor time of a virtual machine."""
    cores, each, nodes = facts.get("cores") or 1, facts.get("one_each") or (), facts.get("nodes") or {}
    node, no_smt = next(iter(nodes), 0), change("off", f"{CPU}/smt/control")
    return [
        Rule(
            "SMT",
            "siblings",
            lambda siblings: siblings == 0,
            lambda siblings: (
                f"on: {number_of(cores, 'thread')} on {number_of(cores - siblings, 'core')}"
                if siblings
                else "no core is shared"
            ),
            "two threads on one core share its units: each is slower than alone, both together are not twice as fast",
            f"taskset -c {listed(each)} python …, one of each pair; or {no_smt}",
        ),
        Rule(
            "NUMA",
            "nodes",
            lambda nodes: len(nodes) == 1,
            lambda nodes: f"{len(nodes)} node{'s' if len(nodes) > 1 else ''}",
            "memory of another node takes longer, and the system may move a thread away from its memory",
            f"numactl --cpunodebind={node} --membind={node} python …",
        ),
        Rule(
            "waiting",
            "waited",
            lambda share: share <= 0.2,
            lambda share: f"something waited for a core in {share_text(share)} of the last 10 s",
            "more threads are ready to run than there are cores, so each stands still now and then",
            f"look with top, and end what need not run; fewer threads; or {ROUNDS}",
        ),
        Rule(
            "stolen",
            "stolen",
            lambda share: share <= 0.01,
            lambda share: f"the hypervisor took {share_text(share)} of the time just now",
            "these cores ran other virtual machines, while every clock here went on",
            f"another time, or an instance with cores of its own; or {ROUNDS}",
        ),
        Rule(
            "swapping",
            "swapped",
            lambda rate: rate <= 10,
            lambda rate: f"{rate:.0f} pages/s just now",
            "a page that comes from disk takes a thousand times as long as from memory",
            "look with top -o %MEM, and end what need not run; or a machine with more memory",
        ),
        Rule(
            "memory",
            "memory_waited",
            lambda share: share <= 0.01 and (facts.get("memory_left") is None or facts["memory_left"] >= 0.05),
            lambda share: (
                f"programs waited for it in {share_text(share)} of the last 10 s"
                + (f", {share_text(facts['memory_left'])} left" if facts.get("memory_left") is not None else "")
            ),
            "short of memory, the kernel takes pages back in the middle of what is measured",
            "look with top -o %MEM, and end what need not run; or a machine with more memory",
        ),
    ]


def _machine(facts: Mapping[str, Any], change: Change) -> list[Rule]:
    """Return the rules for the clock source, WSL, containers and hypervisors."""
    better = next((name for name in facts.get("clock_sources") or () if name not in SLOW_CLOCKS), None)
    sources = "/sys/devices/system/clocksource/clocksource0"
    to_better = better and change(better, f"{sources}/current_clocksource")
    return [
        Rule(
            "clock source",
            "clock_source",
            lambda name: name not in SLOW_CLOCKS,
            lambda name: name,
            "reading the time takes a system call or longer, and jiffies move by ms only",
            to_better or "a hypervisor that offers tsc or its own clock; measure more calls at once until then",
        ),
        Rule(
            "WSL",
            "wsl",
            lambda wsl: not wsl,
            lambda wsl: "yes" if wsl else "no",
            "Windows runs beneath, and beside; files below /mnt take many times as long",
            "keep files in the Linux file system; publish figures from Linux itself",
        ),
        Rule("container", "container", lambda _: True, lambda name: name or "no", "", ""),
        Rule("hypervisor", "hypervisor", lambda _: True, lambda name: name or "no", "", ""),
    ]
