"""A run's folder made by one request, over a shell of this machine, busybox, and an SSH server."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.remote.site.errors import RefusedError
from lumitui.remote.site.run_folder import RECORD, RECORD_FROM_SCRATCH
from lumitui.remote.source.scan import scan, source_of
from lumitui.remote.transfer.snapshots.prepare import PlacedFile, Plan, SnapshotGone, prepare
from lumitui.remote.transfer.snapshots.snapshot_store import sync
from lumitui.remote.transport.transport import Transport


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
