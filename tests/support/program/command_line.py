"""The command line for tests: in a process of its own, on a terminal, or in this process."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lumitui.app.cli import output
from lumitui.app.history.history import History
from tests.support.jobs.small_jobs import hello_project
from tests.support.places import ROOT
from tests.support.program.home import Home

PROGRAM = [sys.executable, "-m", "lumitui.app.cli.main"]


def environ(home: Home, **more: str) -> dict[str, str]:
    return {**home.environ, "PYTHONPATH": str(ROOT / "src"), **more}


def lt(home: Home, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PROGRAM, *words],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=environ(home, **more),
        timeout=300,
    )


def envelope(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def on_terminal(
    home: Home, words: Sequence[str], answers: str = "", until: str = "", **more: str
) -> tuple[int, str]:
    """Run on a terminal of 80 columns, typing `answers` once `until` is on the screen."""
    process, screen = pty.fork()
    if process == 0:
        os.execve(sys.executable, [*PROGRAM, *words], environ(home, COLUMNS="80", **more))
    shown, deadline = b"", time.monotonic() + 90
    while True:
        if time.monotonic() > deadline:
            os.kill(process, signal.SIGKILL)
        if not select.select([screen], [], [], 1)[0]:
            continue
        try:
            chunk = os.read(screen, 65536)
        except OSError:  # Linux: the last process has closed the terminal
            chunk = b""
        if not chunk:
            break
        shown += chunk
        if answers and until.encode() in shown:
            os.write(screen, answers.encode())
            answers = ""
    _, status = os.waitpid(process, 0)
    os.close(screen)
    return os.waitstatus_to_exitcode(status), shown.decode("utf-8", "replace")


HELLO = """\
name: hello
site: laptop
partition: local
gpus_per_node: 1
time: "00:05:00"
launcher: plain
strategy: single
proof: "off"
script: hello.py
args: [one]
"""


Here = Callable[..., "subprocess.CompletedProcess[str]"]
"""Runs a verb in this process: the fixture `here`."""


def runs_of(where: Home | Here) -> list[dict[str, Any]]:
    words = ("history", "--json")
    found = envelope(lt(where, *words) if isinstance(where, Home) else where(*words))["data"]
    assert isinstance(found, list)
    return found


def told(done: "subprocess.CompletedProcess[str]", code: int, *words: str) -> str:
    """Assert that it ended with `code` and told `words` in an error and a hint; return them."""
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    hints = [line for line in done.stderr.splitlines() if line.startswith("hint: ")]
    assert errors and len(hints) == 1, done.stderr
    for word in words:
        assert word in done.stderr, f"{word!r} is not in: {done.stderr}"
    assert done.stderr.count(hints[0].removeprefix("hint: ")) == 1, "the hint says it again"
    return done.stderr


def history(home: Home) -> list[dict[str, Any]]:
    kept = History(home.settings.history)
    found = [output.as_data(output.run_data(run)) for run in kept.page()]
    kept.close()
    return found


LAPTOP = {
    "name": "hello",
    "site": "laptop",
    "partition": "local",
    "gpus_per_node": 1,
    "time": "00:05:00",
    "launcher": "plain",
    "strategy": "single",
    "proof": "off",
    "script": "hello.py",
}
CLUSTER = LAPTOP | {
    "site": "minilumi",
    "account": "project_462000001",
    "partition": "small-g",
}


def write(path: Path, job: dict[str, object], *lines: str) -> Path:
    """Write a job file; JSON's strings are YAML's."""
    hello_project(path.parent)
    text = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in job.items()]
    path.write_text("\n".join([*text, *lines]) + "\n", encoding="utf-8")
    return path
