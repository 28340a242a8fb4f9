"""Which rank a collective that timed out blames, from what PyTorch's watchdogs wrote."""

import pytest

from tests.support.jobs.failed_logs import why


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
    assert (found[0].id, found[0].rank) == ("collective-timeout", 5)
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
    assert "Rank 2 is behind: it had started 808 operations, others up to 811." in (
        found[0].sentence
    )


def test_the_rank_that_never_started_what_the_others_waited_for_did_not_come() -> None:
    log = caught(7, 7, 56119) + detected(7, DEFAULT.format(7), 56119, 56119)
    found = why(log + DUMP.format(4, 56118), rank=None, world_size=8)
    assert found[0].rank == 4
    assert "Rank 4 did not join." in found[0].sentence
    # A frozen process has started nothing; and where several are behind, none is named.
    assert why(log + DUMP.format(4, -1), rank=None)[0].rank == 4
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
