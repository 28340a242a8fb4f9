"""A site of plain processes for the tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.remote.scheduler.scheduler_protocol import Watch
from tests.support.servers.embedded_site import EmbeddedSite, until


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedSite]:
    """A site of its own; no job of a test outlives it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LUMITUI_KILL_WAIT", "0.5")
    site = EmbeddedSite(tmp_path)
    yield site
    jobs = tmp_path / "state" / "lumitui" / "jobs"
    if jobs.exists():
        runs = [(entry.name, (entry / "run").readlink()) for entry in jobs.iterdir()]
        site.process.cancel([Watch(run.name, str(run), job_id) for job_id, run in runs])
        until(lambda: not list(jobs.glob("*/door")))
