"""Of several causes in a log the first one counts, and stragglers are told apart."""

import pytest

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


@pytest.mark.parametrize(
    ("error", "others", "cause"),
    [
        ("ModuleNotFoundError: No module named 'torch._functorch.aot'", (), "package-version"),
        (
            "ModuleNotFoundError: No module named 'torch._functorch.aot'",
            ("0: epoch 0 loss 2.3", "1: RuntimeError: Connection closed by peer"),
            "import-of-one-rank",
        ),
        ("ModuleNotFoundError: No module named 'x'", ("0: epoch 0",), "import-of-one-rank"),
        (
            "ModuleNotFoundError: No module named 'x'",
            ("6: rank 6 of 8 starts", "0: rank 0 of 8 starts", "0: Traceback (most recent call"),
            "no-module",
        ),
        (
            "ModuleNotFoundError: No module named 'x'",
            ("1: ModuleNotFoundError: No module named 'x'", "0: epoch 0"),
            "no-module",
        ),
    ],
)
def test_an_import_that_fails_on_one_rank_alone_points_to_its_node(
    error: str, others: tuple[str, ...], cause: str
) -> None:
    own = ("6: Traceback (most recent call last):", '6:   File "train.py", line 3', f"6: {error}")
    found = why("\n".join((*others, *own)), rank=6)[0]
    assert found.id == cause
    if cause == "import-of-one-rank":
        assert found.sentence.startswith("Rank 6 alone could not import ")
        assert "Submit it again." in found.do and "--exclude=NODE" in found.do
        assert found.line == error


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


# Of pytorch/pytorch#134006 and XPixelGroup/BasicSR#737; DiffSynth-Studio#458 has groups.
def caught(rank: int, inner: int, work: int, *, operation: str = "ALLREDUCE") -> str:
    return (
        f"[rank{rank}]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank {inner}] Watchdog "
        f"caught collective operation timeout: WorkNCCL(SeqNum={work}, OpType={operation}, "
        "NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for 600020 milliseconds "
        "before timing out.\n"
    )


def detected(rank: int, place: str, work: int, enqueued: int) -> str:
    return (
        f"[rank{rank}]:[E626 06:24:44.906457629 ProcessGroupNCCL.cpp:1785] [{place}] Exception "
        f"(either an error or timeout) detected by watchdog at work: {work}, last enqueued NCCL "
        f"work: {enqueued}, last completed NCCL work: {work - 1}.\n"
    )


DUMP = (
    "[rank{0}]:[E703 15:37:17.178360488 ProcessGroupNCCL.cpp:1987] [PG ID 0 PG GUID 0(default_pg) "
    "Rank {0}] Received a dump signal due to a collective timeout from  rank 7 and we will try our "
    "best to dump the debug info. Last enqueued NCCL work: {1}, last completed NCCL work: {1}."
    "This is most likely caused by incorrect usages of collectives.\n"
)
DEFAULT = "PG ID 0 PG GUID 0(default_pg) Rank {0}"


def test_a_rank_of_a_group_is_not_blamed_as_a_rank_of_the_job() -> None:
    log = caught(5, 1, 1) + "[rank1]: hello\n"
    found = why(log, rank=None, world_size=8)
    assert (found[0].id, found[0].rank) == ("collective-timeout", None)
    assert "Rank 1" not in found[0].sentence
    # Ranks 4 and 5 are one group, 6 and 7 another; each counts its own operations.
    found = why(caught(5, 1, 12) + caught(6, 0, 7), rank=None)
    assert "Rank" not in found[0].sentence.replace("ranks", "")
    found = why(caught(0, 0, 12) + caught(1, 1, 7, operation="BROADCAST"), rank=None)
    assert "Rank" not in found[0].sentence.replace("ranks", "")


@pytest.mark.parametrize(
    "place", [DEFAULT, "PG 0 (default_pg) Rank {0}", "PG 1 Rank {0}", "Rank {0}"]
)
def test_every_form_of_pytorch_names_the_rank_that_is_behind(place: str) -> None:
    log = "".join(
        caught(rank, rank, 808) + detected(rank, place.format(rank), 808, enqueued)
        for rank, enqueued in ((1, 811), (0, 811), (2, 808), (3, 811))
    )
    found = why(log, rank=None, world_size=4)
    assert (found[0].id, found[0].rank) == ("collective-timeout", 2)
    assert "Rank 2 is behind: it had started 808 operations, the others up to 811." in (
        found[0].sentence
    )


def test_the_rank_that_never_started_what_the_others_waited_for_did_not_come() -> None:
    log = caught(7, 7, 56119) + detected(7, DEFAULT.format(7), 56119, 56119)
    found = why(log + DUMP.format(4, 56118), rank=None, world_size=8)
    assert found[0].rank == 4
    assert "Rank 4 did not join." in found[0].sentence
    # A frozen process has started nothing; and where several are behind, none is named.
    assert why(log + DUMP.format(4, -1), rank=None)[0].rank == 4
    found = why(caught(7, 7, 9) + DUMP.format(7, 9) + DUMP.format(4, -1), rank=None)
    assert "Rank 4 is behind: it had started no operation, the others up to 9." in found[0].sentence
    found = why(log + DUMP.format(4, 56118) + DUMP.format(3, 56118), rank=None)
    assert "Rank" not in found[0].sentence.replace("ranks", "")


def test_operations_of_different_groups_are_not_compared() -> None:
    tensor = "PG ID 2 PG GUID {1}(tp) Rank {0}"
    log = (
        caught(4, 0, 610) + detected(4, tensor.format(0, 5), 610, 616)
        + caught(6, 0, 44) + detected(6, tensor.format(0, 7), 44, 50)
    )  # fmt: skip
    found = why(log, rank=None, world_size=8)
    assert "Rank" not in found[0].sentence.replace("ranks", "")
    # Of one group they are, by the ranks of the job.
    log += caught(5, 1, 609) + detected(5, tensor.format(1, 5), 609, 609)
    assert why(log, rank=None, world_size=8)[0].rank == 5
    # The short names of older versions count in each process.
    log = detected(4, "PG 1 Rank 0", 610, 616) + detected(7, "PG 1 Rank 1", 44, 50)
    found = why(caught(4, 0, 610) + log, rank=None)
    assert "Rank" not in found[0].sentence.replace("ranks", "")


def test_a_rank_is_silent_only_when_all_others_spoke() -> None:
    log = "0: epoch 1\n" + caught(1, 1, 12) + caught(2, 2, 12)
    assert why(log, rank=None, world_size=3)[0].rank == 0
    assert "is the one" not in why(log, rank=None, world_size=8)[0].sentence


def test_a_desync_report_of_several_ranks_blames_none() -> None:
    report = """\
\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:
\t   - [{0}] joined but didn't finish collective #11 (count from 1)
\t - Snapshot of ranks' latest states:
\t   #11 started ranks:
\t     [2] started ALLREDUCE
\t     [3] finished ALLREDUCE
"""
    log = caught(0, 0, 12) + caught(1, 1, 12)
    assert why(log + report.format("6"), rank=None)[0].rank == 6
    assert "is the one" not in why(log + report.format("6, 7"), rank=None)[0].sentence
    second = "\t     [5] finished collective #10, but didn't join collective #11 (count from 1)\n"
    assert why(log + second, rank=None)[0].rank == 5


def test_the_rank_with_the_least_work_is_the_straggler() -> None:
    log = "\n".join(caught(rank, rank, 12 if rank != 5 else 11) for rank in range(8))
    found = why(log, rank=None)
    assert (found[0].id, found[0].rank) == ("collective-timeout", 5)
    assert "Rank 5" in found[0].sentence


def test_without_evidence_no_rank_is_blamed() -> None:
    log = "\n".join(caught(rank, rank, 12).rstrip() for rank in range(4))
    assert "that did not join." in why(log, rank=None)[0].sentence
    assert "is the one" not in why(log, rank=None)[0].sentence


PACKAGES = "/opt/env/lib/python3.12/site-packages"


@pytest.mark.parametrize(
    ("frame", "error", "cause", "what"),
    [
        ("torch/optim/__init__.py", "ModuleNotFoundError: No module named 'torch.optim.adadelta'",
         "installation-changed", "torch.optim.adadelta"),
        ("torch/optim/__init__.py", "ImportError: cannot import name 'Adam' from 'torch.optim' "
         f"({PACKAGES}/torch/optim/__init__.py)", "installation-changed", "'Adam' from"),
        ("torch/nn/__init__.py", "AttributeError: module 'torch' has no attribute 'Tensor'",
         "installation-changed", "torch"),
        ("inspect.py", "FileNotFoundError: [Errno 2] No such file or directory: "
         f"'{PACKAGES}/torch/optim/adadelta.py'", "installation-changed", "adadelta.py"),
        ("apex/amp.py", "ModuleNotFoundError: No module named 'torch._six'", "package-version",
         "torch._six"),
    ],
)  # fmt: skip
def test_a_package_that_lacks_its_own_parts_was_changed_and_is_not_another_version(
    frame: str, error: str, cause: str, what: str
) -> None:
    log = (
        "1: Traceback (most recent call last):\n"
        '1:   File "/project/train.py", line 3, in <module>\n1:     import torch\n'
        f'1:   File "{PACKAGES}/{frame}", line 9, in <module>\n1:     from x import y\n1: {error}\n'
    )
    (found,) = why(log)
    assert found.id == cause and what in found.sentence
    assert found.do.startswith("Run it again") is (cause == "installation-changed")


@pytest.mark.parametrize(
    ("error", "cause", "name", "advice"),
    [
        ("ModuleNotFoundError: No module named 'torhc'", "no-module", "torhc",
         "Check its spelling (torch?) at train.py:3. If it is right: List its package under"),
        ("ModuleNotFoundError: No module named 'torch.distribute'", "package-version",
         "torch.distribute",
         "Check its spelling at train.py:3. If it is right: In `venv:`, pin the versions"),
        ("ImportError: cannot import name 'DistributedDataParalel' from 'torch.nn.parallel' "
         f"({PACKAGES}/torch/nn/parallel/__init__.py)", "package-version",
         "torch.nn.parallel.DistributedDataParalel", "Check its spelling at train.py:3."),
        ("AttributeError: module 'torch.nn' has no attribute 'Linaer'", "package-version",
         "torch.nn.Linaer", "Check its spelling at train.py:3."),
        ("ModuleNotFoundError: No module named 'yaml'", "no-module", "", "List its package"),
        ("ModuleNotFoundError: No module named 'fla'", "no-module", "", "List its package"),
        ("ModuleNotFoundError: No module named 'torchdata'", "no-module", "", "List its package"),
    ],
)  # fmt: skip
def test_a_name_of_the_programs_own_line_may_be_misspelled(
    error: str, cause: str, name: str, advice: str
) -> None:
    log = (
        "0: Traceback (most recent call last):\n"
        f'0:   File "/project/train.py", line 3, in <module>\n0: {error}\n'
    )
    (found,) = why(log)
    assert found.id == cause and found.do.startswith(advice)
    own = f"The name {name} is misspelled, or missing in the job's environment."
    assert (found.sentence == own) is bool(name)
    other = log.replace(
        f"0: {error}", f'0:   File "{PACKAGES}/apex/amp.py", line 9, in f\n0: {error}'
    )
    assert "misspelled" not in why(other)[0].sentence, "a library's own line"


def test_beside_a_changed_installation_no_rank_is_told_to_pin_versions() -> None:
    log = (
        "0: ModuleNotFoundError: No module named 'torch.optim.adadelta'\n"
        "1: FileNotFoundError: [Errno 2] No such file or directory: "
        f"'{PACKAGES}/torch/optim/adadelta.py'\n"
    )
    assert [one.id for one in why(log)] == ["installation-changed"]


@pytest.mark.parametrize(
    ("path", "fix"),
    [
        ("'/scratch/project_1/imagenet.pt'", "stage:"),
        ("'data/imagenet.pt'", "Write paths relative"),
    ],
)
def test_a_missing_absolute_path_is_checked_or_staged(path: str, fix: str) -> None:
    (found,) = why(f"0: FileNotFoundError: [Errno 2] No such file or directory: {path}\n")
    assert found.id == "no-file" and fix in found.do
    assert ("links" in found.do) is ("stage" not in found.do)
