"""The diagnosis on excerpts of public failure logs: the half that the rules were tuned on."""

import pytest

from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.remote.site.states import State
from tests.exam.corpus import asked_once, benign, excerpts, got_over, rewritten
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


def test_what_was_got_over_is_said_as_possible_and_after_that_nothing_is_known() -> None:
    told = [diagnose(RunEnd(State.FAILED, rc=1, log=log)) for log in got_over()]
    assert len(told) >= 25
    for first, *perhaps in told:
        assert first.id == "unknown", first.line
        assert all(one.sentence.startswith("Possibly: ") for one in perhaps)
    assert sum(len(found) > 1 for found in told) > 20


OOM = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB."
RAISED = f"""\
{{0}}Traceback (most recent call last):
{{0}}  File "train.py", line 88, in step
{{0}}    loss = model(batch)
{{0}}{OOM}
"""


@pytest.mark.parametrize(
    "log",
    [
        f"step 5 loss 2.0\n{RAISED.format('')}step 6 loss 2.0\nsrun: error: n: task 0: Exited\n",
        f"step 5 loss 2\n{OOM}\n" + "".join(f"step 6 loss 2.{rank}\n" for rank in range(7)),
        f"{RAISED.format('')}step 5 loss 2.0\nstep 6 loss 2.0\nstep 7 loss 1.9\n",
        f"3: step 5 loss 2\n{RAISED.format('3: ')}1: step 6 loss 2\n2: step 6 loss 2\n",
        f"3: step 5 loss 2\n3: {OOM}\n1: step 6 loss 2\n2: step 7 loss 2\n",
        f"step 5 loss 2\n{OOM}\nstep 6 loss 2\nJob finished at 12:00\nDone.\n",
    ],
)
def test_what_other_ranks_print_after_a_fault_does_not_hide_it(log: str) -> None:
    assert diagnose(RunEnd(State.FAILED, rc=1, log=log))[0].id == "gpu-memory"


def test_benign_lines_before_a_failure_change_no_answer() -> None:
    assert not changed(TUNING[::4])  # `make exam` asks all


def test_each_excerpt_has_an_address_and_its_own_name() -> None:
    assert len({item.id for item in excerpts()}) == len(excerpts())
    assert all(item.source.startswith("https://") and item.lines for item in excerpts())
