"""What one request of a cancel does, with a squeue and a scancel that are written down here.

test_cancelling.py cancels jobs of a real Slurm; here each call can be seen, on any machine.
"""

from pathlib import Path

import pytest

from lumitui.remote.scheduler.scheduler_protocol import Watch
from lumitui.remote.scheduler.slurm import Slurm
from lumitui.remote.transport.local import Local

SQUEUE = """#!/bin/sh
for format; do :; done
mark=${format%%|*}
echo "$mark|JOBID|STATE REASON|NAME|COMMENT|WORK_DIR|COMMAND|$mark"
echo "$mark|7|$(cat "$SITE/state") None|$(cat "$SITE/name")|(null)|/elsewhere|/elsewhere/x|$mark"
"""
SCANCEL = """#!/bin/sh
[ ! -e "$SITE/run/cancelled" ] || echo marked >>"$SITE/calls"
echo "$@" >>"$SITE/calls"
echo "$AFTER" >"$SITE/state"
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site whose queue has job 7, of the run `run-1` unless a test says otherwise."""
    (tmp_path / "run").mkdir()
    (tmp_path / "bin").mkdir()
    for name, text in (("squeue", SQUEUE), ("scancel", SCANCEL)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "state").write_text("RUNNING")
    (tmp_path / "name").write_text("run-1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("SITE", str(tmp_path))
    monkeypatch.setenv("AFTER", "CANCELLED")
    return tmp_path


def cancel(site: Path) -> dict[str, str]:
    return dict(Slurm(Local()).cancel([Watch("run-1", str(site / "run"), "7")]))


def test_the_mark_comes_before_scancel_which_gets_the_name_with_the_id(site: Path) -> None:
    assert cancel(site) == {}
    assert (site / "calls").read_text().splitlines() == ["marked", "--name=run-1 7"]
    # A job of the run that is still to come ends at it.
    assert (site / "run" / "attempt-1.claim").readlink() == Path("7")
