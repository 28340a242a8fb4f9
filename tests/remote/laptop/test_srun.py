"""The stand-ins for srun, scontrol and timeout.

The expected words are those of srun 22.05, as the mini cluster prints them.
"""

import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lumitui.remote.laptop import srun as stand_ins
from tests.support.jobs.small_jobs import wait_until
from tests.support.servers.embedded_site import running

STAND_INS = [sys.executable, "-I", "-S", str(Path(stand_ins.__file__))]
LIMIT = 60.0


def srun(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the stand-in as a job of two nodes would."""
    job = {"SLURM_JOB_ID": "5", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "node1,node2"}
    return subprocess.run(
        [*STAND_INS, "srun", *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env={**os.environ, "SLURM_NTASKS": "4", "LUMITUI_KILL_WAIT": "1", **job, **environment},
    )


def test_srun_gives_each_task_its_place() -> None:
    place = "echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURMD_NODENAME $SLURM_NTASKS"
    done = srun("--label", "--cpu-bind=v,mask_cpu=fe,fe00", "-v", "bash", "-c", place)
    assert done.returncode == 0, done
    assert sorted(done.stdout.splitlines()) == [
        "0: 0 0 0 node1 4",
        "1: 1 1 0 node1 4",
        "2: 2 0 1 node2 4",
        "3: 3 1 1 node2 4",
    ]
    one_a_node = srun("--ntasks=2", "--ntasks-per-node=1", "bash", "-c", place)
    assert sorted(one_a_node.stdout.splitlines()) == ["0 0 0 node1 2", "1 0 1 node2 2"]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no process chooses its cores")
def test_each_task_has_the_cores_of_its_mask() -> None:
    core = max(os.sched_getaffinity(0))
    least = min(os.sched_getaffinity(0))
    code = "import os; print(*os.sched_getaffinity(0))"
    masks = f"{1 << core:#x},{1 << least:x}"
    for kind in (f"v,mask_cpu:{masks}", f"mask_cpu={masks}"):
        done = srun("--label", "-N2", "-n4", f"--cpu-bind={kind}", sys.executable, "-c", code,
                    SLURM_JOB_NUM_NODES="2", SLURM_JOB_NODELIST="node1,node2")  # fmt: skip
        lines = [f"0: {core}", f"1: {least}", f"2: {core}", f"3: {least}"]
        assert sorted(done.stdout.splitlines()) == lines, done.stderr
    # A core that this machine lacks: the task runs unbound, and not on those of the one before.
    done = srun("--label", "-N1", "-n2", f"--cpu-bind=mask_cpu:{1 << core:x},{1 << 900:x}",
                sys.executable, "-c", code)  # fmt: skip
    assert "slurmstepd: error: sched_setaffinity(900)" in done.stderr
    everything = " ".join(map(str, sorted(os.sched_getaffinity(0))))
    assert f"1: {everything}" in done.stdout.splitlines()


@pytest.mark.parametrize("kind", ["", "none", "cores", "mask_cpu:zz", "map_cpu:0,1", "verbose"])
def test_another_binding_binds_nothing(kind: str) -> None:
    assert stand_ins.bound_cores(kind) == ()


def test_labels_are_as_wide_as_the_last_rank() -> None:
    done = srun("-l", "-n", "11", "bash", "-c", "echo out; printf 'no end' >&2")
    assert set(done.stdout.splitlines()) == {f"{rank:2d}: out" for rank in range(11)}
    assert set(done.stderr.splitlines()) == {f"{rank:2d}: no end" for rank in range(11)}


def test_lines_stay_whole() -> None:
    text = "x" * 30000
    done = srun("--label", "bash", "-c", f"for i in 1 2 3; do printf '%s\\n' {text}; done")
    assert sorted(set(done.stdout.splitlines())) == [f"{rank}: {text}" for rank in range(4)]


def test_a_bad_exit_ends_the_others_in_sruns_words() -> None:
    body = "[ $SLURM_PROCID = 3 ] && { printf bye; exit 7; }; exec sleep 60"
    done = srun("--kill-on-bad-exit=1", "--label", "bash", "-c", body)
    # The highest code: 128 + SIGTERM of those that were ended.
    assert done.returncode == 143
    assert done.stdout == "3: bye\n"
    lines = done.stderr.splitlines()
    assert lines[0] == "srun: error: node2: task 3: Exited with exit code 7"
    assert lines[1] == "srun: launch/slurm: _step_signal: Terminating StepId=5.0"
    assert sorted(lines[2:]) == [
        "srun: error: node1: tasks 0-1: Terminated",
        "srun: error: node2: task 2: Terminated",
    ]


def test_without_the_option_the_others_go_on() -> None:
    body = "case $SLURM_PROCID in 1) exit 3;; 2) exit 9;; *) sleep 0.5; echo done;; esac"
    done = srun("bash", "-c", body)
    assert done.returncode == 9
    assert done.stdout == "done\ndone\n"
    assert sorted(done.stderr.splitlines()) == [
        "srun: error: node1: task 1: Exited with exit code 3",
        "srun: error: node2: task 2: Exited with exit code 9",
    ]


def test_signals_have_their_names() -> None:
    done = srun("-n", "1", "bash", "-c", "kill -SEGV $$")
    assert done.stderr.splitlines()[-1] == "srun: error: node1: task 0: Segmentation fault"
    assert done.returncode == 139
    missing = srun("--label", "-n1", "no-such-program")
    assert missing.returncode == 2
    assert missing.stderr.splitlines() == [
        "0: slurmstepd: error: execve(): no-such-program: No such file or directory",
        "srun: error: node1: task 0: Exited with exit code 2",
    ]


def test_what_a_task_leaves_behind_ends_with_the_step() -> None:
    mark = f"60.{secrets.randbelow(10**9):09d}"
    begun = time.monotonic()
    done = srun("--label", "-n", "1", "bash", "-c", f"sleep {mark} & echo done")
    assert done.stdout == "0: done\n"
    assert time.monotonic() - begun < LIMIT / 2
    wait_until(lambda: not running(mark), 10, "the end of a process that was killed")


@pytest.mark.parametrize(
    "arguments", [["-n", "x", "true"], ["-n", "0", "true"], ["-N", "3", "true"], ["-n", "2"]]
)
def test_a_step_that_cannot_be_is_an_error(arguments: list[str]) -> None:
    done = srun(*arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("srun: ")
    assert "Traceback" not in done.stderr


def test_srun_forwards_signals() -> None:
    body = "trap 'echo usr1' USR1; trap 'echo term; exit 3' TERM; echo up; "
    body += "while :; do sleep .1; done"
    with subprocess.Popen(
        [*STAND_INS, "srun", "-n", "1", "-l", "bash", "-c", body],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout
        assert child.stdout.readline() == "0: up\n"
        child.send_signal(signal.SIGUSR1)
        assert child.stdout.readline() == "0: usr1\n"
        child.terminate()
        assert child.stdout.readline() == "0: term\n"
        assert child.wait(LIMIT) == 3


def test_scontrol_names_loopback_and_nothing_else() -> None:
    call = [*STAND_INS, "scontrol"]
    done = subprocess.run(
        [*call, "show", "hostnames", "node1,node2"], capture_output=True, text=True
    )
    assert done.stdout == "127.0.0.1\n127.0.0.1\n"
    other = subprocess.run([*call, "show", "job"], capture_output=True, text=True)
    assert (other.returncode, other.stdout) == (1, "")


def test_timeout_ends_a_command_like_gnus() -> None:
    call = [*STAND_INS, "timeout"]
    assert subprocess.run([*call, "0.2", "sleep", "60"], timeout=LIMIT).returncode == 124
    assert subprocess.run([*call, "60", "sh", "-c", "exit 5"], timeout=LIMIT).returncode == 5
    deaf = ["sh", "-c", "trap '' TERM; sleep 60"]
    assert subprocess.run([*call, "-k", "0.2", "0.2", *deaf], timeout=LIMIT).returncode == 124
