"""The TUI in terminals too small to show anything: it goes on, and is whole when they grow."""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

import pytest

from lumitui.app.job.settings import Settings
from lumitui.app.runs import Runs
from lumitui.app.tui.app import LumiApp
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.program.command_line import PROGRAM, environ
from tests.support.program.driven_tui import sees
from tests.support.program.home import Home

KEYS = (
    "question_mark", "escape", "slash", "escape", "S", "escape", "enter", "b", "m", "plus",
    "escape", "escape", "2", "s", "escape", "3", "enter", "escape", "ctrl+p", "escape", "1",
)  # fmt: skip


RARE = pytest.mark.slow


@pytest.mark.parametrize(
    "size", [(1, 1), pytest.param((80, 1), marks=RARE), pytest.param((20, 5), marks=RARE)]
)
async def test_every_screen_opens_at_any_size(
    size: tuple[int, int], settings: Settings, project: Path, runs: Runs
) -> None:
    run = a_run("x" * 40, site="laptop")
    runs.history.begin(run)
    runs.history.update(run.id, state=State.FAILED, reason="a long reason " * 20)
    async with LumiApp(settings, project / "job.yaml").run_test(size=size) as pilot:
        for key in KEYS:
            await pilot.press(key)
        await pilot.resize_terminal(100, 30)
        await pilot.press("escape", "escape", "1")
        await sees(pilot, "x{20}")
        for columns, rows in ((0, 0), (0, 24), (80, 24)):
            await pilot.resize_terminal(columns, rows)
            await pilot.press("j")
        await sees(pilot, "x{20}")
        assert pilot.app.is_running
    assert pilot.app.return_code in (0, None)


@pytest.mark.parametrize(
    ("columns", "rows"),
    [(0, 0), pytest.param(1, 1, marks=RARE), pytest.param(20, 5, marks=RARE)],
)
def test_it_starts_and_ends_on_a_real_terminal_of_any_size(
    columns: int, rows: int, home: Home, project: Path
) -> None:
    child, screen = pty.fork()
    if child == 0:
        time.sleep(0.2)  # the size is set meanwhile
        variables = environ(home, TERM="xterm-256color")
        variables.pop("COLUMNS", None)
        os.execve(sys.executable, [*PROGRAM, "tui"], variables)
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    shown, deadline, ended = b"", time.monotonic() + 180, False
    while True:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        if select.select([screen], [], [], 0.5)[0]:
            try:
                shown += os.read(screen, 65536)
            except OSError:  # Linux: the last process has closed the terminal
                break
        elif len(shown) > 200 and not ended:
            ended = True
            os.write(screen, b"\x11")  # ctrl+q
    _, status = os.waitpid(child, 0)
    os.close(screen)
    text = shown.decode("utf-8", "replace")
    assert os.waitstatus_to_exitcode(status) == 0 and "Traceback" not in text, text[-2000:]
