"""Which of several causes in a log comes first, and which rank it is of."""

from tests.support.jobs.failed_logs import why
from tests.support.jobs.small_jobs import hello_job

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
    assert why(end, rc=None)[0].id == "cancelled"
    assert [one.id for one in why(task + end, rc=None)] == ["unknown"]
    assert [one.id for one in why(end + task, rc=None)] == ["unknown"]
    others = "srun: error: nid005001: tasks 0-2: Terminated\n"
    assert why(others, rc=None)[0].id == "terminated"
    assert [one.id for one in why(task + others, rc=None)] == ["unknown"]


def test_a_cause_comes_before_its_consequences_in_any_order_of_the_log() -> None:
    log = "1: DistStoreError: waiting for clients. 3/8 clients\n0: OSError: [Errno 98] EADDRINUSE"
    assert [item.id for item in why(log)] == ["port-in-use", "rendezvous"]


def test_causes_come_in_the_order_of_the_log() -> None:
    log = "3: OSError: [Errno 28] No space left on device\n3: OutOfMemoryError: CUDA out of memory"
    assert [item.id for item in why(log)] == ["no-space", "gpu-memory"]


KILLED = """\
[rank3]: torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.
slurmstepd: error: *** STEP 7.1 ON nid005001 CANCELLED AT 2026-11-26T12:00:00 ***
0: [rank0]: torch.distributed.DistBackendError: NCCL error: remote process exited
"""


def test_no_later_cause_advises_to_find_the_rank_that_the_first_names() -> None:
    found = why(KILLED, rc=143, rank=3)
    assert (found[0].id, found[0].rank) == ("gpu-memory", 3) and len(found) > 1
    assert "Find the rank" not in " ".join(one.do for one in found)
    assert "Rank 3 ended first, for the reason above." in [one.do for one in found[1:]]
    alone = why("0: Terminated", rc=143, rank=None)
    assert any("Find the rank" in one.do for one in alone)


def test_an_own_program_is_not_told_to_set_the_strategy_of_a_bundled_trainer() -> None:
    own, bundled = (
        why(KILLED, rc=1, rank=3, spec=hello_job().model_copy(update=changes))[0].do
        for changes in ({}, {"script": None, "trainer": "ddp"})
    )
    assert "strategy:" not in own and "FSDP or DeepSpeed in your program" in own
    assert "`strategy: zero2`" in bundled
