"""The diagnosis on excerpts of public failure logs: the half that the rules were tuned on."""

import pytest

from tests.exam.corpus import asked_once, benign, excerpts, rewritten
from tests.exam.score import changed, invented, score

TUNING = [item for item in excerpts() if not item.held_out]


@pytest.mark.parametrize("slurm", [True, False])
def test_the_tuning_half_is_named_right(slurm: bool) -> None:
    result = score(TUNING, slurm=slurm)
    assert result.macro_f1 >= 0.95, [a for a in result.answers if a[0].cause != a[1]]
    assert not result.wrong


@pytest.mark.parametrize("slurm", [True, False])
def test_logs_that_were_written_after_threads_are_named_right(slurm: bool) -> None:
    result = score(rewritten(), slurm=slurm)
    assert not [(item.id, item.cause, said) for item, said in result.answers if item.cause != said]


@pytest.mark.parametrize("slurm", [True, False])
def test_logs_of_which_no_rule_has_learnt_are_named_right(slurm: bool) -> None:
    result = score(asked_once(), slurm=slurm)
    assert result.macro_f1 >= 0.93 and len(result.wrong) <= 2
    assert len(result.answers) == 100


def test_no_cause_is_invented_for_lines_that_ended_nothing() -> None:
    assert len(benign()) >= 50
    assert not invented()


def test_benign_lines_before_a_failure_change_no_answer() -> None:
    assert not changed(TUNING)


def test_each_excerpt_has_an_address_and_its_own_name() -> None:
    assert len({item.id for item in excerpts()}) == len(excerpts())
    assert all(item.source.startswith("https://") and item.lines for item in excerpts())
