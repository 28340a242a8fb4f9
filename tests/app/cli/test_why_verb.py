"""`lumitui why` explains any log: the likeliest cause, its line, what to do."""

from pathlib import Path

from tests.support.command_line import envelope, lt, told
from tests.support.home import Home

LOG = """\
3: [W socket.cpp:663] [c10d] The client socket has failed to connect (errno: 111 - Connection refused).
3: RuntimeError: No HIP GPUs are available
srun: error: nid005001: task 3: Exited with exit code 1
"""  # noqa: E501


def test_a_log_of_anybodys_is_explained(home: Home, tmp_path: Path) -> None:
    log = tmp_path / "job.out"
    log.write_text(LOG)
    shown = lt(home, "why", "--log", str(log), "--exit", "1")
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0] == "The program saw no GPU (rank 3, on nid005001)."
    assert lines[2] == "  2> RuntimeError: No HIP GPUs are available"
    data = envelope(lt(home, "why", "--log", str(log), "--json"))["data"]
    assert (data["why"][0]["id"], data["why"][0]["rank"], data["lines"]) == ("no-gpu", 3, [])


def test_what_no_rule_knows_is_said_with_the_lines_that_say_most(
    home: Home, tmp_path: Path
) -> None:
    log = tmp_path / "job.out"
    log.write_text("step 1\nsolver failed at x=3\nWARNING: x\nmesh error 7\nbye\n")
    data = envelope(lt(home, "why", "--log", str(log), "--json"))["data"]
    assert [item["id"] for item in data["why"]] == ["unknown"]
    assert data["lines"] == ["solver failed at x=3", "mesh error 7"]


def test_a_log_that_is_not_there_and_a_job_that_is_not_named_are_refused(
    home: Home, tmp_path: Path
) -> None:
    told(lt(home, "why", "--log", str(tmp_path / "none")), 2, "cannot be read")
    told(lt(home, "why"), 2, "not one job")
