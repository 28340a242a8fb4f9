"""A cluster's overview: each part parsed within limits, and failing on its own."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.runs import Runs
from lumitui.remote.scheduler.cluster_overview import (
    MOST_ROWS,
    Nodes,
    ask_overview,
    node_kind,
    parse_overview,
)
from lumitui.remote.transport.local import Local
from tests.support.jobs.small_jobs import hello_job, hello_project
from tests.support.servers.cluster import Cluster

SINFO = """standard-g|up|2-00:00:00|1-1024|allocated|2500
standard-g|up|2-00:00:00|1-1024|mixed|20
standard-g|up|2-00:00:00|1-1024|mixed-|3
standard-g|up|2-00:00:00|1-1024|idle|100
standard-g|up|2-00:00:00|1-1024|planned|40
standard-g|up|2-00:00:00|1-1024|drained*|8
standard-g|up|2-00:00:00|1-1024|completing|5
dev-g|drain|3:00:00|1-8|idle*|2
dev-g|drain|3:00:00|1-8|many|x
"""
SQUEUE = """8123|RUNNING|standard-g|4|31:02|1:00:00|1700000000|None|vit|4n
8124_[1-9]|PENDING|small-g|1|0:00|3-00:00:00|N/A|Priority|sweep
a warning of a site
"""
RESERVATIONS = """ReservationName=maint_1 StartTime=1700000000 EndTime=1700086400 \
Nodes=nid[005000-005007] NodeCnt=8 CoreCnt=512 Features=(null) PartitionName=(null) Flags=MAINT \
TRES=cpu=512 Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands that print what Slurm's print."""
    folder = tmp_path / "bin"
    folder.mkdir()
    printed = {"sinfo": SINFO, "squeue": SQUEUE, "scontrol": RESERVATIONS, "budget": "41 of 500\n"}
    for name, text in printed.items():
        (folder / f"{name}.txt").write_text(text)
        (folder / name).write_text(f'#!/bin/sh\ncat "{folder}/{name}.txt"\n')
        (folder / name).chmod(0o700)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return folder


def test_the_parts_of_an_overview(tools: Path) -> None:
    found = ask_overview(Local(), "SINFO_PARTITION=x; export SINFO_PARTITION", "budget --all")
    assert not found.faults
    big, dev = found.partitions
    assert big == Nodes("standard-g", "up", "2-00:00:00", "1-1024", 100, 23, 2505, 40, 8)
    assert big.total == 2676
    assert (dev.partition, dev.available, dev.down, dev.idle) == ("dev-g", "drain", 2, 0)
    first, second = found.queue
    assert (first.job_id, first.start, first.name) == ("8123", 1_700_000_000.0, "vit|4n")
    assert (second.job_id, second.start, second.reason) == ("8124_[1-9]", None, "Priority")
    (kept,) = found.reservations
    assert (kept.name, kept.nodes, kept.end) == ("maint_1", 8, 1_700_086_400.0)
    assert found.budget == ("41 of 500",)


def test_each_part_fails_on_its_own(tools: Path) -> None:
    (tools / "sinfo").write_text("#!/bin/sh\necho slurm_load_partitions: timed out >&2\nexit 1\n")
    (tools / "squeue").write_text("#!/bin/sh\nyes 1\n")
    (tools / "budget").unlink()
    found = ask_overview(Local(), ":", "budget")
    assert found.faults["nodes"] == "`sinfo` failed: slurm_load_partitions: timed out."
    assert found.faults["queue"] == "`squeue` prints more than lumitui reads."
    assert found.faults["budget"] == (
        "The site has no command `budget`. Set the right one in its profile (`commands: balance:`)."
    )
    assert [item.name for item in found.reservations] == ["maint_1"]
    assert not found.partitions and not found.queue and not found.budget
    assert not ask_overview(Local(), ":", "").faults.keys() & {"budget"}


def test_the_signs_after_a_node_s_state() -> None:
    kinds = {
        "idle": "idle", "idle~": "idle", "idle*": "down", "idle-": "other", "mixed$": "mixed",
        "allocated+": "allocated", "drained": "down", "draining@": "down", "reserved": "other",
        "maint": "other", "": "down", "completing*": "down",
    }  # fmt: skip
    assert {state: node_kind(state) for state in kinds} == kinds


@given(st.binary(max_size=300), st.sampled_from(["nodes", "queue", "reservations", "budget", "x"]))
def test_no_bytes_make_a_parser_raise(content: bytes, kind: str) -> None:
    for end in (b"\nm-status=0\n", b"m-status=1", b""):
        whole = f"m {kind}\n".encode() + content + end + b"\nm end\n"
        found = parse_overview(whole, "m", "budget")
        assert found.faults


def test_an_answer_has_a_limit() -> None:
    rows = "\n".join(f"p{n}|up|1|1|idle|1" for n in range(MOST_ROWS + 100))
    found = parse_overview(f"m nodes\n{rows}\nm-status=0\nm end\n".encode(), "m", "")
    assert len(found.partitions) == MOST_ROWS
    assert set(found.faults) == {"queue", "reservations"}


def test_the_mini_cluster_answers_in_one_request(
    cluster_runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    runs = cluster_runs
    run = runs.send(runs.preview(hello_job(time="00:05:00"), hello_project(tmp_path)))
    before = runs.footprint("minilumi").requests
    found = runs.clusters.ask("minilumi").overview
    assert runs.footprint("minilumi").requests == before + 1
    assert {"standard-g", "small-g", "dev-g"} <= {part.partition for part in found.partitions}
    assert all(part.total == 8 for part in found.partitions)
    assert run.job_id in {job.job_id for job in found.queue} or not found.queue
    assert set(found.faults) == {"budget"}, "the mini cluster has no lumi-allocations"
    runs.cancel(run.id) if not runs.history.get(run.id).state.is_final else None
