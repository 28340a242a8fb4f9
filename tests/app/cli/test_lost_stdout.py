"""A stdout that is full or closed is one sentence and exit code 1, whatever the verb."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lumitui.app.cli.main import lumitui
from lumitui.app.cli.process import run_process
from tests.support.program.command_line import (
    PROGRAM,
    Here,
    envelope,
    environ,
    history,
    lt,
    runs_of,
)
from tests.support.program.home import Home
from tests.support.program.verbs import command_lines

NOT_TRIED = {"demo", "tui"}
"""One trains for a minute, the other needs a terminal."""


def _full() -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8")


def _closed() -> None:
    os.close(1)
    sys.stdout = None  # as Python has it then


def _reader_gone() -> None:
    read, write = os.pipe()
    os.close(read)
    os.dup2(write, 1)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8")


def forked(home: Home, words: list[str], lose: Callable[[], None], err: Path) -> int:
    """Run a process of the command line whose stdout is lost; return its exit code."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(os.open(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
            sys.stdin = io.TextIOWrapper(io.FileIO(0, "r", closefd=False), "utf-8")
            sys.stderr = io.TextIOWrapper(
                io.FileIO(2, "w", closefd=False), "utf-8", write_through=True
            )
            lose()
            os.environ.update(home.environ)
            sys.argv = ["lumitui", *words]
            run_process(lumitui)
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def lines(here: Here, job: Path, tmp_path: Path) -> list[list[str]]:
    """A few command lines of every verb, with a run in the history."""
    assert here("submit", str(job), "--yes", "--wait").returncode == 0
    (run,) = runs_of(here)
    found = command_lines(job, run["id"], tmp_path / "new")
    agreed = {"submit", "resubmit", "cancel"}
    return [
        [*words, "--yes"] if words[0] in agreed else words
        for words in found
        if words[0] not in NOT_TRIED
    ] + [["--help"], ["--version"]]


@pytest.mark.parametrize("lose", [_full, _closed, _reader_gone])
def test_every_verb_says_that_stdout_is_lost(
    home: Home, here: Here, lines: list[list[str]], tmp_path: Path, lose: Callable[[], None]
) -> None:
    err, told = tmp_path / "err", 0
    # All ways to lose it end in one place: every line is tried in one of them, some in the others.
    for words in lines if lose is _full else lines[::6]:
        code = forked(home, words, lose, err)
        said = err.read_text()
        assert "Traceback" not in said and "internal error" not in said, (words, said)
        assert code != 99, (words, said)
        if lose is _reader_gone:
            assert "Stdout" not in said, (words, said)
            continue
        lost = "error: Cannot write to stdout: " in said
        assert said.count("error: Stdout") <= 1 and (code > 0) >= lost, (words, code, said)
        told += lost
    assert list(home.data.glob("crash-*")) == []
    # What has nothing to say on stdout, or is refused, does not need it.
    assert told > (45 if lose is _full else 5) or lose is _reader_gone


@pytest.mark.parametrize("lose", [_full, _closed, _reader_gone])
@pytest.mark.parametrize("more", [(), ("--json",), ("--wait",)])
def test_a_run_that_was_sent_before_is_in_the_history(
    home: Home, job: Path, tmp_path: Path, lose: Callable[[], None], more: tuple[str, ...]
) -> None:
    code = forked(home, ["submit", str(job), "--yes", *more], lose, tmp_path / "err")
    (run,) = history(home)
    assert run["job_id"] and run["state"] != "not sent"
    said = (tmp_path / "err").read_text()
    assert code == (0 if lose is _reader_gone else 1) and "not sent" not in said.lower()
    assert f"lumitui logs -f {run['id']}" in said


@pytest.mark.parametrize("lose", [_full, _reader_gone])
def test_all_runs_of_a_grid_are_sent_without_a_stdout(
    home: Home, job: Path, tmp_path: Path, lose: Callable[[], None]
) -> None:
    job.write_text(job.read_text().replace("args: [one]", "grid: {--lr: [1, 2, 3]}"))
    code = forked(home, ["submit", str(job), "--yes"], lose, tmp_path / "err")
    assert code == (1 if lose is _full else 0), (tmp_path / "err").read_text()
    assert len([run for run in history(home) if run["job_id"]]) == 3


def test_a_full_stderr_keeps_no_verb_from_its_answer(home: Home, job: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, "submit", str(job), "--yes", "--json"], stdout=subprocess.PIPE,
            stderr=full, env=environ(home), text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 0 and envelope(done)["data"]["job_id"]
    assert lt(home, "status").returncode == 0
