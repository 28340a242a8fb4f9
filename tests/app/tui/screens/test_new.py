"""The screen New: the launch of the job file that was chosen last, or its error."""

from pathlib import Path

from textual.widgets import Button, Input

from lumitui.app.settings import Settings
from lumitui.app.tui import messages
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.notices import ErrorDialog
from lumitui.app.tui.screens.new import NewScreen
from lumitui.app.tui.screens.runs import RunsScreen
from tests.support.driven_tui import (
    JOB,
    cut_off,
    runs_of,
    sees,
    shown,
    until,
)


async def test_a_job_given_on_the_command_line_is_open(settings: Settings, project: Path) -> None:
    async with LumiApp(settings, project / "job.yaml").run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "1 node, 2 ranks, 2 GPUs" in shown(pilot), "its preview")
        await sees(pilot, "billed +nothing")


async def test_a_bad_job_file_is_an_error_dialog_and_nothing_else(
    settings: Settings, project: Path
) -> None:
    bad = project / "bad.yaml"
    bad.write_text(JOB.format(launcher="srun", args="") + "nods: 2\nstrategy: [/]\n")
    async with LumiApp(settings, bad).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, ErrorDialog), "the error")
        await sees(pilot, "nods")
        await sees(pilot, "nodes")
        assert not cut_off(pilot)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, NewScreen)
        assert pilot.app.screen.query(".action").first(Button).disabled
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, RunsScreen)
        assert runs_of(pilot) == []


async def test_the_launch_of_a_file_chosen_before_is_not_shown(
    settings: Settings, project: Path
) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewScreen), "the screen New")
        screen = pilot.app.screen
        screen.query_one("#path", Input).value = str(project / "job.yaml")
        screen.query_one("#path").focus()
        await pilot.press("enter")
        await sees(pilot, "asks for")
        screen.post_message(messages.PreviewMade(0, project / "fail.yaml", None))
        await pilot.pause()
        await sees(pilot, "asks for")
        assert not screen.query(".action").first(Button).disabled
