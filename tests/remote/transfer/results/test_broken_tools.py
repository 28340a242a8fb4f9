"""Commands of a site that hang, print without end or are killed during a fetch: one sentence."""

from pathlib import Path

import pytest

from lumitui.app.follow.results.result_files import check_fetch
from lumitui.remote.site.errors import AnswerUnusable, LumiError, RefusedError
from lumitui.remote.transfer.results import site_files, transfer
from lumitui.remote.transfer.results.fetch_files import fetch
from lumitui.remote.transport.local import Local
from tests.support.program.child import is_gone


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder before all others in the site's PATH; limits of silence are short."""
    monkeypatch.setattr(site_files, "SILENT_SECONDS", 1.0)
    monkeypatch.setattr(transfer, "STALL_SECONDS", 1.0)
    monkeypatch.setattr(site_files, "COMPLAINTS_BYTES", 100_000)
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def program(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f'#!/bin/sh\necho $$ >"{folder}/pid"\n{body}\n')
    (folder / name).chmod(0o755)


NAMES = ("find", "stat", "sha256sum", "head", "sed", "tr")
BODIES = ("exec sleep 600", "exec yes 99999", "exec yes 9 >&2")


@pytest.mark.parametrize(
    ("name", "body"),
    [  # each program and each way in `make test`, and all of them together with the slow tests
        pytest.param(name, body, marks=[] if at % 3 == way else [pytest.mark.slow])
        for at, name in enumerate(NAMES)
        for way, body in enumerate(BODIES)
    ],
)
def test_a_command_that_hangs_or_prints_without_end(
    run: Path,
    programs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    body: str,
) -> None:
    monkeypatch.setattr(site_files, "SILENT_SECONDS", 0.4)
    program(programs, name, body)
    try:
        brought = fetch(Local(), str(run), ["*"], tmp_path / "here")
        check_fetch(brought, named=True)
        assert len(brought.files) == 3, "it was ended, and nothing is missing"
    except LumiError as error:
        assert "No file matches" not in str(error) and len(str(error)) < 3000
    assert is_gone((programs / "pid").read_text().strip())


@pytest.mark.parametrize("body", ["kill -9 $$", "exit 127"])
def test_a_find_that_did_not_end_by_itself_is_no_list(
    run: Path, programs: Path, tmp_path: Path, body: str
) -> None:
    program(programs, "find", body)
    with pytest.raises(AnswerUnusable, match="`find` exited with"):
        fetch(Local(), str(run), ["checkpoints/*", "*"], tmp_path / "here")


def test_a_find_that_fails_without_a_word_has_its_status(
    run: Path, programs: Path, tmp_path: Path
) -> None:
    program(programs, "find", "exit 1")
    with pytest.raises(RefusedError, match="`find` there exited with 1") as told:
        check_fetch(fetch(Local(), str(run), ["*"], tmp_path / "here"), named=True)
    assert "No file matches" not in str(told.value)
