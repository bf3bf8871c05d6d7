"""A later check that fails names the earlier one that fails first; `tests.mutants.pairs` plays all pairs."""

from __future__ import annotations

import pytest

from tests.mutants.pairs import Said, play


@pytest.fixture(scope="module")
def said() -> list[Said]:
    return play("01_result", "--short", "--only=mean_and_std", "--only=t_interval", "--only=tukey_outliers")


def test_a_right_later_piece_is_not_blamed(said: list[Said]) -> None:
    alone = {each.check: each for each in said if each.earlier == "n_for_n_minus_1" and not each.later}
    assert {"check_interval", "check_methods"} <= set(alone)
    first = "AssertionError: Make check_moments pass first (section “2 · Mean and standard deviation"
    assert alone["check_interval"].text.startswith(first)
    assert "it tests mean_and_std, which this check uses" in alone["check_interval"].text
    assert [each for each in said if not each.later and not each.names_the_earlier] == []


def test_of_two_mistakes_the_earlier_comes_first(said: list[Said]) -> None:
    both = {(each.earlier, each.later): each for each in said if each.later}
    assert "half of what is left" in both["n_for_n_minus_1", "z_for_t"].text
    assert [each for each in both.values() if not each.names_the_earlier] == []
    assert not [each for each in said if (each.earlier, each.check) == ("outliers_sorted", "check_interval")]
