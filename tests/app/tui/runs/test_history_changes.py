"""The TUI over a history that is damaged, or goes away, while it is open."""

import contextlib
import sqlite3
from pathlib import Path

import pytest
from textual._compositor import Compositor, LayoutUpdate
from textual.pilot import Pilot
from textual.widgets import Static

from lumitui.app.history.history import History
from lumitui.app.job.settings import Settings
from lumitui.app.runs import Runs
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.notice_dialogs import ErrorDialog
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.attacks.damaged_history import filled_history, one_page
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import kept, sees, shown, until


async def reports(pilot: Pilot[int], words: str) -> None:
    """Wait until a notice or a dialog shows `words`, on however many lines."""

    def found() -> bool:
        dialog = pilot.app.screen.query("#message, #hint").results(Static)
        notices = [notice.message for notice in pilot.app._notifications]
        return any(words in text for text in (*notices, *(str(item.content) for item in dialog)))

    await until(pilot, found, f"reported: {words}")


async def test_damage_while_the_tui_is_open_is_reported_and_it_goes_on(
    settings: Settings, project: Path
) -> None:
    filled_history(settings.history)
    history = History(settings.history)
    for run in history.page(limit=100):
        history.update(run.id, state=State.DONE)
    history.close()
    app = LumiApp(settings)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: "r-000059" in shown(pilot), "the runs")
        one_page(settings.history)
        # What another process writes makes this one read the file again.
        with contextlib.closing(sqlite3.connect(settings.history)) as db:
            db.execute("UPDATE runs SET note = 'x' WHERE id = 'r-000000'")
            db.commit()
        await pilot.press("r")
        await reports(pilot, "history --recover SITE")
        while isinstance(app.screen, ErrorDialog):
            await pilot.press("escape")
        await reports(pilot, "is kept as")
        await until(pilot, lambda: "r-000059" not in shown(pilot), "a fresh history")
        run = kept(app)
        await sees(pilot, f"done +{run.id}")
    assert list(settings.data.glob("history.db.corrupt-2*"))
    core = Runs(settings)
    assert [found.id for found in core.history.page()] == [run.id]
    core.close()


async def test_a_history_removed_while_the_tui_is_open_is_reported(
    settings: Settings,
) -> None:
    app = LumiApp(settings)
    app.runs.history.begin(a_run("before-000001", state=State.DONE))
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: "before-000001" in shown(pilot), "the run")
        for path in settings.data.glob("history.db*"):
            path.unlink()
        await reports(pilot, "removed while it was open")
        await until(pilot, lambda: "before-000001" not in shown(pilot), "a fresh history")
        assert not isinstance(app.screen, ErrorDialog)


async def test_what_was_damaged_before_is_reported_when_the_tui_opens(settings: Settings) -> None:
    settings.data.mkdir(parents=True, exist_ok=True)
    settings.history.write_bytes(b"no history " * 1000)
    app = LumiApp(settings)
    async with app.run_test(size=(100, 30)) as pilot:
        await reports(pilot, "is kept as")


@pytest.mark.parametrize(
    ("column", "value"), [("created", "x"), ("exits", "x"), ("state", "x"), ("note", b"\xff")]
)
async def test_a_damaged_row_is_reported_and_the_other_runs_stay_usable(
    settings: Settings, column: str, value: object
) -> None:
    app = LumiApp(settings)
    for at, name in enumerate(("good-000001", "damaged-000002")):
        app.runs.history.begin(a_run(name, state=State.DONE, created=1000.0 + at))
    with contextlib.closing(sqlite3.connect(settings.history)) as db, db:
        db.execute(f"UPDATE runs SET {column} = ? WHERE id = 'damaged-000002'", (value,))
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: "good-000001" in shown(pilot), "the run")
        app.open_run("damaged-000002")
        await sees(pilot, "The run damaged-000002 cannot be read.")
        await pilot.press("escape")
        app.open_run("good-000001")
        await sees(pilot, "Overview")


async def test_a_change_draws_nothing_of_a_screen_that_is_covered(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = LumiApp(settings)
    app.runs.history.begin(a_run("covered-000001", state=State.DONE))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "covered-000001" in shown(pilot), "the run")
        app.push_screen(RunScreen(app.runs, "covered-000001", "timeline"))
        await sees(pilot, "Timeline")
        await pilot.pause(0.5)
        whole: list[object] = []
        update = Compositor.render_full_update

        def noted(compositor: Compositor, simplify: bool = False) -> LayoutUpdate:
            whole.append(compositor)
            return update(compositor, simplify)

        monkeypatch.setattr(Compositor, "render_full_update", noted)
        for _ in range(3):
            app.history_changed()
            await pilot.pause(0.1)
    assert not whole
