"""What lumitui writes on the laptop is the person's alone, whatever the umask."""

import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from lumitui.app.cli import process
from lumitui.app.cli.main import lumitui
from tests.support.jobs.small_jobs import hello_project
from tests.support.program.command_line import HELLO, history
from tests.support.program.home import Home
from tests.support.program.verbs import command_lines


def open_to_others(folder: Path) -> list[str]:
    """Return what in `folder` others may read, write or enter."""
    found = []
    for top, folders, files in os.walk(folder):
        for name in (*folders, *files):
            mode = os.lstat(os.path.join(top, name)).st_mode
            if mode & 0o077 and not os.path.islink(os.path.join(top, name)):
                found.append(f"{mode & 0o777:o} {top}/{name}")
    return found


@pytest.fixture
def place(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the person with a project that others may read."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MY_TOKEN", "planted")
    monkeypatch.setenv("DEMO", "headless")
    job = hello_project(tmp_path / "work") / "job.yaml"
    job.write_text(HELLO + "secrets: [MY_TOKEN]\n")
    yield tmp_path


@pytest.fixture
def umask() -> Iterator[None]:
    """A umask that lets others write all that a process makes."""
    before = os.umask(0)
    yield
    os.umask(before)


def verb(
    said: pytest.CaptureFixture[str], folder: Path, *words: str
) -> "subprocess.CompletedProcess[str]":
    """Run a whole process of the command line, but for the start of Python."""
    os.umask(0)
    with pytest.MonkeyPatch.context() as here:
        here.chdir(folder)
        here.setattr("sys.argv", ["lumitui", *words])
        if words[0] == "demo":  # it writes its job; its training ends at once
            here.setenv("LUMITUI_PYTHON", "/bin/false")
        with pytest.raises(SystemExit) as end:
            process.run_process(lumitui)
    assert isinstance(end.value.code, int)
    return subprocess.CompletedProcess(words, end.value.code, *said.readouterr())


def test_every_verb_that_writes_makes_files_for_the_person_alone(
    home: Home, place: Path, capsys: pytest.CaptureFixture[str], umask: None
) -> None:
    own = {str(path) for path in (place / "work", *(place / "work").rglob("*"))}
    job, new = place / "work" / "job.yaml", place / "new"
    new.mkdir(mode=0o700)
    run_verb = partial(verb, capsys)
    sent = run_verb(place, "submit", str(job), "--yes", "--wait", "--timeout", "60")
    assert sent.returncode == 0, sent.stderr
    run = str(history(home)[0]["id"])
    for words in command_lines(job, run, new, writing=True):
        more = ["--yes"] if words[0] in ("submit", "resubmit", "cancel") else []
        done = run_verb(new, *words, *more)
        assert "Traceback" not in done.stderr, (words, done.stderr)
        assert done.returncode == 0 or words[0] in ("cancel", "demo"), (words, done.stderr)
    assert (new / "job.yaml").stat().st_mode & 0o777 == 0o600
    assert (new / "demo").stat().st_mode & 0o777 == 0o700
    found = [row for row in open_to_others(place) if row.partition(" ")[2] not in own]
    assert found == [] == open_to_others(home.data) == open_to_others(home.config / "new")


def test_a_crash_report_is_the_person_s_alone(home: Home, umask: None) -> None:
    process._crashed(ValueError("x"), "show", home.data / "fresh")
    assert open_to_others(home.data) == []
