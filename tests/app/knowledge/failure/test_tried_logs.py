"""Logs of slips that users make: each has a cause and advice of its own."""

import pytest

from tests.support.jobs.failed_logs import why

BASH = "/var/spool/slurmd/job7/slurm_script: line"
KILLED_WORKER = """\
RuntimeError: DataLoader worker (pid 12345) is killed by signal: Killed.
Traceback (most recent call last):
  File "train.py", line 88, in <module>
RuntimeError: DataLoader worker (pid(s) 12345) exited unexpectedly
"""


@pytest.mark.parametrize(
    ("log", "cause", "advice"),
    [
        (
            "nid1:4:5 [4] nccl_ofi_net.c:1956 NCCL WARN NET/OFI Request 0x14a completed with "
            "error. RC: 5. Error: Input/output error. Completed length: 0",
            "network",
            "NCCL_DEBUG",
        ),
        (
            "slurmstepd: error: couldn't chdir to `/scratch/p/run': Permission denied: going to "
            "/tmp instead\nslurmstepd: error: execve(): ./train.sh: No such file or directory",
            "permission",
            "your own folders",
        ),
        (
            "Lmod has detected the following error: The following module(s) are unknown:\n"
            f'"pytorch/1.9"\n{BASH} 12: python3: command not found',
            "no-environment-module",
            "module spider",
        ),
        (
            "Memory for database: unable to open database file: database is locked\n"
            "RuntimeError: miopenStatusInternalError",
            "file-lock",
            "MIOPEN_USER_DB_PATH",
        ),
        (
            "RuntimeError: CUDA error: unspecified launch failure\nNVRM: Xid (PCI:0000:65:00): 79, "
            "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "gpu-hardware",
            "--exclude",
        ),
        (
            "srun: Job 123 step creation temporarily disabled, retrying (Requested nodes are "
            "busy)\nslurmstepd: error: *** JOB 123 ON nid1 CANCELLED AT 2025-04-01T02:00:11 DUE "
            "TO TIME LIMIT ***",
            "step-waited",
            "--exact",
        ),
        (f"{BASH} 13: syntax error: unexpected end of file", "script-syntax", "bash -n"),
        (
            f"{BASH} 10: DATA: command not found\ntrain.py: error: argument --data: expected one",
            "script-assignment",
            "without spaces",
        ),
        (
            "wandb.errors.errors.CommError: Run initialization has timed out after 90.0 sec.",
            "no-internet",
            "WANDB_MODE",
        ),
        ("ERROR: No matching distribution found for x==4.44", "no-internet", "or packages"),
        (
            "RuntimeError: CUDA error: an illegal memory access was encountered",
            "gpu-fault",
            "AMD_SERIALIZE_KERNEL",
        ),
        (KILLED_WORKER, "host-memory", "data-loader workers"),
    ],
)
def test_what_a_stranger_tried_gets_its_own_cause_and_advice(
    log: str, cause: str, advice: str
) -> None:
    first = why(log)[0]
    assert (first.id, advice in first.do) == (cause, True), first


def test_a_step_that_waited_and_then_ran_is_no_cause() -> None:
    log = (
        "srun: Job 123 step creation temporarily disabled, retrying (Requested nodes are busy)\n"
        "epoch 1\nsolver failed\n"
    )
    assert [item.id for item in why(log)] == ["unknown"]


STEP = "/var/spool/slurmd/job7/slurm_script: line 12:"


@pytest.mark.parametrize(
    ("line", "program"),
    [
        (f"{STEP} python3.12: No such file or directory", "python3.12"),
        (
            f"{STEP} /users/a/venv/bin/python: No such file or directory",
            "/users/a/venv/bin/python",
        ),
        (
            "3: node: line 1: exec: /x/bin/python: cannot execute: No such file or directory",
            "/x",
        ),
        (
            "t.sh: /users/a/bin/python: bad interpreter: No such file or directory",
            "/users/a/bin",
        ),
        ("timeout: failed to run command '/opt/x/python': No such file or directory", "/opt/x"),
        ("taskset: failed to execute python3: No such file or directory", "python3"),
        ("FATAL:   stat /opt/venv/bin/python: no such file or directory", "/opt/venv/bin/python"),
    ],
)
def test_a_missing_interpreter_is_no_missing_file(line: str, program: str) -> None:
    first = why(f"starting\n{line}\n", rc=127)[0]
    assert first.id == "no-command" and program in first.sentence
    assert "interpreter" in first.do and "workdir" not in first.do


def test_a_file_of_the_program_is_still_one() -> None:
    assert why("cat: /x/python: No such file or directory\n")[0].id == "no-file"
    assert why(f"{STEP} ./data.csv: No such file or directory\n")[0].id == "no-file"


def test_a_step_that_slingshot_refuses_beside_a_running_one() -> None:
    for begin in ("Unable to create step for job 7", "Application launch failed"):
        first = why(f"srun: error: {begin}: Error configuring interconnect\n")[0]
        assert first.id == "interconnect"
        assert "-n 1" in first.do and "memory" not in first.do and "exclude" not in first.do


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        ("[stderr]ModuleNotFoundError: No module named 'einops'", "no-module"),
        ("[rank0][stderr]ModuleNotFoundError: No module named 'einops'", "no-module"),
        (
            "Exception raised from throwTimeoutError at ../torch/csrc/distributed/c10d/socket.cpp",
            "rendezvous",
        ),
        ("srun: error: Unable to layout tasks on given cpus", "step-refused"),
        (f"{STEP} /usr/share/lmod/lmod: No such file or directory", "no-environment-module"),
    ],
)  # fmt: skip
def test_lines_of_which_nothing_was_known(log: str, cause: str) -> None:
    assert why(f"starting\n{log}\n")[0].id == cause


def test_a_module_whose_name_is_on_the_next_line_is_named() -> None:
    log = (
        "Lmod has detected the following error:  The following module(s) are unknown:\n"
        '"rocm/6.2.2"\n\nAlso try "module spider ..."\n'
    )
    first = why(log)[0]
    assert '(The following module(s) are unknown: "rocm/6.2.2")' in first.sentence
    assert "`modules:` in the job file" in first.do
    ranks = '0: Lmod has detected the following error: These are unknown:\n1: x\n0: "a/1"\n'
    assert 'unknown: "a/1"' in why(ranks)[0].sentence
