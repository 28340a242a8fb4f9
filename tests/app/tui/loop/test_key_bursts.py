"""Keys typed faster than the screens open act in order, and nothing is collected meanwhile."""

import gc
import time
from pathlib import Path

import pytest
from textual import events
from textual.keys import _character_to_key

from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.resubmit_dialog import ResubmitDialog
from lumitui.app.tui.screens.new_screen import NewScreen
from lumitui.app.tui.screens.runs_screen import RunsScreen
from lumitui.app.tui.widgets.tables.size_ladder import SizeLadder
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.trained_runs import train
from tests.support.program.driven_tui import sees, until
from tests.support.program.home import Home


def burst(app: LumiApp, *keys: str) -> None:
    """Hand keys to the app as a terminal does that has them all in one read."""
    for key in keys:
        if key.startswith("paste:"):
            app.post_message(events.Paste(key.removeprefix("paste:")))
            continue
        letter = key if len(key) == 1 else None
        app.post_message(events.Key(_character_to_key(key) if letter else key, letter))


async def test_no_key_of_a_burst_reaches_the_screen_below(
    settings: Settings, project: Path
) -> None:
    app = LumiApp(settings)
    history = app.runs.history
    history.begin(a_run("one-000001", state=State.DONE, job_id="41"))
    history.begin(a_run("two-000002", state=State.DONE, job_id="42", created=2000.0))
    async with app.run_test(size=(80, 24)) as pilot:
        # The first screen is not there yet, and a digit is meant for the one it opens.
        burst(app, "3", "down", "2")
        await until(pilot, lambda: isinstance(app.screen, NewScreen), "the New screen")
        await pilot.press("1")
        burst(app, "j", "M", *"hello my note", "enter", "k", "M", "paste:pasted n", *"ote", "enter")
        await until(pilot, lambda: history.get("two-000002").note, "the notes")
        notes = {run_id: history.get(run_id).note for run_id in ("one-000001", "two-000002")}
        assert notes == {"one-000001": "hello my note", "two-000002": "pasted note"}
        assert len(app.screen_stack) == 1 and not app._notifications, "no letter was a command"
        app.open_job(project / "job.yaml")
        await sees(pilot, "name +hello")
        burst(app, "enter", "ctrl+u", *"many", "ctrl+u", *"jayswc", "enter", "j", "1")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen), "the runs")
        await until(pilot, lambda: app.kept, "the draft that was left")
        assert app.kept is not None and "name: jayswc\n" in app.kept.text


@pytest.mark.parametrize(
    ("keys", "chosen", "marked"),
    [
        (("down", "space"), 2, frozenset({2})),
        (("space",), 2, frozenset({2})),
        (("down", "down"), 4, frozenset()),
    ],
)
async def test_a_key_after_one_that_leaves_a_field_reaches_the_next_widget(
    settings: Settings, keys: tuple[str, ...], chosen: int, marked: frozenset[int]
) -> None:
    app = LumiApp(settings)
    run = train(app.runs.history, {1: 1000.0, 2: 1940.0})[0]
    app.runs.history.update(run.id, snapshot="0123456789abcdef")
    async with app.run_test(size=(80, 24)) as pilot:
        dialog = ResubmitDialog(run, 2)
        app.push_screen(dialog)
        await sees(pilot, "Send on 2 nodes")
        burst(app, *keys)
        ladder = dialog.query_one(SizeLadder)
        await until(pilot, lambda: (ladder.chosen, ladder.marked) == (chosen, marked), "the sizes")


@pytest.mark.parametrize(("silent", "left"), [(0.5, 10), (1.5, 0)])
def test_a_full_collection_waits_for_a_quiet_moment(home: Home, silent: float, left: int) -> None:
    app = LumiApp(home.settings)
    gc.collect()
    for _ in range(10):
        gc.collect(1)
    app.schedule.last_input = time.monotonic() - silent
    app._rest()
    assert gc.get_count()[2] == left
    app.runs.close()
