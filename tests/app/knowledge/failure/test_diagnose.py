"""The reasons of a run's end: from what Slurm decided, the exit code and the log."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumitui.app.knowledge.causes.cause_table import CONSEQUENCES, RULES
from lumitui.app.knowledge.causes.meanings import STATE_RULES
from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.app.knowledge.failure.matching import Evidence
from lumitui.app.knowledge.failure.message_lines import read
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.safe_text import CONTROL_CHARACTERS, plain
from tests.support.jobs.failed_logs import why
from tests.support.jobs.small_jobs import hello_job

WATCHDOG = (
    "[rank{0}]:[E1121 03:01:02.123 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=600000) ran for 600026 milliseconds before timing out."
)


@pytest.mark.parametrize(
    ("line", "expected", "rank"),
    [
        ("3: RuntimeError: Must bind to a non-empty set of CPU indices", "numa-binding", 3),
        ("bash: line 1: scontrol: command not found", "no-scontrol", None),
        ("2: FileNotFoundError: [Errno 2] No such file or directory: 'scontrol'",
         "no-scontrol", 2),
        ("1: libfabric:9:core:mr:ofi_monitor: kdreg2 monitor not available", "memory-monitor", 1),
        ("0: nid005001: NCCL WARN Failed to find reverse path from remNode 0/c1000",
         "partial-topology", 0),
        ("srun: error: nid005001: task 3: Out Of Memory", "host-memory", 3),
        ("[rank2]: torch.OutOfMemoryError: CUDA out of memory.", "gpu-memory", 2),
        (" 3: ModuleNotFoundError: No module named 'deepspeed'", "no-module", 3),
        ("3: FATAL:   permission denied", "container-command", 3),
        ("lumitui: local rank 2 has its cores 17-23 on 1 of 2 nodes; nothing was launched.",
         "proof-strict", None),
        ("lumitui: attempt 1 belongs to job 7; job 9 ends.", "second-job", None),
        ("0: ddp.py: 10 training images are fewer than one global batch of 32 x 8 ranks.",
         "usage", 0),
        ("1: RuntimeError: Connection closed by peer [10.0.0.2]:4711", "peer-lost", 1),
        ("1: terminate called without an active exception", "exit-abort", 1),
        ("srun: error: nid005001: task 6: Segmentation fault (core dumped)",
         "killed-by-signal", 6),
    ],
)  # fmt: skip
def test_each_rule_is_reported_with_its_rank(line: str, expected: str, rank: int | None) -> None:
    found = why(f"starting\n{line}\nlast words")
    assert (found[0].id, found[0].rank) == (expected, rank)
    assert found[0].line and found[0].line in line
    assert found[0].sentence and found[0].do and "{what}" not in found[0].sentence


def test_an_option_that_argparse_refuses_is_named_with_the_one_that_was_meant() -> None:
    log = (
        "0: usage: train.py [-h] [--lr LR]\n0:                 [--epochs EPOCHS]\n"
        "0: train.py: error: unrecognized arguments: --learning-rate 0.01"
    )
    assert why(log)[0].do == "Write --lr instead of --learning-rate."
    assert "`args:`" in why(log.replace("--learning-rate", "--warmup"))[0].do


def test_the_rule_names_what_is_missing() -> None:
    assert "h5py" in why("0: ModuleNotFoundError: No module named 'h5py'")[0].sentence
    assert "`venv:`" in why("0: ModuleNotFoundError: No module named 'h5py'")[0].do
    assert "/a/t.py" in why("0: python: can't open file '/a/t.py': [Errno 2] No such")[0].sentence


def test_a_refusal_names_what_sbatch_said() -> None:
    words = "sbatch: error: Batch job submission failed: Node count specification invalid"
    (found,) = diagnose(RunEnd(State.REFUSED, reason=words))
    assert found.line == words and found.sentence == f"{found.brief}."
    assert found.brief == "The site refused the submission: Node count specification invalid"
    (found,) = diagnose(RunEnd(State.REFUSED))
    assert found.sentence == "The site refused the submission."


@pytest.mark.parametrize("state", list(STATE_RULES))
def test_what_slurm_decided_comes_first(state: State) -> None:
    log = "3: RuntimeError: boom\n3: OSError: [Errno 28] No space left on device"
    found = diagnose(RunEnd(state, "WORD", "by 1000", log=log))
    assert found[0].id == STATE_RULES[state].id
    assert found[0].line == "WORD by 1000"
    assert "no-space" in [item.id for item in found]


@pytest.mark.parametrize("state", [State.DONE, State.QUEUED, State.RUNNING, State.SENDING])
def test_a_run_that_did_not_fail_has_no_reasons(state: State) -> None:
    assert diagnose(RunEnd(state, rc=0, log="FATAL:   permission denied")) == []


@pytest.mark.parametrize(
    ("state", "rc", "end", "expected"),
    [
        (State.TIMEOUT, None, "", "chain-late"),
        (State.FAILED, 85, "used-up", "chain-used-up"),
        (State.FAILED, 85, "no-progress", "chain-no-progress"),
        (State.FAILED, 85, "unsaved", "chain-unsaved"),
        (State.FAILED, 85, "refused", "chain-refused"),
        (State.FAILED, 85, "requeue", "stopped-early"),
    ],
)
def test_why_a_chain_ended(state: State, rc: int | None, end: str, expected: str) -> None:
    spec = hello_job(chain=4)
    found = diagnose(RunEnd(state, rc=rc, spec=spec, chain_end=end))
    assert found[0].id == expected


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
    for item in diagnose(RunEnd(state, word, word, rc, rank, log)):
        assert not CONTROL_CHARACTERS & set(item.line)


def test_lines_that_differ_in_numbers_alone_are_read_to_a_limit() -> None:
    log = "".join(f"nid{n}:{n}:{n} [1] NCCL WARN failed to map {n}\n" for n in range(5000))
    found = read(log + "RuntimeError: No HIP GPUs are available\n")
    assert len(Evidence(found, None, None).candidates) == 201


@pytest.mark.parametrize(
    ("state", "words", "rc", "line"),
    [
        (State.OUT_OF_MEMORY, ("FAILED", "srun: task 0 ran out of memory"), 137,
         "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1913.1."),
        (State.TIMEOUT, ("TIMEOUT", "TimeLimit"), None,
         "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-26T15:00:00 DUE TO TIME LIMIT"),
    ],
)  # fmt: skip
def test_what_slurm_decided_is_shown_by_the_line_of_the_log_if_there_is_one(
    state: State, words: tuple[str, str], rc: int | None, line: str
) -> None:
    (only,) = diagnose(RunEnd(state, *words, rc, 0, f"start\n{line}\n", before=None))
    assert only.line == line
    first = diagnose(RunEnd(state, *words, rc, 0, "start\n"))[0]
    assert first.line == " ".join(words)


def test_the_advice_after_running_out_of_memory_names_the_request_and_repeats_nothing() -> None:
    spec = hello_job(memory="1500M")
    (only,) = diagnose(RunEnd(State.OUT_OF_MEMORY, "OUT_OF_MEMORY", "", 137, None, spec=spec))
    assert "more main memory than the job requested (`memory: 1500M` per node)." in only.sentence


def test_only_a_job_that_can_resume_is_told_to_continue_from_a_checkpoint() -> None:
    for resume, told in (([], False), (["--resume"], True)):
        spec = hello_job(script="a.py", resume=resume)
        for state in (State.TIMEOUT, State.NODE_FAILED, State.PREEMPTED):
            (found,) = diagnose(RunEnd(state, str(state), spec=spec))
            assert ("from the last checkpoint" in found.do) is told


def test_the_requeue_of_a_chain_is_not_a_preemption() -> None:
    log = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-26T15:00:00 DUE TO JOB REQUEUE"
    chain = hello_job(chain=3, script="a.py", resume=["--resume"])
    ids = {
        spec: [one.id for one in diagnose(RunEnd(State.CANCELLED, "CANCELLED", log=log, spec=of))]
        for spec, of in (("chain", chain), ("single", hello_job()))
    }
    assert ids == {"chain": ["cancelled"], "single": ["cancelled", "preempted"]}


@pytest.mark.parametrize(
    ("cores", "cause"),
    [("0xFEFEFEFEFEFEFEFE", "cpu-bind-reserved"), ("0x00000000FEFE0000", "cpu-bind")],
)
def test_masks_with_reserved_cores_are_told_from_those_of_a_shared_node(
    cores: str, cause: str
) -> None:
    log = (
        f"srun: error: CPU binding outside of job step allocation, allocated CPUs are: {cores}.\n"
        "srun: error: Task launch for StepId=2009.0 failed on node n1: Unable to satisfy cpu bind "
        "request\nsrun: error: Application launch failed: Unable to satisfy cpu bind request\n"
    )
    found = why(log)
    assert found[0].id == cause
    assert "launch-failed" not in {one.id for one in found}


def test_a_program_that_refuses_to_start_keeps_its_own_advice_and_its_words() -> None:
    built = "its PyTorch 2.13.0+cpu is built for CPUs only"
    says = f"n1 cannot use a GPU, although ROCR_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 is set; {built}"
    found = why(f"0: ddp.py: {says}. Check the container's GPU options.\n")[0]
    assert f"{built}." in found.sentence
    assert found.do == "Check the container's GPU options."
    long = why(f"0: ddp.py: {'word ' * 50}\n")[0]
    assert long.sentence.endswith("word …."), long.sentence


TOO_LARGE = """\
3: Traceback (most recent call last):
3:   File "/p/train_oom.py", line 31, in <module>
3:     x = torch.zeros(10_000_000_000_000)
3: RuntimeError: [enforce fail at alloc_cpu.cpp:119] err == 0. DefaultCPUAllocator: can't allocate \
memory: you tried to allocate 40000000000000 bytes. Error code 12 (Cannot allocate memory)
srun: error: nid005001: task 3: Exited with exit code 1
"""


def test_one_refused_allocation_is_not_a_kill_by_slurm() -> None:
    def cause(memory: str | None) -> str:
        spec = hello_job().model_copy(update={"memory": memory})
        end = RunEnd(State.FAILED, rc=1, failed_rank=3, log=TOO_LARGE, spec=spec, node_gib=480)
        return diagnose(end)[0].cause

    tried = "The program tried to allocate 37,252.9 GiB of main memory at once;"
    where = "(rank 3, on nid005001, at train_oom.py:31)."
    assert cause(None) == f"{tried} the node has 480 GiB {where}"
    assert cause("60G") == f"{tried} the job requested `memory: 60G` per node {where}"
    running = diagnose(RunEnd(State.RUNNING, log=TOO_LARGE, node_gib=480))
    assert running[0].sentence == f"{tried} the node has 480 GiB."
    killed = diagnose(RunEnd(State.OUT_OF_MEMORY, "OUT_OF_MEMORY", log=TOO_LARGE, node_gib=480))
    assert killed[0].sentence.startswith("Slurm killed")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("MemoryError: Unable to allocate 12.0 GiB for an array with shape (4, 4)", "12.0 GiB"),
        ("memory allocation of 5368709120 bytes failed", "allocate 5 GiB"),
        ("terminate called after throwing an instance of 'std::bad_alloc'", "asked for more"),
    ],
)
def test_a_refused_allocation_names_its_size(line: str, said: str) -> None:
    assert said in why(f"{line}\n")[0].sentence
