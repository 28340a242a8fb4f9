"""How a cause is said: with its rank, its line of the log and the line of the code."""

from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import Diagnosis, RunEnd
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.failed_logs import why


def test_an_exception_is_said_with_the_line_of_the_persons_own_code() -> None:
    log = """\
9: Traceback (most recent call last):
9:   File "/scratch/p/code/train.py", line 5, in attention
9:     return call(batch["keys"])
9:   File "/usr/lib/python3.11/site-packages/torch/nn/module.py", line 1501, in _call_impl
9:     return forward(*args)
9: KeyError: 'keys'
srun: error: nid005002: task 9: Exited with exit code 1
"""
    (first, *_) = why(log, rank=9)
    assert first.sentence == "Rank 9 raised an exception at train.py:5 (attention)."
    assert "Inspect that line" in first.do and "above" not in first.do
    bare = why("Traceback (most recent call last):\nKeyError: 'keys'\n")[0]
    assert bare.sentence == "The program raised an exception." and "traceback" in bare.do
    lines = log.replace(", in attention", ", in <module>")
    assert why(lines, rank=9)[0].sentence == "Rank 9 raised an exception at train.py:5."


def test_a_cause_in_a_few_words_begins_with_what_tells_runs_apart() -> None:
    log = """5: Traceback (most recent call last):
5:   File "/site-packages/torch/nn/modules/module.py", line 1, in forward
5:   File "/scratch/run/code/model.py", line 88, in forward
5: {}"""
    known = why(log.format("torch.OutOfMemoryError: HIP out of memory."), rank=5)[0]
    assert known.brief == "rank 5 model.py:88: A GPU ran out of memory"
    assert known.cause == "A GPU ran out of memory (rank 5, at model.py:88)."
    other = why(log.format("my.own.OddError: [/] odd"), rank=5)[0]
    assert other.brief == "rank 5 model.py:88: OddError"
    assert other.cause == "Rank 5 raised an exception at model.py:88 (forward)."
    assert why("srun: error: nid005001: task 3: Out Of Memory")[0].brief.startswith("rank 3: ")
    killed = Diagnosis("killed", "Rank 5 ended first: it was killed.", "", rank=5)
    assert killed.brief == "Rank 5 ended first: it was killed"


def test_a_cause_from_a_traceback_has_the_number_of_its_line() -> None:
    log = (
        "start\nTraceback (most recent call last):\n"
        '  File "train.py", line 5, in <module>\n'
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.\n"
    )
    assert why(log)[0].number == 4
    assert diagnose(RunEnd(State.FAILED, log=log, before=None))[0].number is None
