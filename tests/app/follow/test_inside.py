"""Into a running job: a command in its environment, a terminal of its own, a port of it here."""

import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path

import pytest

from lumitui.app.history.history import History
from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.small_jobs import wait_until
from tests.support.program.command_line import (
    CLUSTER,
    LAPTOP,
    PROGRAM,
    Here,
    envelope,
    environ,
    history,
    lt,
    told,
    write,
)
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

SLEEPS = """\
import http.server, os, threading, time
if os.environ["RANK"] == "1":
    server = http.server.HTTPServer(("", PORT), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
while not os.path.exists(os.environ["RUN_DIR"] + "/enough"):
    time.sleep(0.1)
"""
TWO_RANKS = CLUSTER | {"launcher": "srun", "strategy": "ddp", "gpus_per_node": 2}
SPEAKS = ["python3", "-c", "import json,os; print(json.dumps([dict(os.environ), os.getcwd()]))"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def running(home: Home, path: Path, job: dict[str, object], *lines: str) -> Iterator[str]:
    """Send a job that ends when its folder has a file `enough`; yield the run's id."""
    write(path, job, *lines)
    (path.parent / "hello.py").write_text(SLEEPS.replace("PORT", str(free_port())))
    with closing(Runs(home.settings)) as runs:
        run = runs.send(runs.preview(parse_job(path.read_text(), "job.yaml"), path.parent))
        try:
            wait_until(lambda: state(runs, run.id) is State.RUNNING, 60, "the start of the job")
            yield run.id
        finally:
            if not state(runs, run.id).is_final:
                runs.cancel(run.id)


def state(runs: Runs, run_id: str) -> State:
    runs.refresh()
    return runs.history.get(run_id).state


@dataclass(frozen=True)
class Inside:
    """A run of two ranks that goes on, on the mini cluster."""

    home: Home
    run_id: str
    project: Path


@pytest.fixture(scope="module")
def inside(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    """One job for all tests of this module on the cluster; the last one ends it."""
    folder = tmp_path_factory.mktemp("inside")
    home = Home(folder / "config", folder / "data")
    (home.config / "sites").mkdir(parents=True)
    home.add_cluster(cluster)
    path = folder / "work" / "job.yaml"
    with running(home, path, TWO_RANKS, 'env: {WORDS: "two  words $LATER"}') as run_id:
        yield Inside(home, run_id, path.parent)


def environment(home: Home, run_id: str, *options: str) -> tuple[dict[str, str], str]:
    """Return the variables and the folder that a command has; they come with the rank's start."""
    for _ in range(40):
        done = lt(home, "shell", run_id, *options, "--", *SPEAKS)
        assert done.returncode == 0, done.stderr
        if "found no process" not in done.stderr:
            variables, folder = json.loads(done.stdout)
            return dict(variables), str(folder)
        time.sleep(0.5)
    raise AssertionError("the job's ranks never appeared")


@pytest.mark.both_slurms
def test_a_command_that_the_jobs_end_kills_has_not_succeeded(
    cluster: Cluster, home: Home, tmp_path: Path
) -> None:
    home.add_cluster(cluster)
    with running(home, tmp_path / "job.yaml", TWO_RANKS) as run_id:
        environment(home, run_id)
        deaf = "trap '' TERM; while :; do echo on; sleep 1; done"
        command = subprocess.Popen(
            [*PROGRAM, "shell", run_id, "--", "bash", "-c", deaf],
            env=environ(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert command.stdout is not None
        assert command.stdout.readline() == "on\n"
        assert lt(home, "cancel", run_id, "--yes").returncode == 0
        said = command.communicate(timeout=180)[1]
    assert command.returncode in (137, 143), said


@pytest.mark.both_slurms
def test_a_command_has_a_ranks_container_its_variables_its_input_and_its_exit_code(
    inside: Inside,
) -> None:
    home, run_id = inside.home, inside.run_id
    variables, folder = environment(home, run_id, "--rank", "1")
    assert (variables["RANK"], variables["WORLD_SIZE"]) == ("1", "2")
    assert variables["WORDS"] == "two  words $LATER"
    assert variables["RUN_DIR"] == folder
    assert any(name.endswith("_CONTAINER") for name in variables), sorted(variables)
    assert variables["SLURM_JOB_ID"] == history(home)[0]["job_id"]
    hostile = 'a\'b "c" $(touch no) \n#SBATCH'
    argument = lt(home, "shell", run_id, "--", "printf", "%s", hostile)
    assert argument.stdout == hostile
    piped = subprocess.run(
        [*PROGRAM, "shell", run_id, "--", "sh", "-c", "wc -c; exit 7"],
        input=b"x" * 300_000,
        capture_output=True,
        env=environ(home),
        timeout=60,
    )
    assert (piped.stdout.split(), piped.returncode) == ([b"300000"], 7)
    assert not list(Path(folder).glob(".step-*")), "a script was left in the run's folder"
    kept = History(home.settings.history)
    kept.update(run_id, state=State.QUEUED)  # as it was before anybody heard of its start
    kept.close()
    assert lt(home, "shell", run_id, "--", "true").returncode == 0
    told(lt(home, "shell", run_id, "--rank", "2", "--", "true"), 2, "has no rank 2")
    told(lt(home, "shell", run_id, "--node", "no'de", "--", "true"), 4, "has no node")
    told(lt(home, "shell", run_id), 2, "needs a terminal")


def test_a_shell_has_a_terminal_that_follows_this_one(inside: Inside) -> None:
    home, run_id = inside.home, inside.run_id
    environment(home, run_id)
    process, screen = pty.fork()
    if process == 0:
        # By a shell whose window was another.
        os.execve(PROGRAM[0], [*PROGRAM, "shell", run_id], environ(home, COLUMNS="70", LINES="20"))
    shown = b""

    def sees(words: str, seconds: float = 60) -> None:
        nonlocal shown
        deadline = time.monotonic() + seconds
        while not re.search(words.encode(), shown):
            assert time.monotonic() < deadline, shown.decode("utf-8", "replace")
            if select.select([screen], [], [], 0.2)[0]:
                shown += os.read(screen, 65536)
        shown = b""

    ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
    os.write(screen, b"echo run-$((40+2)); tty\n")
    sees(r"run-42\r\n.*pts")
    # srun hears of a size once its step has called back, which takes seconds on a busy machine.
    for rows in range(30, 60):
        ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 101, 0, 0))
        for _ in range(2000):  # a window that is dragged: one comes while another is answered
            os.kill(process, signal.SIGWINCH)
            time.sleep(0.0001)
        os.write(screen, b"sleep 1; stty size\n")
        with suppress(AssertionError):
            sees(rf"{rows} 101", 4)
            break
    else:
        raise AssertionError("no size of the window reached the shell")
    os.write(screen, b"echo now-$((1+1)); sleep 600\n")
    sees("now-2")
    os.write(screen, b"\x03")  # Ctrl-C is the program's, not lumitui's
    os.write(screen, b"echo still-$((1+1)); exit 5\n")
    sees(r"still-2")
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 5
    os.close(screen)
    with closing(Runs(home.settings)) as runs:
        assert state(runs, run_id) is State.RUNNING


def test_a_port_of_the_job_is_here_until_the_job_ends(inside: Inside) -> None:
    home, run_id = inside.home, inside.run_id
    environment(home, run_id, "--rank", "1")
    port = re.search(r'\("", ([0-9]+)\)', (inside.project / "hello.py").read_text())
    assert port is not None
    here = free_port()
    words = ["forward", run_id, f"{port[1]}:{here}", "--rank", "1"]
    process = subprocess.Popen(
        [*PROGRAM, *words], stderr=subprocess.PIPE, text=True, env=environ(home)
    )
    assert process.stderr is not None
    try:
        assert f"127.0.0.1:{here} forwards to port" in process.stderr.readline()
        assert "is up" in process.stderr.readline()
        with socket.create_connection(("127.0.0.1", here), timeout=30) as client:
            client.sendall(b"GET /hello.py HTTP/1.0\r\n\r\n")
            answer = b"".join(iter(lambda: client.recv(65536), b""))
        assert b"200 OK" in answer and b"serve_forever" in answer
        told(lt(home, "forward", run_id, f"9:{here}"), 2, "cannot be used")
        lt(home, "cancel", run_id, "--yes")
        assert "so the port is closed" in process.stderr.read()
        assert process.wait(90) == 0
    finally:
        process.kill()
        process.wait()
    told(lt(home, "shell", run_id, "--", "true"), 2, "not running", "Choose a run that")


def test_on_this_machine_a_command_has_the_runs_environment(home: Home, path: Path) -> None:
    with running(home, path, LAPTOP, "env: {WORDS: here}") as run_id:
        variables, folder = environment(home, run_id)
        assert variables["WORDS"] == "here" and variables["RUN_DIR"] == folder
        assert lt(home, "shell", run_id, "--", "sh", "-c", "exit 3").returncode == 3


def test_wait_returns_when_all_runs_have_ended(home: Home, here: Here, path: Path) -> None:
    with running(home, path, LAPTOP) as run_id:
        told(here("wait", run_id, "--timeout", "0.5"), 124, "is still running")
        folder = environment(home, run_id)[1]
        (Path(folder) / "enough").touch()
        done = here("wait", run_id, run_id, "--json")
        assert done.returncode == 0, done.stderr
        assert [row["state"] for row in envelope(done)["data"]] == ["done", "done"]


@pytest.mark.parametrize("ports", ["", "x", "0", "70000", "1:2:3", "6006:", "-1"])
def test_a_wrong_port_is_refused(here: Here, ports: str) -> None:
    told(here("forward", "last", "--", ports), 2)
