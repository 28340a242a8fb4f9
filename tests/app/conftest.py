"""Fixtures of the laptop's side: small jobs, a project for the TUI."""

from pathlib import Path

import pytest

from lumitui.app.job.settings import Settings
from tests.support.jobs.small_jobs import hello_project
from tests.support.program.command_line import HELLO
from tests.support.program.driven_tui import JOB, SCRIPT
from tests.support.program.home import Home


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The job file of a project that runs on this machine."""
    path = hello_project(tmp_path / "work") / "job.yaml"
    path.write_text(HELLO)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test may write a job file."""
    return tmp_path / "work" / "job.yaml"


@pytest.fixture
def settings(home: Home) -> Settings:
    """The embedded site in a home of its own, polled often."""
    profile = home.config / "sites" / "laptop.yaml"
    profile.write_text("extends: laptop\npoll_seconds: 0.2\n")
    return home.settings


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a script and job files, where the TUI is started."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "hello.py").write_text(SCRIPT)
    (folder / "job.yaml").write_text(JOB.format(launcher="srun", args='"--name", "[/b] x"'))
    (folder / "long.yaml").write_text(JOB.format(launcher="srun", args='"--long"'))
    (folder / "fail.yaml").write_text(JOB.format(launcher="srun", args='"--fail"'))
    (folder / "notes.yaml").write_text("nothing: of interest\n")
    monkeypatch.chdir(folder)
    return folder
