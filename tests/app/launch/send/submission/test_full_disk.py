"""A full disk or quota during a send: nothing half-made is used, and later the send works."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import RefusedError
from tests.support.files.snapshots import left_over
from tests.support.jobs.small_jobs import finish, hello_job, hello_project
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster
from tests.support.servers.small_disk import quota_disk, small_disk

SIZE = 2_000_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "5m,nr_inodes=400") as at:
        yield at


@pytest.fixture
def tight(home: Home, disk: Path) -> Iterator[Runs]:
    """The core with a site `tight` whose disk is small."""
    (home.config / "sites" / "tight.yaml").write_text(f"extends: laptop\nwork_root: {disk}/w\n")
    core = Runs(home.settings)
    yield core
    core.close()


def fill(disk: Path, leave: int) -> Path:
    """Take all room but `leave` bytes."""
    room = os.statvfs(disk)
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(max(0, room.f_bavail * room.f_frsize - leave)))
    return ballast


JOB = hello_job(site="tight", partition="local", account="none", gpus_per_node=1)


def refused(runs: Runs, project: Path) -> None:
    """Send, be refused for want of room, and find nothing that could be used."""
    with pytest.raises(RefusedError, match=r"(?i)no space left|quota") as error:
        runs.send(runs.preview(JOB, project))
    assert "lumitui site prune" in error.value.hint
    run = runs.history.page(1)[0]
    assert run.state is State.REFUSED
    assert "o space left" in run.reason or "quota exceeded" in run.reason
    assert not os.path.exists(run.folder)
    assert not left_over(f"{run.root}/code")


def test_a_full_disk_in_each_part_of_a_send(tight: Runs, disk: Path, tmp_path: Path) -> None:
    project = hello_project(tmp_path / "project")
    (project / "weights").write_bytes(os.urandom(SIZE))
    ballast = fill(disk, SIZE // 2)  # the snapshot does not fit
    refused(tight, project)
    code = disk / "w" / "project" / "code"
    assert [path for path in code.rglob("*") if path.is_file()] == []
    ballast.unlink()
    ballast = fill(disk, SIZE * 3 // 2)  # the snapshot does, the run's copy does not
    refused(tight, project)
    ballast.unlink()
    run = finish(tight, tight.send(tight.preview(JOB, project)))
    assert run.state is State.DONE
    freed = tight.prune("tight")
    assert sum(item.bytes for item in freed.values()) == 0


def test_no_more_files_allowed(tight: Runs, disk: Path, tmp_path: Path) -> None:
    project = hello_project(tmp_path / "project")
    for number in range(500):
        (project / f"{number}").write_text("")
    refused(tight, project)


@pytest.fixture
def limited(home: Home, tmp_path: Path) -> Iterator[tuple[Runs, Path]]:
    """The core with a site `tight` below a quota of 8 MiB, and the folder that has it."""
    with quota_disk(tmp_path / "disk", "8M") as folder:
        (home.config / "sites" / "tight.yaml").write_text(
            f"extends: laptop\nwork_root: {folder}/w\n"
        )
        core = Runs(home.settings)
        yield core, folder
        core.close()


@pytest.mark.cluster
def test_a_quota_that_the_code_goes_beyond(limited: tuple[Runs, Path], tmp_path: Path) -> None:
    runs, folder = limited
    project = hello_project(tmp_path / "project")
    (project / "weights").write_bytes(os.urandom(SIZE))
    # Not the run's copy, as above: it shares its blocks with the snapshot there (cp --reflink).
    (folder / "ballast").write_bytes(os.urandom(7_000_000))
    os.sync()  # btrfs counts what it has written
    refused(runs, project)
    (folder / "ballast").unlink()
    os.sync()
    run = finish(runs, runs.send(runs.preview(JOB, project)))
    assert run.state is State.DONE


@pytest.mark.cluster
def test_the_disk_is_named_although_the_copy_is_read_only(
    cluster: Cluster, home: Home, tmp_path: Path
) -> None:
    # A copy has the modes of the snapshot, which only root removes as they are.
    home.add_cluster(cluster)
    profile = f"extends: minilumi\nwork_root: {cluster.small}/{{user}}/full\n"
    (home.config / "sites" / "full.yaml").write_text(profile)
    project = hello_project(tmp_path / "project")
    (project / "weights").write_bytes(os.urandom(SIZE))
    ballast = fill(Path(cluster.small), SIZE * 3 // 2)
    try:
        with Runs(home.settings) as runs, pytest.raises(RefusedError, match="No space left"):
            runs.send(runs.preview(hello_job(site="full", proof="off"), project))
    finally:
        ballast.unlink()
        cluster.login(f"chmod -R u+w {cluster.small}/$USER/full; rm -r {cluster.small}/$USER/full")
