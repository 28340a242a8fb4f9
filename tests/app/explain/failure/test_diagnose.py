"""The reasons of a run's end: from what Slurm decided, the exit code and the log."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumitui.app.explain.failure.diagnose import diagnose
from lumitui.app.explain.failure.diagnosis import Diagnosis, Ending
from lumitui.app.explain.failure.matching import Evidence
from lumitui.app.explain.failure.meanings import STATE_RULES
from lumitui.app.explain.failure.reading import read
from lumitui.app.explain.failure.rules.table import CONSEQUENCES, RULES
from lumitui.app.explain.safe_text import CONTROL, plain
from lumitui.app.job.spec import JobSpec
from lumitui.remote.scheduler.protocol import State
from tests.support.jobs.small_jobs import hello_job

WATCHDOG = (
    "[rank{0}]:[E1121 03:01:02.123 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=600000) ran for 600026 milliseconds before timing out."
)

# As torch 2.13's torchrun wrote it: rank 1 raised, rank 0 lost its peer; one launcher a node, so
# that srun's label is the node's number.
TORCHRUN = """\
1: [rank3]: Traceback (most recent call last):
1: [rank3]:   File "train.py", line 5, in <module>
1: [rank3]:     raise RuntimeError("boom here")
1: [rank3]: RuntimeError: boom here
1: [rank2]: Traceback (most recent call last):
1: [rank2]:   File "train.py", line 6, in <module>
1: [rank2]:     d.barrier()
1: [rank2]: RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]
1: Traceback (most recent call last):
1:   File "torch/distributed/launcher/api.py", line 383, in launch_agent
1:     raise ChildFailedError(
1: torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
1: ============================================================
1: Failures:
1: [1]:
1:   rank      : 2 (local_rank: 0)
1:   exitcode  : -15 (pid: 19736)  (SIGTERM)
1: ------------------------------------------------------------
1: Root Cause (first observed failure):
1: [0]:
1:   time      : 2026-11-21_04:51:13
1:   host      : nid005002
1:   rank      : 3 (local_rank: 1)
1:   exitcode  : 1 (pid: 19737)
1:   traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
1: ============================================================
srun: error: nid005002: task 1: Exited with exit code 1
"""


def why(
    log: str, *, rc: int | None = 1, rank: int | None = None, spec: JobSpec | None = None
) -> list[Diagnosis]:
    return diagnose(Ending(State.FAILED, "FAILED", "", rc, rank, log, spec=spec))


def bundled() -> JobSpec:
    """Return a job of a bundled trainer."""
    return hello_job().model_copy(update={"script": None, "trainer": "ddp"})


@pytest.mark.parametrize(
    ("line", "expected", "rank"),
    [
        ("slurmstepd: error: *** STEP 9.0 ON nid005001 CANCELLED AT 2026-01-01T00:00:00 "
         "DUE TO TIME LIMIT ***", "time-limit", None),
        ("slurmstepd: error: *** JOB 9 ON nid005001 CANCELLED AT 2026-01-01T00:00:00 "
         "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***", "node-failed", None),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=9.0. Some of the step tasks "
         "have been OOM Killed.", "host-memory", None),
        ("3: RuntimeError: Must bind to a non-empty set of CPU indices", "numa-binding", 3),
        ("bash: line 1: scontrol: command not found", "no-scontrol", None),
        ("2: FileNotFoundError: [Errno 2] No such file or directory: 'scontrol'",
         "no-scontrol", 2),
        ("1: libfabric:9:core:mr:ofi_monitor: kdreg2 monitor not available", "memory-monitor", 1),
        ("0: nid005001: NCCL WARN Failed to find reverse path from remNode 0/c1000",
         "partial-topology", 0),
        ("srun: error: nid005001: task 3: Out Of Memory", "host-memory", 3),
        ("5: torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.",
         "gpu-memory", 5),
        ("[rank2]: torch.OutOfMemoryError: CUDA out of memory.", "gpu-memory", 2),
        ("srun: error: CPU binding outside of job step allocation, allocated CPUs are: 0xFE",
         "cpu-bind", None),
        ("srun: error: Unable to create step for job 9: More processors requested than "
         "permitted", "step-refused", None),
        ("0: RuntimeError: The server socket has failed to listen on any local network address. "
         "port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in "
         "use", "port-in-use", 0),
        ("3: OSError: [Errno 122] Disk quota exceeded", "quota", 3),
        ("3: OSError: [Errno 28] No space left on device: '/tmp/x'", "no-space", 3),
        (" 3: ModuleNotFoundError: No module named 'deepspeed.ops'", "no-module", 3),
        ("3: FileNotFoundError: [Errno 2] No such file or directory: '../resources/x.hdf5'",
         "no-file", 3),
        ("0: slurmstepd: error: execve(): /p/venv/bin/python: Exec format error",
         "architecture", 0),
        ("FATAL:   While checking container encryption: the image's architecture (amd64) could not "
         "run on the host's (arm64)", "architecture", None),
        ("3: python: can't open file '/a/train.py': [Errno 2] No such file or directory",
         "no-file", 3),
        ("3: FATAL:   could not open image /appl/x.sif: failed to retrieve path", "no-image", 3),
        ("3: FATAL:   permission denied", "container-command", 3),
        ("3: FATAL:   container creation failed: mount /x->/y error", "container", 3),
        ("Lmod has detected the following error: The following module(s) are unknown: "
         '"no-such"', "no-environment-module", None),
        ("3: AssertionError: Check batch related parameters. train_batch_size is not equal to "
         "micro_batch_per_gpu * gradient_acc_step * world_size 32 != 4 * 1 * 16",
         "batch-triangle", 3),
        ("3: RuntimeError: HIP error: invalid device ordinal", "device-ordinal", 3),
        ("3: Memory access fault by GPU node-4 on address 0x7f0", "gpu-fault", 3),
        ("lumitui: local rank 2 has its cores 17-23 on 1 of 2 nodes; nothing was launched.",
         "proof-strict", None),
        ("lumitui: attempt 1 belongs to job 7; job 9 ends.", "second-job", None),
        ("0: ddp.py: error: unrecognized arguments: --nope", "usage", 0),
        ("0: ddp.py: 10 training images are fewer than one global batch of 32 x 8 ranks.",
         "usage", 0),
        ("1: torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. "
         "3/8 clients joined.", "rendezvous", 1),
        ("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError", "rendezvous", None),
        ("1: RuntimeError: Connection closed by peer [10.0.0.2]:4711", "peer-lost", 1),
        ("lumitui: the code could not be unpacked on every node; nothing was launched.",
         "archive", None),
        ("srun: error: nid005001: task 6: Segmentation fault (core dumped)",
         "killed-by-signal", 6),
    ],
)  # fmt: skip
def test_each_rule_is_reported_with_its_rank(line: str, expected: str, rank: int | None) -> None:
    found = why(f"starting\n{line}\nlast words")
    assert (found[0].id, found[0].rank) == (expected, rank)
    assert found[0].line and found[0].line in line
    assert found[0].sentence and found[0].do and "{what}" not in found[0].sentence


def test_the_rule_names_what_is_missing() -> None:
    assert "h5py" in why("0: ModuleNotFoundError: No module named 'h5py'")[0].sentence
    assert "/a/t.py" in why("0: python: can't open file '/a/t.py': [Errno 2] No such")[0].sentence


@pytest.mark.parametrize("state", list(STATE_RULES))
def test_what_slurm_decided_comes_first(state: State) -> None:
    log = "3: RuntimeError: boom\n3: OSError: [Errno 28] No space left on device"
    found = diagnose(Ending(state, "WORD", "by 1000", log=log))
    assert found[0].id == STATE_RULES[state].id
    assert found[0].line == "WORD by 1000"
    assert "no-space" in [item.id for item in found]


@pytest.mark.parametrize("state", [State.DONE, State.QUEUED, State.RUNNING, State.SENDING])
def test_a_run_that_did_not_fail_has_no_reasons(state: State) -> None:
    assert diagnose(Ending(state, rc=0, log="FATAL:   permission denied")) == []


@pytest.mark.parametrize(
    ("state", "rc", "end", "expected"),
    [
        (State.TIMEOUT, None, "", "chain-late"),
        (State.FAILED, 85, "used-up", "chain-used-up"),
        (State.FAILED, 85, "no-progress", "chain-no-progress"),
        (State.FAILED, 85, "refused", "chain-refused"),
        (State.FAILED, 85, "requeue", "stopped-early"),
    ],
)
def test_why_a_chain_ended(state: State, rc: int | None, end: str, expected: str) -> None:
    spec = hello_job(chain=4)
    found = diagnose(Ending(state, rc=rc, spec=spec, chain_end=end))
    assert found[0].id == expected


def test_torchruns_root_cause_names_the_rank_and_not_the_node() -> None:
    found = why(TORCHRUN, rank=1)
    assert (found[0].id, found[0].rank) == ("exception", 3)
    assert found[0].line == "RuntimeError: boom here"
    assert [item.id for item in found] == ["exception", "peer-lost"]


def test_under_a_launcher_a_node_sruns_task_is_no_rank() -> None:
    log = "1: E1121 torch/distributed/elastic/multiprocessing/api.py] failed (exitcode: -11)"
    first = why(log, rc=139, rank=1)[0]
    assert (first.id, first.rank) == ("killed-by-signal", None)
    assert "(Segmentation fault)" in first.sentence
    assert why("1: plain words", rc=139, rank=1)[0].rank == 1


def test_what_a_rule_explains_is_not_repeated_as_an_exception() -> None:
    log = "1: Traceback (most recent call last):\n1: ModuleNotFoundError: No module named 'x'"
    assert [item.id for item in why(log)] == ["no-module"]


def test_the_first_rank_in_time_is_the_culprit_not_those_that_lost_their_peer() -> None:
    log = """\
2: Traceback (most recent call last):
7: Traceback (most recent call last):
2:   File "t.py", line 1
7:   File "t.py", line 2
2: RuntimeError: Connection closed by peer
7: subprocess.TimeoutExpired: Command timed out
"""
    found = why(log)
    assert (found[0].rank, found[0].line) == (7, "subprocess.TimeoutExpired: Command timed out")


def test_of_several_tracebacks_the_one_of_the_rank_srun_named_counts() -> None:
    log = "".join(
        f"{rank}: Traceback (most recent call last):\n{rank}: ValueError: of {rank}\n"
        for rank in (4, 2)
    )
    assert why(log)[0].rank == 4
    assert why(log, rank=2)[0].line == "ValueError: of 2"


def test_a_step_that_srun_cancels_after_a_failed_task_was_cancelled_by_nobody() -> None:
    end = "slurmstepd: error: *** STEP 4711.0 ON nid005001 CANCELLED AT 2026-11-23T02:50:07 ***\n"
    task = "srun: error: nid005001: task 3: Exited with exit code 7\n"
    assert diagnose(Ending(State.FAILED, log=end))[0].id == "cancelled"
    assert [one.id for one in diagnose(Ending(State.FAILED, log=task + end))] == ["unknown"]
    assert [one.id for one in diagnose(Ending(State.FAILED, log=end + task))] == ["unknown"]
    others = "srun: error: nid005001: tasks 0-2: Terminated\n"
    assert diagnose(Ending(State.FAILED, log=others))[0].id == "terminated"
    assert [one.id for one in diagnose(Ending(State.FAILED, log=task + others))] == ["unknown"]


def test_a_cause_comes_before_its_consequences_in_any_order_of_the_log() -> None:
    log = "1: DistStoreError: waiting for clients. 3/8 clients\n0: OSError: [Errno 98] EADDRINUSE"
    assert [item.id for item in why(log)] == ["port-in-use", "rendezvous"]


def test_causes_come_in_the_order_of_the_log() -> None:
    log = "3: OSError: [Errno 28] No space left on device\n3: OutOfMemoryError: CUDA out of memory"
    assert [item.id for item in why(log)] == ["no-space", "gpu-memory"]


def test_a_failed_run_always_has_a_reason() -> None:
    assert why("", rc=None)[0].id == "unknown"


def test_nothing_of_the_log_can_control_the_terminal() -> None:
    log = "3: \x1b[31mFATAL:   permission denied\x1b[0m\x1b]0;title\x07\x9b2J\u202e\x00\n"
    assert why(log)[0].line == "FATAL:   permission denied2J"
    assert plain("a\tb\x08c\x1bMd") == "a bcd"


def test_ids_are_unique_within_a_table_and_every_rule_says_what_to_do() -> None:
    for rules in (RULES, CONSEQUENCES):
        assert len({rule.id for rule in rules}) == len(rules)
    assert all(rule.sentence and rule.do for rule in (*RULES, *CONSEQUENCES))


_pieces = st.lists(
    st.sampled_from(
        [WATCHDOG, "3: ", "[rank1]: ", "Traceback (most recent call last):", "Root Cause (first "
         "observed failure):", "  rank      : 3 (local_rank: 3)", "\x1b[", "FATAL:   ", "\n",
         "srun: error: n: task 99999999999: ", "Error: ", "oom_kill", "SeqNum="]
    )
    | st.text(max_size=20)
).map("".join)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    state=st.sampled_from(list(State)),
    word=st.text(max_size=20),
    rc=st.none() | st.integers(),
    rank=st.none() | st.integers(),
    log=_pieces,
)
def test_garbage_never_raises(
    state: State, word: str, rc: int | None, rank: int | None, log: str
) -> None:
    for item in diagnose(Ending(state, word, word, rc, rank, log)):
        assert not CONTROL & set(item.line)


def test_an_exception_is_said_with_the_line_of_the_persons_own_code() -> None:
    log = """\
9: Traceback (most recent call last):
9:   File "/scratch/p/code/train.py", line 5, in attention
9:     return call(batch["keys"])
9:   File "/usr/lib/python3.11/site-packages/torch/nn/module.py", line 1501, in _call_impl
9:     return forward(*args)
9: KeyError: 'keys'
srun: error: nid005002: task 9: Exited with exit code 1
"""
    (first, *_) = why(log, rank=9)
    assert first.sentence == "Rank 9 raised an exception at train.py:5 (attention)."
    assert "Look at that line" in first.do and "above" not in first.do
    bare = why("Traceback (most recent call last):\nKeyError: 'keys'\n")[0]
    assert bare.sentence == "The program raised an exception." and "traceback" in bare.do
    lines = log.replace(", in attention", ", in <module>")
    assert why(lines, rank=9)[0].sentence == "Rank 9 raised an exception at train.py:5."


def test_a_cause_in_a_few_words_begins_with_what_tells_runs_apart() -> None:
    log = """5: Traceback (most recent call last):
5:   File "/site-packages/torch/nn/modules/module.py", line 1, in forward
5:   File "/scratch/run/code/model.py", line 88, in forward
5: {}"""
    known = why(log.format("torch.OutOfMemoryError: HIP out of memory."), rank=5)[0]
    assert known.brief == "rank 5 model.py:88: A GPU ran out of memory"
    assert known.cause == "A GPU ran out of memory (rank 5, at model.py:88)."
    other = why(log.format("my.own.OddError: [/] odd"), rank=5)[0]
    assert other.brief == "rank 5 model.py:88: OddError"
    assert other.cause == "Rank 5 raised an exception at model.py:88 (forward)."
    assert why("srun: error: nid005001: task 3: Out Of Memory")[0].brief.startswith("rank 3: ")


def test_a_cause_from_a_traceback_has_the_number_of_its_line() -> None:
    log = (
        "start\nTraceback (most recent call last):\n"
        '  File "train.py", line 5, in <module>\n'
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.\n"
    )
    assert why(log)[0].number == 4
    assert diagnose(Ending(State.FAILED, log=log, before=None))[0].number is None


def test_lines_that_differ_in_numbers_alone_are_read_to_a_limit() -> None:
    log = "".join(f"nid{n}:{n}:{n} [1] NCCL WARN failed to map {n}\n" for n in range(5000))
    found = read(log + "RuntimeError: No HIP GPUs are available\n")
    assert len(Evidence(found, None, None).candidates) == 201


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
            "folder of yours",
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
