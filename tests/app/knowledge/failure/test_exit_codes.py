"""What the exit code of a program says, beside its log."""

import pytest

from lumitui.app.job.spec import JobSpec
from tests.support.jobs.failed_logs import why
from tests.support.jobs.small_jobs import hello_job


def bundled() -> JobSpec:
    """Return a job of a bundled trainer."""
    return hello_job().model_copy(update={"script": None, "trainer": "ddp"})


@pytest.mark.parametrize(
    ("rc", "expected"),
    [(134, "aborted"), (137, "killed"), (139, "segfault"),
     (143, "terminated"), (127, "no-command"), (126, "not-executable"),
     (2, "usage"), (3, "unknown"), (None, "unknown")],
)  # fmt: skip
def test_the_exit_code_speaks_when_nothing_else_does(rc: int | None, expected: str) -> None:
    found = why("some line", rc=rc, rank=4)
    assert found[0].id == expected
    if expected == "unknown":
        assert found[0].line == "some line"


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("rank: line 1: exec: python: not found", "python"),
        ("/bin/sh: 1: exec: python3.11: not found", "python3.11"),
        ("/usr/bin/env: \u2018python\u2019: No such file or directory", "python"),
        ("slurmstepd: error: execve(): /opt/py/bin/python: No such file or directory",
         "/opt/py/bin/python"),
    ],
)  # fmt: skip
def test_a_program_that_is_not_there_is_named_and_is_not_the_rank(line: str, missing: str) -> None:
    (found,) = why(f"0: {line}\nsrun: error: nid005001: task 0: Exited", rc=127, rank=0)
    assert found.sentence == f"The program {missing} was not found."
    assert found.brief == f"rank 0: The program {missing} was not found"
    assert "interpreter" in found.do


@pytest.mark.parametrize(("rc", "said"), [(127, "was not found"), (126, "cannot be executed")])
def test_what_cannot_be_started_is_the_program_and_not_the_rank(rc: int, said: str) -> None:
    (found,) = why("some line", rc=rc, rank=0)
    assert said in found.sentence and "Rank 0" not in found.sentence
    assert found.cause.endswith(f"{said} (rank 0).")


def test_stopped_early_comes_before_what_the_log_shows() -> None:
    log = "1: Connection closed by peer\nslurmstepd: DUE TO TIME LIMIT"
    found = why(log, rc=85, rank=None, spec=bundled())
    assert found[0].id == "stopped-early"


@pytest.mark.parametrize("rc", [85, 86, 87, 78])
def test_a_script_of_the_users_own_may_end_with_any_code(rc: int) -> None:
    for spec in (hello_job(), None):
        assert [item.id for item in why("2: bye", rc=rc, rank=2, spec=spec)] == ["unknown"]


def test_lumituis_own_codes_are_known_where_they_are_its_own() -> None:
    for rc, known in {85: "stopped-early", 86: "diverged", 87: "overtaken"}.items():
        assert why("bye", rc=rc, rank=None, spec=bundled())[0].id == known
    strict = hello_job(proof="strict")
    assert why("bye", rc=78, rank=None, spec=strict)[0].id == "proof-strict"
    # A rank ended with 78: the launch was made.
    assert why("bye", rc=78, rank=3, spec=strict)[0].id == "unknown"


KILLED = "srun: error: nid005001: task 3: Killed"


def test_a_first_rank_that_was_killed_is_not_said_to_have_lacked_memory() -> None:
    for log in ("3: step 7", f"3: step 7\n{KILLED}"):
        (found,) = why(log, rc=137, rank=3)
        assert (found.id, found.rank) == ("killed", 3)
        assert found.sentence.startswith("Rank 3 ended first: it was killed (signal 9), but Slurm")
        assert "Find the rank" not in found.do and "memory" not in found.do
    # Without an exit file nobody knows who was first, and Slurm's own words for memory stay.
    assert why(KILLED, rc=137, rank=None)[0].id == "host-memory"
    lacked = f"slurmstepd: error: Detected 1 oom_kill event in StepId=9.0.\n{KILLED}"
    assert "did not report" not in " ".join(one.sentence for one in why(lacked, rc=137, rank=3))


def test_a_first_rank_that_was_asked_to_end_is_not_to_be_looked_for() -> None:
    (found,) = why("3: step 7", rc=143, rank=3)
    assert found.sentence == "Rank 3 ended first: it was told to end (signal 15)."


@pytest.mark.parametrize("launcher", ["torchrun", "accelerate", "deepspeed"])
@pytest.mark.parametrize(
    ("code", "rc", "known"), [(-9, 137, "killed"), (-11, 139, "killed-by-signal")]
)
def test_a_launchers_reason_names_the_rank_of_the_exit_file(
    launcher: str, code: int, rc: int, known: str
) -> None:
    log = f"1: E1121 torch/distributed/elastic/multiprocessing/api.py] failed (exitcode: {code})"
    found = why(log, rc=rc, rank=5, spec=hello_job(launcher=launcher))
    assert (found[0].id, found[0].rank) == (known, 5)
    # A task of srun that starts a launcher of its own is a node's.
    assert why(log, rc=rc, rank=1, spec=hello_job())[0].rank is None


def test_an_abort_at_the_exit_is_said_once_with_its_remedy() -> None:
    log = """\
0: epoch 29 loss 0.1
1: terminate called without an active exception
srun: error: nid005001: task 1: Aborted
"""
    (found,) = why(log, rc=134, rank=1)
    assert (found.id, found.rank) == ("exit-abort", 1)
    assert found.line == "terminate called without an active exception"
    assert "`os._exit(0)`" in found.do
    crash = why(f"srun: error: nid005001: task 0: Segmentation fault\n{log}", rc=134)
    assert [one.id for one in crash] == ["killed-by-signal", "exit-abort"]


def test_a_segmentation_fault_is_named_once_with_its_rank() -> None:
    log = "srun: error: nid005001: task 5: Segmentation fault (core dumped)\n"
    for rank in (None, 5):
        (found,) = why(log, rc=139, rank=rank)
        assert found.rank == 5 and "Segmentation fault" in found.sentence
    assert len(why(log, rc=139, rank=3)) == 2, "another rank ended first"
