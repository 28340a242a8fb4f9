"""The files of a run's folder: listed, viewed and fetched from the embedded site."""

from pathlib import Path

import pytest
from textual.widgets import Input, Tree

from lumitui.app.follow.results.result_files import PREVIEW_BYTES, fetch_pattern, group_of
from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.line_dialog import LineDialog
from lumitui.app.tui.panes.files_pane import fetch_line
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import RefusedError
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import sees, shown, until

HOSTILE = "[red]\x1b]0;owned\x07a b*?['.txt"


async def test_files_are_listed_viewed_and_fetched(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / HOSTILE).write_text("[b]first line\x1b[2J\n" * 3)
    (folder / "checkpoints" / "last.pt").write_bytes(b"\0" * 200_000)
    app = LumiApp(settings)
    run = a_run(site="laptop", state=State.DONE, job_id="7", folder=str(folder))
    app.runs.history.begin(run)
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(RunScreen(app.runs, run.id))
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
        await pilot.press("F")
        await sees(pilot, r"2 files, 200 kB; enter opens or fetches")
        await sees(pilot, r"\[red\]\^\[\]0;owned\^Ga b\*\?\['.txt")
        await pilot.press("v")
        await sees(pilot, r"\[b\]first line")
        assert "\x1b" not in shown(pilot)
        await sees(pilot, r"▼ checkpoints/  1 file, 200 kB")
        await pilot.press("v", "j", "enter")
        await sees(pilot, r"▶ checkpoints/")
        await pilot.press("right")
        await sees(pilot, r"▼ checkpoints/")
        await pilot.press("j", "left", "left")
        await sees(pilot, r"▶ checkpoints/")
        await pilot.press("enter", "j", "enter")
        await until(pilot, lambda: isinstance(app.screen, LineDialog), "the question")
        await sees(pilot, r"checkpoints/last.pt, 200 kB")
        app.screen.query_one(Input).value = "~nobody-of-this-name"
        await pilot.press("enter")
        await sees(pilot, "Fetched .*~nobody-of-this-name")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LineDialog), "the question again")
        app.screen.query_one(Input).value = str(tmp_path / "here")
        await pilot.press("enter")
        path = tmp_path / "here" / "checkpoints" / "last.pt"
        await until(pilot, path.exists, "the file")
        assert path.stat().st_size == 200_000
        await sees(pilot, "Fetched")
        (folder / HOSTILE).unlink()
        await pilot.press("r")
        await sees(pilot, r"1 file, 200 kB")


async def test_a_folder_of_many_files_is_closed_and_stays_as_the_user_left_it(
    settings: Settings, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    for name in ("attempt-1.out", "job.sh", *(f"parts/{at:02d}.bin" for at in range(20))):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    app = LumiApp(settings)
    run = a_run(site="laptop", state=State.DONE, job_id="7", folder=str(folder))
    app.runs.history.begin(run)
    async with app.run_test(size=(80, 40)) as pilot:
        app.push_screen(RunScreen(app.runs, run.id))
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
        await pilot.press("F")
        await sees(pilot, r"▶ parts/  20 files")
        assert "▶ code" in shown(pilot) and "▼ logs" in shown(pilot)
        # The rows are there before the cursor, which begins at the first file.
        tree = app.screen.query_one("#files-tree", Tree)
        await until(pilot, lambda: tree.cursor_node and not tree.cursor_node.allow_expand, "a file")
        await pilot.press("k", "k", "enter")
        await sees(pilot, r"19.bin")
        (folder / "parts" / "20.bin").write_text("more")
        await pilot.press("r")
        await sees(pilot, r"▼ parts/  21 files")
        await sees(pilot, r"20.bin")


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("checkpoints/last.pt", "results"),
        ("metrics.jsonl", "results"),
        ("plots/a.out", "results"),
        ("attempt-2.out", "logs"),
        ("venv.log", "logs"),
        ("code/src/train.py", "code"),
        ("job.sh", "code"),
        ("attempt-2.exit", "records"),
        ("lumitui.json", "records"),
        ("binding.json", "records"),
        (".record-from-scratch", "records"),
    ],
)
def test_a_file_has_its_group_by_its_name(name: str, group: str) -> None:
    assert group_of(name) == group


def test_a_fetch_shows_a_bar_that_reads_without_colour() -> None:
    line = fetch_line("last.pt", 50_000_000, 200_000_000, 10e6)
    assert line == "Fetching last.pt ▓▓▓▓▓░░░░░░░░░░░░░░░ 25% of 200 MB, 10 MB/s, 15s left"
    assert fetch_line("empty", 0, 0, 0.0).endswith("▓ 100% of 0 B")


def test_the_beginning_of_a_file_is_read_and_a_name_becomes_a_pattern(
    settings: Settings, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "long").write_text("x" * (PREVIEW_BYTES + 1))
    (folder / "binary").write_bytes(b"\0\1")
    (folder / HOSTILE).write_text("fetched")
    app = LumiApp(settings)
    run = a_run(site="laptop", state=State.DONE, job_id="7", folder=str(folder))
    app.runs.history.begin(run)
    files = app.runs.files
    assert {item.name for item in files.list(run.id).files} == {"long", "binary", HOSTILE}
    found = files.preview(run.id, "long")
    assert (len(found.text), found.cut, found.binary) == (PREVIEW_BYTES, True, False)
    assert files.preview(run.id, "binary").binary
    with pytest.raises(RefusedError, match="cannot read gone"):
        files.preview(run.id, "gone")
    app.runs.fetch(run.id, tmp_path / "here", [fetch_pattern(HOSTILE)])
    assert (tmp_path / "here" / HOSTILE).read_text() == "fetched"
    app.runs.close()
