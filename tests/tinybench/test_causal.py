"""Arms in rounds, stages that are repeated, stand-ins, and trial runs that find what cannot be asked."""

from __future__ import annotations

import math
import multiprocessing
import os
import pickle
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest

from tinybench.support.profiling.pipeline_trial import StageError, trial_run
from tinybench.support.profiling.stand_ins import Answers, Delay, Kind, StandIn, look_closely, paces
from tinybench.support.profiling.what_if_experiment import (
    Once,
    Repeated,
    Stage,
    in_order,
    in_rounds,
    prepare_stages,
    without,
)

PYTHON, HELD, RELEASED, WAITS = (Kind(*(float(i == j) for j in range(4))) for i in range(4))


def identity(item: Any) -> Any:
    return item


def ends(_: Any) -> None:
    sys.exit(3)


def leaves(_: Any) -> None:
    os._exit(4)


def is_killed(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fails(_: Any) -> None:
    raise ZeroDivisionError("no such number")


class Calls:
    """A stage that counts its calls."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, item: int) -> int:
        self.count += 1
        return item + self.count


def test_a_repeated_stage_gives_its_first_answer_and_can_travel() -> None:
    stage = Calls()
    assert Repeated(stage, 3)(10) == 11
    assert stage.count == 3
    assert pickle.loads(pickle.dumps(Repeated(identity, 2)))(5) == 5


def test_a_stage_that_must_run_once_is_delayed_instead() -> None:
    stage, delayed = Calls(), []
    once = Once(stage, lambda *args, **kwargs: delayed.append(args))  # type: ignore[arg-type]
    assert Repeated(once, 4)(1) == 2
    assert stage.count == 1
    assert delayed == [(1,)] * 3


def test_a_chain_hands_on_what_each_stage_answers() -> None:
    run = in_order(iter([1, 2]))
    stages: dict[str, Stage] = {"add": lambda x: x + 1, "double": lambda x: 2 * x}
    assert run(stages) == [4, 6] == run(stages)  # the items are kept


def test_arms_take_turns_in_orders_that_change_and_last_as_long() -> None:
    seen: list[tuple[str, float]] = []
    usual = sys.getswitchinterval()

    def stage(name: str) -> Stage:
        return lambda item: seen.append((name, sys.getswitchinterval()))

    arms: dict[str, dict[str, Stage]] = {"plain": {"a": stage("plain")}, "slowed": {"a": Repeated(stage("slowed"), 4)}}
    found = in_rounds(in_order([0]), arms, 10, rng=random.Random(3))
    assert {name: len(seconds) for name, seconds in found.items()} == {"plain": 10, "slowed": 10}
    assert Counter(name for name, _ in seen) == {"plain": 40, "slowed": 40}
    blocks = [seen[i][0] for i in range(0, 80, 4)]
    assert all({blocks[i], blocks[i + 1]} == set(arms) for i in range(0, 20, 2))
    assert len({blocks[i] for i in range(0, 20, 2)}) == 2
    assert {name: pytest.approx(interval / usual, rel=0.01) for name, interval in seen} == {"plain": 1, "slowed": 4}
    assert sys.getswitchinterval() == usual


def test_the_clock_tells_when_to_stop() -> None:
    now = [0.0]

    def stage(_: Any) -> None:
        now[0] += 1

    def rounds(**options: Any) -> int:
        return len(in_rounds(in_order([0]), {"plain": {"a": stage}}, clock=lambda: now[0], **options)["plain"])

    assert rounds(rounds=5) == 5
    assert rounds(rounds=50, max_seconds=7) == 7
    assert rounds(rounds=50, max_seconds=0.5) == 2
    assert rounds(rounds=3, enough=lambda seconds: len(seconds["plain"]) == 11) == 11


def test_an_error_leaves_the_interpreter_as_it_was() -> None:
    usual = sys.getswitchinterval()
    with pytest.raises(ZeroDivisionError):
        in_rounds(in_order([0]), {"slowed": {"a": Repeated(fails, 5)}})
    assert sys.getswitchinterval() == usual


def tell_interval(stage: Stage, answers: Any) -> None:
    answers.send(stage(0))


def interval_here(_: Any) -> float:
    return sys.getswitchinterval()


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods()[:2])
def test_threads_of_other_processes_take_turns_as_seldom(method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    found = []

    def run(stages: Mapping[str, Stage]) -> None:
        end, start = context.Pipe(duplex=False)
        process = context.Process(target=tell_interval, args=(stages["a"], start))
        process.start()
        found.append(end.recv() / sys.getswitchinterval())
        process.join()

    in_rounds(run, {"slowed": {"a": Repeated(interval_here, 3)}}, 1, max_seconds=0)
    assert found == pytest.approx([1, 1], rel=0.01)


def test_a_trial_counts_calls_and_finds_what_cannot_be_repeated() -> None:
    def used_up(items: Any) -> int:
        return sum(items)

    stages: dict[str, Stage] = {"iterate": lambda n: [iter(range(n))], "sum": lambda x: used_up(x[0]), "count": Calls()}
    trial = trial_run(in_order([3, 4]), stages, twice=stages)
    assert trial.calls == {"iterate": 2, "sum": 2, "count": 2}
    assert not trial.overlaps
    assert set(trial.once) == {"sum", "count"}
    assert "answers otherwise" in trial.once["sum"]


def test_a_stage_whose_second_call_raises_is_not_repeated() -> None:
    seen = set()

    def only_once(item: int) -> int:
        if item in seen:
            raise FileExistsError(item)
        seen.add(item)
        return item

    assert "FileExistsError" in trial_run(in_order([1, 2]), {"save": only_once}, twice=["save"]).once["save"]


def test_the_first_answer_survives_a_second_call_that_changes_it() -> None:
    store: list[int] = []

    def grow(_: Any) -> list[int]:
        store.append(1)
        return store

    answers = []
    trial = trial_run(in_order([0]), {"grow": grow, "look": lambda x: answers.append(list(x))}, twice=["grow"])
    assert answers == [[1]]
    assert "grow" in trial.once


def test_work_that_is_done_later_is_refused() -> None:
    with pytest.raises(TypeError, match="answers a generator, whose work is done later") as raised:
        trial_run(in_order([1]), {"lazy": lambda x: (x for _ in range(3))})
    assert "in stage lazy" in "".join(raised.value.__notes__)


def test_threads_are_told_from_a_chain() -> None:
    def run(stages: Mapping[str, Stage]) -> None:
        with ThreadPoolExecutor(1) as pool:
            list(pool.map(stages["a"], range(3)))

    assert trial_run(run, {"a": identity}).overlaps


@pytest.mark.parametrize(("stage", "told"), [(ends, r"SystemExit: 3"), (leaves, r"os._exit\(4\)")])
def test_a_stage_that_ends_the_process_is_named(stage: Stage, told: str) -> None:
    leave = os._exit
    with pytest.raises(StageError, match="stage model wants to end the process .*" + told):
        trial_run(in_order([0]), {"read": identity, "model": stage})
    assert os._exit is leave


def test_an_error_in_a_thread_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def run(stages: Mapping[str, Stage]) -> None:
        thread = threading.Thread(target=stages["model"], args=(0,))
        thread.start()
        thread.join()

    with pytest.raises(StageError, match="stage model ZeroDivisionError: no such number"):
        trial_run(run, {"model": fails})


def work_in_child(stage: Stage, answers: Any) -> None:
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for the rest of this process
    answers.put(stage(0))


def wait_for_child(stages: Mapping[str, Stage]) -> None:
    answers: Any = multiprocessing.Queue()
    process = multiprocessing.Process(target=work_in_child, args=(stages["model"], answers))
    process.start()
    try:
        answers.get()
    finally:
        answers.close()
    process.join()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="a wait cannot be interrupted here")
@pytest.mark.parametrize(
    ("stage", "told"), [(is_killed, "ended its process"), (leaves, r"(_exit|ended)"), (fails, "ZeroD")]
)
def test_a_child_that_is_gone_is_not_waited_for(stage: Stage, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinybench.support.profiling.pipeline_trial.PATIENCE", 0.2)
    threads, children = threading.active_count(), len(psutil.Process().children())
    with pytest.raises(StageError, match=f"stage model .*{told}.*, and the run waits for it for ever"):
        trial_run(wait_for_child, {"model": stage})
    multiprocessing.active_children()  # joins those that are gone
    assert threading.active_count() == threads
    assert len(psutil.Process().children()) <= children


def test_a_run_in_two_processes_is_seen_and_recorded() -> None:
    trial = trial_run(wait_for_child, {"model": identity}, record="model")
    assert trial.overlaps
    assert trial.calls == {"model": 1}
    assert [pickle.loads(each) for pair in trial.pairs.items() for each in pair] == [((0,), {}), 0]


def test_what_cannot_be_asked_is_said() -> None:
    stages: dict[str, Stage] = {"read": identity, "model": identity}
    with pytest.raises(ValueError, match="there is no stage 'modell'; there are read, model"):
        prepare_stages(in_order([0]), stages, "modell")
    with pytest.raises(ValueError, match="there is no stage 'save'"):
        prepare_stages(in_order([0]), stages, "model", once=["save"])
    with pytest.raises(TypeError, match="stage model is a int; pass a function"):
        prepare_stages(in_order([0]), {**stages, "model": 3}, "model")  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="the run never calls model"):
        prepare_stages(lambda given: given["read"](0), stages, "model")
    with pytest.raises(ZeroDivisionError) as raised:
        prepare_stages(in_order([0]), {**stages, "model": fails}, "model")
    assert raised.value.__notes__ == ["in stage model, in the trial run of what_if"]


def test_stages_that_must_not_be_repeated_are_never() -> None:
    calls: list[int] = []
    stages: dict[str, Stage] = {"model": identity, "save": calls.append}
    plan = prepare_stages(in_order([1, 2]), stages, "model", once=["save"])
    assert calls == [1, 2] * 2  # two trial runs
    assert isinstance(plan.stages["save"], Once)
    assert plan.stages["model"] is identity


def test_a_stage_gives_way_to_its_answers() -> None:
    stage = Calls()
    replaced = without({"read": identity, "model": stage}, "model")
    assert [replaced["model"](10), replaced["model"](10), replaced["model"](20)] == [11, 11, 22]
    assert stage.count == 2
    recorded = without({"model": stage}, "model", in_order([5, 6]))
    assert [recorded["model"](5), recorded["model"](6), stage.count] == [8, 10, 4]
    with pytest.raises(ValueError, match=r"model cannot be replaced by its answers: .*pickled"):
        without({"model": lambda _: threading.Lock()}, "model", in_order([0]))


def test_answers_cannot_be_changed() -> None:
    answers = Answers({pickle.dumps(((1,), {})): pickle.dumps([1])}, fails)
    answers(1).append(2)
    assert answers(1) == [1]


def test_a_stand_in_takes_the_rest_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    clock = iter([10.0, 10.001] * 2)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    delay = Delay(WAITS, 0.005, (1.0, 1.0, 1.0, 0.0005, 0.0))
    stand_in = StandIn(Answers({pickle.dumps(((1,), {})): pickle.dumps("one")}, fails), [delay])
    assert stand_in(1) == "one"
    assert stand_in.faster(2)(1) == "one"
    monkeypatch.undo()
    with pytest.raises(KeyError, match="not given in the trial runs"):
        stand_in(2)
    assert slept == pytest.approx([0.0035, 0.001])  # 1 ms was over, and a sleeper wakes up 0.5 ms late


def test_a_delay_shares_its_time_out_among_the_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[int, float]] = []
    work = tuple(lambda amount, i=i: done.append((i, amount)) for i in range(3))
    monkeypatch.setattr("tinybench.support.profiling.stand_ins._WORK", work)
    monkeypatch.setattr(time, "sleep", lambda seconds: done.append((3, seconds)))
    Delay(Kind(0.25, 0, 0.25, 0.5), 4.0, (100.0, 100.0, 10.0, 0.0, 0.0))("given", of="no matter")
    assert done == [(0, 100.0), (2, 10.0), (3, 2.0)]
    done.clear()
    Delay(PYTHON, 1.0, (100.0, 1.0, 1.0, 0.0, 0.0))(less=3.0)
    assert not done


LENGTH = 0.002
NATURES: list[tuple[Kind, Callable[[float], object]]] = [
    (PYTHON, lambda amount: [None for _ in range(int(amount * 20_000_000))]),
    (HELD, lambda amount: sum(range(int(amount * 60_000_000)))),
    (WAITS, lambda amount: time.sleep(amount)),
]


@pytest.mark.parametrize(("kind", "work"), NATURES, ids=["python", "held", "waits"])
def test_what_a_stage_spends_its_time_on(kind: Kind, work: Callable[[float], object]) -> None:
    inputs, found = [pickle.dumps(((LENGTH,), {}))] * 6, []
    for _ in range(6):  # other processes disturb this: it must come out right once
        seen, lengths = look_closely(work, inputs, paces())
        found.append(seen)
        assert len(lengths) == len(inputs)
        assert min(lengths) > 0
        assert math.isclose(sum(seen), 1)
        if max(abs(a - b) for a, b in zip(seen, kind, strict=True)) < 0.4:
            return
    pytest.fail(f"{kind}: {found}")
