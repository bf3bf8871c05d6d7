"""Four students in one module: who is right gets on, who is wrong is told why, and nothing breaks under anybody."""

from __future__ import annotations

import pytest

from tests.notebooks.student import PEOPLE, Trial, course_of, trial_of

MODULE = "01_result"


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trial]:
    course = course_of(tmp_path_factory.mktemp("course"), [MODULE])
    return {who: trial_of(course, MODULE, who, quick=True) for who in PEOPLE}


@pytest.mark.slow
def test_nobody_stumbles(trials: dict[str, Trial]) -> None:
    assert [stumble for trial in trials.values() for stumble in trial.stumbles] == []


@pytest.mark.slow
@pytest.mark.parametrize("who", ["finishing", "pasting"])
def test_who_is_right_gets_on(who: str, trials: dict[str, Trial]) -> None:
    trial = trials[who]
    assert all(trial.passed.values())
    assert trial.explained >= len(trial.passed)
    assert trial.built or who == "pasting"  # some code that works is no code of a module, and is told so


@pytest.mark.slow
def test_who_gives_up_is_told_what_is_missing(trials: dict[str, Trial]) -> None:
    trial = trials["giving-up"]
    assert 0.2 < sum(trial.passed.values()) / len(trial.passed) < 0.8
    assert not trial.built
    assert "checks do not pass yet, nothing was built" in "\n".join(trial.lines)


@pytest.mark.slow
def test_guesses_get_nowhere(trials: dict[str, Trial]) -> None:
    trial = trials["guessing"]
    assert not any(trial.passed.values())
    assert trial.explained == 0
