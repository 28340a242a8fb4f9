"""Every verb on a terminal of any width, and without one: no traceback, and the same exit code."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

import pytest

from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import SPEC, a_run
from tests.support.jobs.small_jobs import hello_project
from tests.support.program.command_line import HELLO, Here, environ
from tests.support.program.home import Home
from tests.support.program.verbs import VERBS, command_lines

WIDTHS = ["1", "20", "80"]
ODD = ["0", "-5", "x", "", "1e9", "9" * 5000, "١"]  # noqa: RUF001  # a digit
"""No widths: all verbs read the same variable by the same function."""
RARE = pytest.mark.slow
DESIGNED = {0, 1, 2, 3, 4, 5, 6, 7, 124, 130}
NAME = "long-names-" * 4 + "a1b2c3"


@pytest.fixture
def lines(
    home: Home, runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[list[str]]:
    """A command line of every verb but those that open the TUI or train."""
    monkeypatch.setenv("HOME", str(tmp_path))
    spec = SPEC.model_copy(update={"site": "laptop", "partition": "local"})
    run = a_run(NAME, site="laptop", spec=spec, folder=str(tmp_path / "gone"))
    runs.history.begin(run)
    runs.history.update(run.id, state=State.FAILED, reason="a very long reason " * 20)
    job = hello_project(tmp_path / "work") / "job.yaml"
    job.write_text(HELLO)
    (job.parent / ".env").write_text("A=1")
    new = tmp_path / "new"
    new.mkdir()
    everything = command_lines(job, NAME, new)
    return [words for words in everything if words[0] not in ("tui", "tour", "demo")]


def test_every_verb_has_a_command_line_here() -> None:
    from lumitui.app.cli.main import lumitui

    assert set(lumitui.every()) == set(VERBS)


@pytest.mark.slow
def test_every_verb_works_at_any_width(
    lines: list[list[str]], here: Here, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    codes: dict[str, set[int]] = {}
    helps = [[*verb.split(), "--help"] for verb in VERBS]
    tables = [["history"], ["site", "show"], ["show", NAME], ["history", "--help"]]
    for width in (*WIDTHS, *ODD):
        monkeypatch.setenv("COLUMNS", width)
        for path in (tmp_path / "new").glob("*.*"):  # what the verbs wrote at another width
            path.unlink()
        for asked in (*lines, *helps) if width in WIDTHS else tables:
            done = here(*asked)
            assert "internal error" not in done.stderr, (width, asked, done.stderr)
            assert "Traceback" not in done.stdout + done.stderr, (width, asked)
            codes.setdefault(" ".join(asked), set()).add(done.returncode)
    assert set().union(*codes.values()) <= DESIGNED
    assert {words: seen for words, seen in codes.items() if len(seen) > 1} == {}


# All verbs in one process: starting Python is what takes the time.
CHILD = """
import json, sys
from lumitui.app.cli.main import lumitui
from lumitui.app.cli.process import run_verb
for words in json.loads(sys.argv[1]):
    code = run_verb(lumitui, words)
    sys.stderr.flush(); sys.stdout.flush()
    print(f"<<{' '.join(words)}|{code}>>", flush=True)
"""


def in_a_terminal(
    home: Home, columns: int, lines: list[list[str]], **more: str
) -> tuple[dict[str, int], str]:
    """Run `lines` on a terminal of `columns`, answering no; return their codes and the screen."""
    child, screen = pty.fork()
    if child == 0:
        time.sleep(0.2)  # the parent sets the size
        variables = {**environ(home), **more}
        variables.pop("COLUMNS", None)
        os.execve(sys.executable, [sys.executable, "-c", CHILD, json.dumps(lines)], variables)
    size = struct.pack("HHHH", 24 if columns else 0, columns, 0, 0)
    fcntl.ioctl(screen, termios.TIOCSWINSZ, size)
    shown, deadline, asked = b"", time.monotonic() + 200, 0
    while True:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        if not select.select([screen], [], [], 1)[0]:
            continue
        try:
            chunk = os.read(screen, 65536)
        except OSError:  # Linux: the last process has closed the terminal
            break
        if not chunk:
            break
        shown += chunk
        if shown.count(b"[y/N]") > asked:
            asked += 1
            os.write(screen, b"n\n")
    os.waitpid(child, 0)
    os.close(screen)
    text = shown.decode("utf-8", "replace").replace("\r", "")
    codes = {words: int(code) for words, code in re.findall(r"<<(.*?)\|(-?\d+)>>", text)}
    return codes, text


@pytest.mark.parametrize("columns", [0, pytest.param(1, marks=RARE), pytest.param(20, marks=RARE)])
def test_every_verb_works_on_a_real_terminal_of_any_width(
    columns: int, lines: list[list[str]], home: Home, tmp_path: Path
) -> None:
    codes, text = in_a_terminal(home, columns, lines)
    assert "Traceback" not in text and "internal error" not in text, text[-3000:]
    assert list(codes) == [" ".join(words) for words in lines]
    assert set(codes.values()) <= DESIGNED
