"""Logs as programs write them, with troubles that ended nothing, and what `diagnose` makes of them.

Texts: PyTorch's of its sources and of what people posted (the place is named), Slurm's 22.05 and
SingularityCE's as they print them.
"""

import subprocess
import sys
from pathlib import Path

import pytest

import lumitui.app
from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.failed_logs import why

KEY_ERROR = """\
2: Traceback (most recent call last):
2:   File "train.py", line 20, in <module>
2:     config["missing"]
2: KeyError: 'missing'
srun: error: nid005001: task 2: Exited with exit code 1
srun: Terminating StepId=9.0
"""


def test_fatal_is_singularitys_only_where_singularity_writes_it() -> None:
    log = "3: 2026-11-21 10:00:00 train FATAL: validation went astray\n"
    assert [item.id for item in why(log, rank=3)] == ["unknown"]
    for text in (
        "FATAL:   container creation failed: mount /x->/x error: while mounting /x: no such file",
        # With a terminal's colours.
        "\x1b[31mFATAL:  \x1b[0m container creation failed: mount error",
    ):
        found = why(f"3: {text}\n{log}", rc=255, rank=3)
        assert found[0].id == "container"
        assert "creation failed: mount" in found[0].sentence
    text = (
        "0: FATAL:   While checking container encryption: could not open image "
        "/appl/x.sif: failed to retrieve path for /appl/x.sif"
    )
    assert "image /appl/x.sif cannot" in why(text, rc=255, rank=0)[0].sentence


HARMLESS = [
    "2: flash-attn not used (ModuleNotFoundError: No module named 'flash_attn')",
    "2: CUDA out of memory. Trying batch size 16",
    "2: torch.OutOfMemoryError caught: HIP out of memory. Tried to allocate 2.00 GiB, halving",
    "2: [W socket.cpp:436] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 "
    "- Address already in use).",
    "[rank2]:[W1121 10:00:00.123456789 socket.cpp:204] [c10d] The server socket has failed to "
    "bind to 0.0.0.0:29500 (errno: 98 - Address already in use).",
    "2: [W socket.cpp:663] [c10d] The client socket has failed to connect to [nid005001]:29500 "
    "(errno: 111 - Connection refused).",
    "[rank2]:W1121 10:49:46.920000 15192 torch/_inductor/utils.py:1028] OSError: [Errno 28] No "
    "space left on device",
    "2: memory.events: low 0 high 0 max 0 oom 0 oom_kill 0",
    "2: 2026-11-21 10:00:00 WARNING cache: OSError: [Errno 28] No space left on device, going on",
    "2: x.py:3: UserWarning: cannot write: [Errno 122] Disk quota exceeded",
]


@pytest.mark.parametrize("line", HARMLESS)
def test_what_a_rank_got_over_does_not_hide_the_exception_that_ended_it(line: str) -> None:
    found = why(f"{line}\n{KEY_ERROR}")
    assert [(item.id, item.rank, item.line) for item in found] == [
        ("exception", 2, "KeyError: 'missing'")
    ]


@pytest.mark.parametrize("line", [line for line in HARMLESS if " caught: " not in line])
def test_a_warning_is_no_cause_without_an_exception_either(line: str) -> None:
    assert [item.id for item in why(f"{line}\n2: bye\n", rc=3)] == ["unknown"]


def test_an_exception_that_a_rule_knows_is_explained_by_the_rule() -> None:
    log = "\n".join(HARMLESS) + "\n" + KEY_ERROR.replace(
        "KeyError: 'missing'", "ModuleNotFoundError: No module named 'h5py'"
    )  # fmt: skip
    found = why(log)
    assert [(item.id, item.rank) for item in found] == [("no-module", 2)]
    assert "h5py" in found[0].sentence


def test_the_cause_that_an_exception_was_raised_from_explains_it() -> None:
    log = KEY_ERROR.replace(
        "2: Traceback",
        "2: Traceback (most recent call last):\n"
        "2:   File \"train.py\", line 9, in save\n"
        "2: OSError: [Errno 122] Disk quota exceeded: '/scratch/x.pt'\n2: \n"
        "2: The above exception was the direct cause of the following exception:\n2: \n"
        "2: Traceback",
        1,
    ).replace("KeyError: 'missing'", "RuntimeError: the checkpoint could not be saved")  # fmt: skip
    assert [(item.id, item.rank) for item in why(log)] == [("quota", 2)]
    # What was being handled is reported only when something ran out, and with what came of it.
    during = "During handling of the above exception, another exception occurred:"
    found = why(log.replace("The above exception was the direct cause of the following exception:",
                            during))  # fmt: skip
    assert [item.id for item in found] == ["quota", "exception"]


def test_main_memory_that_slurm_noticed_comes_before_the_exception() -> None:
    log = KEY_ERROR.replace(
        "KeyError: 'missing'", "RuntimeError: DataLoader worker (pid 7) was killed"
    ) + (
        "2: slurmstepd-nid005001: error: Detected 1 oom_kill event in StepId=9.0. Some of the step "
        "tasks have been OOM Killed.\n"
    )  # fmt: skip
    assert [item.id for item in why(log)] == ["host-memory", "exception"]


def test_the_job_says_of_a_failed_probe_what_the_rules_search_for() -> None:
    script = (Path(lumitui.app.__file__).parents[1] / "templates/job/proof.sh").read_text()
    assert PROBE.splitlines()[1].replace("with 1", "with $probe") in script


PROBE = """\
srun: error: Unable to create step for job 9: Job/step already completing or completed
lumitui: the probe ended with 1; the binding is not proven.
"""


def test_the_trouble_of_the_probe_is_not_the_trouble_of_the_ranks() -> None:
    assert [item.id for item in why(PROBE + KEY_ERROR)] == ["exception"]
    assert [item.id for item in why(PROBE + "2: bye\n", rc=3)] == ["unknown"]
    cancelled = (
        "slurmstepd: error: *** STEP 9.0 ON nid005001 CANCELLED AT x DUE TO TIME LIMIT ***\n"
    )
    assert [item.id for item in why(cancelled + PROBE + "2: bye\n", rc=3)] == ["unknown"]


def test_what_ended_an_earlier_launch_is_not_what_ended_the_last() -> None:
    script = (Path(lumitui.app.__file__).parents[1] / "templates/job/relaunch.sh").read_text()
    assert "lumitui: launch $launch of $((relaunch + 1)): $rank ended with $rc" in script
    again = "lumitui: launch 2 of 3: rank 2 ended with 1 after step 8; goes on from its last\n"
    assert [item.id for item in why(KEY_ERROR + again + "2: bye\n", rc=3)] == ["unknown"]


def test_where_a_strict_proof_launched_nothing_the_probes_trouble_is_the_cause() -> None:
    strict = "lumitui: local rank 0 has its cores 1-7 on 0 of 1 nodes; nothing was launched.\n"
    found = why(PROBE + strict, rc=78, rank=None)
    assert [item.id for item in found] == ["step-refused", "proof-strict"]


def test_a_step_that_cleans_up_after_the_ranks_is_not_theirs() -> None:
    refused = "srun: error: Unable to create step for job 9: Job/step already completing\n"
    assert [item.id for item in why(KEY_ERROR + refused)] == ["exception"]
    assert [item.id for item in why("2: bye\n" + refused, rc=3)] == ["unknown"]
    assert [item.id for item in why(refused, rank=None)] == ["step-refused"]


HANDLED = """\
{rank}: Traceback (most recent call last):
{rank}:   File "wandb/sdk/lib/retry.py", line 131, in __call__
{rank}: requests.exceptions.ConnectTimeout: HTTPSConnectionPool(host='api.wandb.ai', port=443)
"""


def test_of_the_failing_rank_the_last_exception_counts() -> None:
    fatal = KEY_ERROR.replace("KeyError: 'missing'", "ValueError: bad label 7")
    steps = "".join(f"2: step {step} loss 0.5\n" for step in range(5))
    found = why(HANDLED.format(rank=2) + steps + fatal)
    assert [(item.id, item.line) for item in found] == [("exception", "ValueError: bad label 7")]


def test_an_exception_long_before_the_end_was_handled() -> None:
    steps = "".join(f"2: step {step} loss 0.5\n" for step in range(500))
    first, *perhaps = why(HANDLED.format(rank=2) + steps, rc=3)
    assert first.id == "unknown"
    assert all(one.sentence.startswith("Possibly: ") for one in perhaps)
    # No exception ends a process with a segmentation fault.
    killed = "srun: error: nid005001: task 2: Segmentation fault (core dumped)\n"
    found = why(HANDLED.format(rank=2) + killed, rc=139)
    assert [item.id for item in found] == ["killed-by-signal"]


def test_under_torchrun_a_signal_is_no_exception() -> None:
    log = """\
0: Traceback (most recent call last):
0:   File "wandb/sdk/lib/retry.py", line 131, in __call__
0: requests.exceptions.ConnectTimeout: HTTPSConnectionPool(host='api.wandb.ai', port=443)
0: torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
0: ============================================================
0: Root Cause (first observed failure):
0: [0]:
0:   rank      : 2 (local_rank: 2)
0:   exitcode  : -11 (pid: 15592)
0:   traceback : Signal 11 (SIGSEGV) received by PID 15592
0: ============================================================
srun: error: nid005001: task 0: Exited with exit code 1
"""
    (found,) = why(log, rank=0)
    assert (found.id, "SIGSEGV" in found.sentence) == ("killed-by-signal", True)
    aborted = log.replace("-11", "-6")
    first = why(aborted, rank=0)[0]
    assert (first.id, first.rank) == ("no-internet", 2)


def test_torchruns_report_holds_the_traceback_that_counts() -> None:
    log = """\
0: Traceback (most recent call last):
0: ValueError: of some rank, without its number
0: torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
0: Failures:
0:   <NO_OTHER_FAILURES>
0: Root Cause (first observed failure):
0: [0]:
0:   rank      : 2 (local_rank: 2)
0:   exitcode  : 1 (pid: 15592)
0:   traceback : Traceback (most recent call last):
0:     File "train.py", line 20, in main
0:       config["missing"]
0:   torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.
0: ============================================================
0: Traceback (most recent call last):
0: OSError: [Errno 9] Bad file descriptor
"""
    assert [(item.id, item.rank) for item in why(log, rank=0)] == [("gpu-memory", 2)]


def test_the_prefix_of_torchrun_is_a_local_rank() -> None:
    log = """\
1: [default3]:[rank11]: Traceback (most recent call last):
1: [default3]:[rank11]:   File "train.py", line 5, in <module>
1: [default3]:[rank11]: KeyError: 'x'
1: E1121 torch/distributed/elastic/multiprocessing/api.py:984] failed (exitcode: 1)
"""
    assert why(log, rank=1)[0].rank == 11
    assert why(log.replace("[rank11]: ", ""), rank=1)[0].rank is None


ENDED_BADLY = """\
import gc, logging, sys, threading

class Writer:
    def __del__(self):
        self.queue.put(None)

writer = Writer()
thread = threading.Thread(target=lambda: 1 / 0)
thread.start(); thread.join()
sys.stderr.flush()
logging.raiseExceptions = True
logging.warning("%d", "no number")
raise ValueError("loss is NaN at step 12")
"""


def test_what_python_prints_aside_and_while_it_ends_is_no_cause() -> None:
    """A thread's end, logging's own trouble, a finalizer of a dying interpreter."""
    done = subprocess.run([sys.executable, "-c", ENDED_BADLY], capture_output=True, text=True)
    for words in ("Exception in thread", "Logging error", "Exception ignored ", "ValueError"):
        assert words in done.stderr
    log = "".join(f"2: {line}\n" for line in done.stderr.splitlines())
    (found,) = why(f"{log}srun: error: nid005001: task 2: Exited with exit code 1\n")
    assert (found.id, found.line) == ("numerics", "ValueError: loss is NaN at step 12")


@pytest.mark.parametrize(
    ("first", "second", "cause"),
    [
        ("OSError: [Errno 122] Disk quota exceeded", "FileNotFoundError: ckpt/x.pt", "quota"),
        ("torch.OutOfMemoryError: HIP out of memory.", "AttributeError: no x", "gpu-memory"),
        ("KeyError: 'a'", "AttributeError: no x", "exception"),
    ],
)
def test_what_ran_out_is_the_cause_although_its_handling_failed(
    first: str, second: str, cause: str
) -> None:
    trace = '2: Traceback (most recent call last):\n2:   File "t.py", line 1, in f\n2: '
    during = "2: During handling of the above exception, another exception occurred:\n2: \n"
    found = why(f"{trace}{first}\n2: \n{during}{trace}{second}\n")
    assert found[0].id == cause
    assert found[0].line == (second if cause == "exception" else first)
    assert found[-1].line == second


def test_an_agent_that_slurm_ended_is_not_the_cause() -> None:
    """torchrun on two nodes: the log of one whose script raised on one of them."""
    log = """\
0: Traceback (most recent call last):
0:   File "train.py", line 11, in <module>
0: RuntimeError: boom
0: Traceback (most recent call last):
0:   File "torch/distributed/launcher/api.py", line 383, in launch_agent
0: torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
0: Root Cause (first observed failure):
0: [0]:
0:   rank      : 1 (local_rank: 1)
0:   exitcode  : 1 (pid: 5885) 
0:   traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
0: ============================================================
srun: error: node1: task 0: Exited with exit code 1
1: Traceback (most recent call last):
1:   File "torch/distributed/elastic/multiprocessing/api.py", line 86, in _terminate_process_handler
1: torch.distributed.elastic.multiprocessing.api.SignalException: Process 4750 got signal: 15
srun: error: node2: task 1: Exited with exit code 1
"""
    (found,) = diagnose(RunEnd(State.FAILED, "FAILED", rc=1, log=log))
    assert (found.line, found.rank) == ("RuntimeError: boom", 1)


def test_a_kernel_that_the_gpu_lacks_is_no_wrong_device() -> None:
    found = why("2: scan failed: hipErrorInvalidDeviceFunction: invalid device function\n")
    assert [item.id for item in found] == ["gpu-architecture"]
    assert [item.id for item in why("2: hipErrorInvalidDevice: x\n")] == ["device-ordinal"]
