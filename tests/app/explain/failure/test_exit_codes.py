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
