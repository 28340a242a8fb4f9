"""The preflight in real jobs: under torchrun in a container, and with a slow rank that ends it."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.explain import run_facts
from lumitui.app.job.launch import Launch
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.binding.binding_jobs import Proving, where_job

CPU = Path("/sys/fs/cgroup/cpu")


@pytest.fixture
def throttled() -> Iterator[Path]:
    """A group of the kernel's that gets a 25th of a core, and that any process may enter."""
    folder = CPU / f"lumitui-cluster-test-{os.getpid()}"
    if not (CPU / "cpu.cfs_quota_us").exists():
        pytest.skip("the kernel has no cgroup v1, in which one process can be slowed")
    folder.mkdir()
    (folder / "cpu.cfs_period_us").write_text("25000")
    (folder / "cpu.cfs_quota_us").write_text("1000")
    (folder / "cgroup.procs").chmod(0o666)
    yield folder
    for pid in (folder / "cgroup.procs").read_text().split():
        with suppress(OSError):
            (CPU / "cgroup.procs").write_text(pid)
    folder.rmdir()


def slowed(launch: Launch, folder: Path) -> Launch:
    """Return a launch whose rank 1 becomes slow as soon as it measures its GEMM."""
    begin = "    batch = 10 if on_gpu else 1\n"
    into = f'Path("{folder}/cgroup.procs").write_text(str(os.getpid()))'
    enter = f'    if os.environ["RANK"] == "1":\n        {into}\n'
    files = [
        replace(file, content=file.content.replace(begin, enter + begin))
        if file.name == "preflight.py"
        else file
        for file in launch.files
    ]
    assert files != list(launch.files)
    machinery = [
        # Two jobs import PyTorch four times on two cores, and other tests run beside them.
        replace(file, content=file.content.replace("mode=$1 limit=25", "mode=$1 limit=100"))
        for file in files
    ]
    return replace(launch, files=tuple(machinery))


@pytest.mark.slow
def test_a_slow_node_ends_the_job_and_a_good_one_runs(proving: Proving, throttled: Path) -> None:
    good = proving.send(
        where_job(launcher="torchrun", container="laif", ranks=2, preflight="warn"),
        lambda script: script.replace("mode=$1 limit=25", "mode=$1 limit=100"),
    )
    preview = proving.preview(where_job(ranks=1, nodes=2, preflight="end", proof="off"))
    launch = slowed(preview.launch, throttled)
    slow = proving.runs.send(replace(preview, launch=launch))
    good, slow = proving.finish([good, slow])
    found = proving.runs.proof(good)
    assert good.state is State.DONE and found.preflight, proving.log(good)
    # Two ranks that share two busy cores may differ.
    assert found.preflight.state in ("good", "bad"), proving.log(good)
    assert found.kind == "unbound" and len(found.rows) == 2
    assert len(proving.where(good)) == 2
    assert (slow.state, slow.rc) == (State.FAILED, 79), proving.log(slow)
    [first, *_] = run_facts.preflight(proving.runs.proof(slow))
    assert "rank 1 on nid00500" in first and "its GEMM reached" in first
    why = proving.runs.why(slow.id)[0]
    assert why.id == "preflight" and "rank 1 on nid00500" in why.sentence
    assert proving.where(slow) == []
