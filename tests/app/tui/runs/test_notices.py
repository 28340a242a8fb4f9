"""What happened to runs is told: after an absence, at once, and when the runs of the demo end."""

from dataclasses import replace
from pathlib import Path

import pytest
from textual import events
from textual.drivers.headless_driver import HeadlessDriver
from textual.widgets._toast import Toast

from lumitui.app.follow.notifications.last_seen import mark_told, read_last_seen
from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.screens.scaling_screen import ScalingScreen
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import SPEC, a_run
from tests.support.program.driven_tui import screen_lines, until

NAMES = {"one-000001": State.DONE, "two-000002": State.DONE, "three-000003": State.FAILED}


async def test_ends_are_told_after_an_absence_and_at_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = LumiApp(settings)
    for run_id in (*NAMES, "four-000004", "five-000005", "six-000006", "shown-000007"):
        app.runs.history.begin(a_run(run_id, state=State.QUEUED, job_id="41"))
    async with app.run_test(size=(120, 30)) as pilot:
        await until(pilot, lambda: "somewhere " in screen_lines(app)[0], "the link")
        assert not app.absence and not app._notifications, "nothing happened yet"
    assert (settings.data / "last-seen").stat().st_mode & 0o777 == 0o600

    mark_told(settings.data / "last-seen", "shown-000007")
    app = LumiApp(settings)
    for run_id, state in (*NAMES.items(), ("shown-000007", State.DONE)):
        app.runs.history.update(run_id, state=state)
    written: list[str] = []
    monkeypatch.setattr(HeadlessDriver, "write", lambda _, data: written.append(data))

    def toasts() -> str:
        return " ".join(toast.message for toast in app._notifications)

    async with app.run_test(size=(120, 30)) as pilot:
        words = "3 ended while you were away: 2 done, 1 failed"
        await until(pilot, lambda: words in screen_lines(app)[0], "the catch-up")
        await until(pilot, lambda: toasts().count(words) == 1, "a toast")
        await pilot.press("j")
        await until(pilot, lambda: words not in screen_lines(app)[0], "seen")
        app.action_go("sites")  # the list of runs shows their states itself
        app.post_message(events.AppBlur())
        await until(pilot, lambda: app.schedule.focused is False, "behind")
        app.own_cancels.add("five-000005")
        app.runs.history.update("four-000004", state=State.RUNNING)
        app.runs.history.update("five-000005", state=State.CANCELLED)
        await until(pilot, lambda: "four-000004 is running on somewhere." in toasts(), "a start")
        said = "\x1b]9;lumitui: four-000004 is running on somewhere.\x1b\\"
        await until(pilot, lambda: said in written, "the terminal is told")
        assert "five-000005" not in toasts(), "who cancels a run needs no notice"
        app.runs.history.update("six-000006", state=State.TIMEOUT)
        await until(pilot, lambda: "six-000006: timeout" in toasts(), "an end")
        # At once, since a window may be closed without q.
        seen = read_last_seen(settings.data / "last-seen")
        assert seen is not None and "six-000006" not in seen.unfinished
    app = LumiApp(settings)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        app.notify("six-000006 is running on somewhere.")
        await until(pilot, lambda: app.screen.query(Toast), "a toast")
        await pilot.pause(1.2)
        assert not app.absence, "what was told is not told again"
        toast = app.screen.query(Toast).last().region
        assert (toast.height, toast.y) == (1, 20), "the newest runs and the keys are free"


async def test_a_toast_leaves_with_its_screen_and_repeats_nothing_that_is_shown(
    settings: Settings,
) -> None:
    app = LumiApp(settings)
    app.runs.history.begin(a_run("one-000001", state=State.QUEUED, job_id="41"))

    def toasts() -> list[str]:
        return [toast.message for toast in app._notifications]

    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(1.2)
        app.runs.history.update("one-000001", state=State.RUNNING)
        await until(pilot, lambda: "running" in "".join(screen_lines(app)), "its state")
        await pilot.pause(1.2)
        assert not toasts(), "the list shows it"
        for words, seconds in (("older", 20), ("long", 20), ("short", None)):
            app.notify(words, timeout=seconds)
        await pilot.pause(1.2)
        assert toasts() == ["long", "short"]
        app.action_go("sites")
        assert toasts() == ["long"], "the short one was about the other screen"
        await pilot.press("j")  # waits until the screen is complete
        app.notify("just now")
        await pilot.pause()
        app.to_first()
        assert toasts() == ["long", "just now"], "not read yet"


async def test_the_demo_ends_with_how_it_scales(settings: Settings, project: Path) -> None:
    app = LumiApp(settings, project / "job.yaml", demo=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        history = app.runs.history
        later = {"project": str(project), "created": 4e9, "state": State.DONE, "job_id": "41"}
        first = a_run("demo-000001", **later)
        spec = SPEC.model_copy(update={"nodes": 2 * SPEC.nodes})
        layout = replace(first.layout, nodes=spec.nodes)
        second = a_run("demo-000002", parent=first.id, spec=spec, layout=layout, **later)
        history.begin(first)
        # Neither another project's, nor one that failed, nor one of the same size.
        history.begin(replace(second, id="demo-000003", project="/elsewhere"))
        history.begin(replace(second, id="demo-000004", state=State.FAILED))
        history.begin(replace(first, id="demo-000005", parent=first.id))
        await pilot.pause(1.2)
        assert not isinstance(app.screen, ScalingScreen)
        history.begin(second)
        await until(pilot, lambda: isinstance(app.screen, ScalingScreen), "how it scales")
        assert isinstance(app.screen, ScalingScreen) and app.screen.chosen == second.id
        await pilot.press("escape")
        await pilot.pause(1.2)
        assert not isinstance(app.screen, ScalingScreen), "it opens once"
