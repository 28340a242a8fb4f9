"""A snapshot is sent once, and each run has a copy of it."""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lumitui.remote.site.errors import RefusedError
from lumitui.remote.site.run_folder import CLAIM, LOCK, RECEIPT, RECORD, RECORD_FROM_SCRATCH
from lumitui.remote.site.shell_text import quote
from lumitui.remote.source.scan import scan, source_of
from lumitui.remote.transfer.snapshots.once_mark import AlreadySent, Once
from lumitui.remote.transfer.snapshots.prepare import (
    PlacedFile,
    Plan,
    SnapshotGone,
    prepare,
    require_inherited,
)
from lumitui.remote.transfer.snapshots.snapshot_store import sync
from lumitui.remote.transport.transport import Transport

Make = Callable[..., Plan]


@pytest.fixture
def make(transport: Transport, tmp_path: Path) -> Make:
    """Return what plans a run's folder with keys and earlier tries."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text("print('trained')\n")
    synced = sync(transport, f"{tmp_path}/root/code", scan(project), source_of(project))

    def plan(run: str, *keys: str, gone: tuple[str, ...] = (), host: str = "desk") -> Plan:
        return Plan(
            folder=f"{tmp_path}/root/runs/{run}",
            files=(),
            snapshot=synced.path,
            links={},
            checkpoints_from=None,
            needs_checkpoints=False,
            once=Once(keys, gone, run, host),
        )

    return plan


def marks(tmp_path: Path) -> dict[str, str]:
    """Return the run of each mark."""
    links = sorted((tmp_path / "root" / "sent").iterdir())
    return {link.name: os.readlink(link).split("|")[0] for link in links}


def test_the_second_is_refused_and_leaves_nothing(
    transport: Transport, make: Make, tmp_path: Path
) -> None:
    first = make("one", "grid-1", "again-1", host="my laptop")
    prepare(transport, first)
    with pytest.raises(
        AlreadySent, match=r"^one was being sent by my-laptop at 20.{14}\. lumitui sent"
    ):
        prepare(transport, make("two", "other-1", "again-1"))
    folder = Path(first.folder)
    (folder / LOCK).mkdir()
    (folder / RECEIPT).write_text("41\n")
    with pytest.raises(AlreadySent, match=r"^one was already sent .*: job 41\."):
        prepare(transport, make("two", "grid-1"))
    (folder / CLAIM).symlink_to("42")
    # Also of one that this history takes for never sent.
    with pytest.raises(AlreadySent, match=": job 42") as refused:
        prepare(transport, make("two", "grid-1", gone=("one",)))
    assert (refused.value.run, refused.value.job) == ("one", "42")
    assert os.listdir(tmp_path / "root" / "runs") == ["one"]
    assert marks(tmp_path) == {"again-1.1": "one", "grid-1.1": "one"}


def test_a_run_that_can_have_no_job_gives_its_place_away(
    transport: Transport, make: Make, tmp_path: Path
) -> None:
    first = make("one", "grid-1")
    prepare(transport, first)
    # Its sender was killed before the submit step, which can now take no lock any more.
    second = make("two", "grid-1", gone=("one", "never-made"))
    prepare(transport, second)
    assert os.readlink(f"{first.folder}/{CLAIM}") == "void"
    assert Path(first.folder, LOCK).is_dir()
    # The site refused the second one, which another copy of the history does not know.
    Path(second.folder, LOCK).mkdir()
    Path(second.folder, CLAIM).symlink_to("void")
    prepare(transport, make("three", "grid-1"))
    assert list(marks(tmp_path).values()) == ["one", "two", "three"]


def test_one_that_was_begun_hours_ago_is_given_up(
    transport: Transport, make: Make, tmp_path: Path
) -> None:
    prepare(transport, make("one", "grid-1"))
    mark = tmp_path / "root" / "sent" / "grid-1.1"
    for hours, given_up in ((1, False), (3, True)):
        mark.unlink()
        mark.symlink_to(f"one|desk|{int(time.time()) - 3600 * hours}")
        if not given_up:
            with pytest.raises(AlreadySent):
                prepare(transport, make("two", "grid-1"))
    prepare(transport, make("two", "grid-1"))
    assert os.readlink(tmp_path / "root" / "runs" / "one" / CLAIM) == "void"


def test_a_folder_that_could_not_be_made_leaves_no_mark(
    transport: Transport, make: Make, tmp_path: Path
) -> None:
    with pytest.raises(RefusedError, match="taken"):
        prepare(transport, replace(make("one", "grid-1"), links={"train.py": "/x"}))
    assert marks(tmp_path) == {}
    prepare(transport, make("two", "grid-1"))


@pytest.fixture
def plan(transport: Transport, tmp_path: Path) -> Plan:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text("print('trained')\n")
    synced = sync(transport, f"{tmp_path}/root/code", scan(project), source_of(project))
    return Plan(
        folder=f"{tmp_path}/root/runs/it's a run",
        files=(PlacedFile("job.sh", "echo hi\n", 0o700), PlacedFile(".secrets", "K=\udcff\n")),
        snapshot=synced.path,
        links={"data/big": "/scratch/big"},
        checkpoints_from=None,
        needs_checkpoints=True,
    )


def test_the_folder_has_its_files_its_code_and_its_links(transport: Transport, plan: Plan) -> None:
    assert not prepare(transport, plan)
    made = Path(plan.folder)
    assert (made / "job.sh").read_text() == "echo hi\n"
    assert (made / ".secrets").read_bytes() == b"K=\xff\n"
    modes = {name: (made / name).stat().st_mode & 0o777 for name in (".", "job.sh", ".secrets")}
    assert modes == {".": 0o700, "job.sh": 0o700, ".secrets": 0o600}
    assert (made / "code" / "train.py").read_text() == "print('trained')\n"
    assert str((made / "code" / "data" / "big").readlink()) == "/scratch/big"


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda plan: replace(plan, snapshot="/no"), SnapshotGone, "no longer on the site"),
        (lambda plan: replace(plan, links={"train.py": "/x"}), RefusedError, "train.py is taken"),
        (lambda plan: replace(plan, links={"train.py/x": "/x"}), RefusedError, "py/x is taken"),
        (lambda plan: replace(plan, checkpoints_from="/no"), RefusedError, "has no checkpoints"),
    ],
)
def test_what_cannot_be_finished_is_removed(
    transport: Transport,
    plan: Plan,
    change: Callable[[Plan], Plan],
    error: type[RefusedError],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        prepare(transport, change(plan))
    assert not Path(plan.folder).exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"snapshot": "/no"}, ""),
        ({"snapshot": "/no", "code_from": "/no"}, "code of that run is no longer"),
        ({"checkpoints_from": "/no", "needs_checkpoints": False}, ""),
        ({"checkpoints_from": "/no"}, "has no checkpoints"),
        ({"staged_from": "/no"}, ""),
    ],
)
def test_a_send_first_checks_what_a_run_inherits_and_makes_nothing(
    transport: Transport, plan: Plan, change: dict[str, Any], words: str
) -> None:
    parent = f"{plan.folder} parent"
    prepare(transport, replace(plan, folder=parent))
    again = replace(plan, folder=f"{plan.folder} again", **({"code_from": parent} | change))
    if words:
        with pytest.raises(RefusedError, match=words):
            require_inherited(transport, again)
    else:
        require_inherited(transport, again)
    assert not Path(again.folder).exists()


def test_a_copy_of_the_code_that_was_removed_is_missed_before_the_send(
    transport: Transport, plan: Plan
) -> None:
    parent = f"{plan.folder} parent"
    prepare(transport, replace(plan, folder=parent))
    shutil.rmtree(f"{parent}/code")  # as `site prune` advises for an ended run
    with pytest.raises(SnapshotGone, match="no longer on the site"):
        require_inherited(transport, replace(plan, snapshot="/no", code_from=parent))


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        ("rm -rf ../../code", ""),
        ("echo more >more.py; rm -rf ../../code", ""),
        ("echo other >train.py; rm -rf ../../code", "no longer on the site"),
        ("rm train.py; rm -rf ../../code", "no longer on the site"),
        ("rm ../.code.sums.*; rm -rf ../../code", "no longer on the site"),
        (
            "for list in ../.code.sums.*; do : >$list; done; rm -rf ../../code",
            "no longer on the site",
        ),
        (
            "for list in ../.code.sums.*; do sed -i 1d $list; done; rm -rf ../../code",
            "no longer on the site",
        ),
    ],
)
def test_an_earlier_run_s_whole_copy_serves_without_a_snapshot(
    transport: Transport, plan: Plan, harm: str, words: str
) -> None:
    earlier = f"{plan.folder} earlier"
    prepare(transport, replace(plan, folder=earlier))
    script = f"chmod -R u+w ../../code; cd {quote(f'{earlier}/code')} && {harm}"
    script = script.replace("../../code", quote(plan.snapshot))
    assert transport.run(script).code == 0
    again = replace(plan, code_from=earlier)
    if words:
        with pytest.raises(SnapshotGone, match=words) as gone:
            prepare(transport, again)
        assert "ctrl+o" in gone.value.hint and not Path(plan.folder).exists()
        return
    prepare(transport, again)
    code = Path(plan.folder) / "code"
    assert (code / "train.py").read_text() == "print('trained')\n"
    assert sorted(os.listdir(code)) == ["data", "train.py"]
    third = replace(plan, folder=f"{plan.folder} third", code_from=plan.folder)
    prepare(transport, third)
    assert (Path(third.folder) / "code" / "train.py").exists()


def test_checkpoints_are_copied_or_the_run_begins_from_scratch(
    transport: Transport, plan: Plan, tmp_path: Path
) -> None:
    files = (PlacedFile(RECORD, "continues"), PlacedFile(RECORD_FROM_SCRATCH, "begins"))
    parent = tmp_path / "parent"
    wanted = replace(plan, files=files, checkpoints_from=str(parent), needs_checkpoints=False)
    assert not prepare(transport, wanted)
    assert (Path(plan.folder) / RECORD).read_text() == "begins"
    (parent / "checkpoints").mkdir(parents=True)
    (parent / "checkpoints" / "last.pt").write_text("weights")
    later = replace(wanted, folder=f"{plan.folder} again")
    assert prepare(transport, later)
    assert (Path(later.folder) / "checkpoints" / "last.pt").read_text() == "weights"
    assert (Path(later.folder) / RECORD).read_text() == "continues"
    assert not (Path(later.folder) / RECORD_FROM_SCRATCH).exists()
