"""The program as a person runs it: in tmux at 80x24, against a real Slurm, from a job to quit."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.support.jobs.small_jobs import wait_until
from tests.support.program.child import is_gone
from tests.support.program.command_line import LAPTOP, PROGRAM, environ, history, lt, write
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

JOB = """name: sixteen
site: minilumi
account: {account}
partition: standard-g
time: "00:05:00"
launcher: srun
script: where.py
"""

SCRIPT = """
import os, time
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], flush=True)
time.sleep(1)
print("[rank0]: Traceback is only a word here, [/] too", flush=True)
"""

SHELL = """
stty -a >before
{program} tui job.yaml
echo "ended with $?"
stty -a >after
sleep 600
"""


@dataclass(frozen=True)
class Tmux:
    """A server of tmux of its own, with one window of 80x24."""

    socket: Path

    def __call__(self, *words: str, **environment: str) -> str:
        """Run a command of tmux; return what it prints."""
        done = subprocess.run(
            ["tmux", "-S", str(self.socket), "-f", "/dev/null", *words],
            capture_output=True, text=True, check=True, env=environment or None, timeout=60,
        )  # fmt: skip
        return done.stdout

    def screen(self) -> str:
        """Return the screen as text."""
        return self("capture-pane", "-p")

    def sees(self, pattern: str, seconds: float = 90) -> None:
        """Wait until the screen shows what `pattern` matches."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, screen := self.screen()):
            assert time.monotonic() < deadline, f"never seen: {pattern}; on the screen:\n{screen}"
            time.sleep(0.2)

    def press(self, *keys: str) -> None:
        """Type keys by tmux's names."""
        self("send-keys", *keys)


@pytest.fixture
def tmux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tmux]:
    """A tmux that ends with the test, and with it what runs inside."""
    if not shutil.which("tmux"):
        pytest.skip("there is no tmux here")
    server = Tmux(tmp_path_factory.mktemp("tmux") / "s")  # a socket's path has at most 107 bytes
    yield server
    subprocess.run(["tmux", "-S", str(server.socket), "kill-server"], capture_output=True)


def test_a_job_is_sent_proved_followed_and_doubled_and_the_terminal_is_as_before(
    cluster: Cluster, home: Home, tmp_path: Path, tmux: Tmux
) -> None:
    (tmp_path / "where.py").write_text(SCRIPT)
    (tmp_path / "job.yaml").write_text(JOB.format(account=cluster.account))
    home.add_cluster(cluster)
    variables = environ(home) | {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
    for name in ("COLUMNS", "LINES", "TMUX"):
        variables.pop(name, None)
    shell = SHELL.format(program=shlex.join([sys.executable, *PROGRAM[1:]]))
    tmux("new-session", "-d", "-x", "80", "-y", "24", "-c", str(tmp_path), shell, **variables)
    tmux.sees("1 node, 8 ranks, 8 GPUs +billed at most")
    tmux.press("s")
    tmux.sees(r"y Yes")
    tmux.press("y")
    tmux.sees(r"lumitui +\w+ +sixteen-\w+")
    tmux.press("l")
    tmux.sees("rank [0-7] of 8")
    tmux.sees(r"\[rank0\]: Traceback is only a word here, \[/\] too")
    tmux.press("p")
    tmux.sees("proved +All 8 ranks")
    tmux.sees(r"lumitui +done +sixteen-\w+")

    tmux.press("1", "+")
    tmux.sees(r"nodes +1 +2")
    tmux.sees(r"ranks +8 +16")
    tmux.sees("Send on 2 nodes")
    tmux.press("C-s")
    tmux.sees("Send .* again")
    tmux.press("y")
    tmux.sees("lumitui .* 2 nodes")
    tmux.press("p")
    tmux.sees("proved +All 16 ranks")

    tmux.press("q")
    tmux.sees("ended with 0")
    state = tmux("display", "-p", "#{alternate_on} #{mouse_any_flag} #{cursor_flag}")
    assert state.split() == ["0", "0", "1"], "the screen, the mouse and the cursor are the shell's"
    assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()
    said = tmux("capture-pane", "-p", "-S", "-")
    assert "Traceback" not in said, said
    child, first = history(home)
    assert (child["parent"], child["nodes"], child["ranks"]) == (first["id"], 2, 16)


def test_a_shell_in_the_job_has_the_terminal_and_its_end_leads_back(
    home: Home, tmp_path: Path, tmux: Tmux
) -> None:
    write(tmp_path / "job.yaml", LAPTOP)
    (tmp_path / "hello.py").write_text("import time; print('started', flush=True); time.sleep(300)")
    assert lt(home, "submit", str(tmp_path / "job.yaml"), "--yes").returncode == 0
    run_id = str(history(home)[0]["id"])
    variables = environ(home) | {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
    program = shlex.join([sys.executable, *PROGRAM[1:]])
    tmux("new-session", "-d", "-x", "80", "-y", "24", f"{program}; sleep 600", **variables)
    try:
        tmux.sees("running")
        tmux.press("!")
        tmux.sees("returns to lumitui")
        tmux.press("echo $((40+2)) ${RUN_DIR##*/} $RANK; sleep 100", "Enter")
        tmux.sees(f"42 {run_id} 0")
        tmux.press("C-c")  # the program's, not lumitui's
        tmux.press("exit 3", "Enter")
        tmux.sees("laptop live")
        # A user who closes the window while the shell is open leaves nothing behind: the shell has
        # job control, and gets the signal in lumitui's place.
        tmux.press("!")
        tmux.sees("returns to lumitui")
        tmux.press("echo pid-$PPID-", "Enter")
        tmux.sees(r"pid-\d+-")
        pid = re.findall(r"pid-(\d+)-", tmux.screen())[-1]
        tmux("kill-server")
        wait_until(lambda: is_gone(pid), 20, "the end of lumitui")
    finally:
        lt(home, "cancel", run_id, "--yes")


def test_a_killed_program_leaves_the_terminal_as_before_and_keeps_the_edits(
    home: Home, tmp_path: Path, tmux: Tmux
) -> None:
    write(tmp_path / "job.yaml", LAPTOP)
    variables = environ(home) | {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
    for name in ("COLUMNS", "LINES", "TMUX"):
        variables.pop(name, None)
    program = shlex.join([sys.executable, *PROGRAM[1:]])
    shell = SHELL.format(program=f"sh -c 'echo $$ >pid; exec {program} tui job.yaml' #")
    tmux("new-session", "-d", "-x", "80", "-y", "24", "-c", str(tmp_path), shell, **variables)
    tmux.sees("requests 1 node")
    tmux.press("F2", "Enter")
    tmux.sees("not saved")
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
    tmux.sees("ended with 143")
    wait_until((tmp_path / "after").exists)
    assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()
    assert "requests" not in tmux.screen(), "the full screen is closed"
    for _ in range(2):  # they are kept again
        run = f"sh -c 'echo $$ >pid; exec {program}'"
        tmux("new-window", "-c", str(tmp_path), run, **variables)
        tmux.sees("New .2. has your unsaved edits of job.yaml.")
        tmux.press("2")
        tmux.sees("not saved")
        pid = (tmp_path / "pid").read_text().strip()
        os.kill(int(pid), signal.SIGHUP)
        wait_until(partial(is_gone, pid), 20, "the end of lumitui")
