"""The key that measures a node: its price first, then what it found, to save in the profile."""

from pathlib import Path

import pytest

from lumitui.app.history.run import Run
from lumitui.app.job.settings import Settings
from lumitui.app.launch.send.preview import Preview
from lumitui.app.runs import Runs
from lumitui.app.survey.profile.profile_edit import edited
from lumitui.app.survey.profile.surveys import Looked, Surveys
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.confirm_dialog import Confirm
from lumitui.app.tui.dialogs.measured_dialog import MeasuredDialog
from lumitui.app.tui.dialogs.resubmit_dialog import ResubmitDialog
from lumitui.app.tui.screens.sites_screen import SitesScreen
from lumitui.remote.survey.profile.node_facts import compare
from lumitui.remote.survey.profile.node_report import read
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import sees, shown, until
from tests.support.replies.surveyed import NODE, SURVEY, text_from


@pytest.fixture
def profile(settings: Settings) -> Path:
    """The profile of a surveyed cluster, called `new`."""
    path = settings.profiles[0] / "new.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_from(SURVEY))
    return path


async def test_a_node_is_measured_after_a_yes_to_the_price_and_the_result_saved(
    settings: Settings, profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, sent, over = profile.read_text(), list[str](), list[Run]()
    run = a_run("node-probe-000001", name="node-probe", site="new", created=4e9)

    def looked(surveys: Surveys, _: Run) -> Looked:
        site = surveys._sites.load("new")
        measured = compare(read(NODE), site)
        return Looked(measured, edited(measured, site, settings.profiles))

    def send(runs: Runs, preview: Preview, **_: object) -> Run:
        sent.append(preview.name)
        return run

    monkeypatch.setattr(Surveys, "looked", looked)
    monkeypatch.setattr(Surveys, "measured", lambda *_: over[0] if over else None)
    monkeypatch.setattr(Runs, "send", send)
    app = LumiApp(settings)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("3", "slash", *"new", "enter", "f5")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await sees(
            pilot, r"(?s)Measure a node of new\?.*one of whole.*at most 00:05:00.*billing units"
        )
        assert app.screen.query_one(".dialog").region.width < 100, "inset where there is room"
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: app.screen.query_one(".dialog").region.width == 80, "no sliver")
        await pilot.resize_terminal(100, 30)
        await pilot.press("n", "f5")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question again")
        assert not sent
        await pilot.press("y")
        await until(pilot, lambda: sent == ["node-probe"], "the job")
        over.append(run)
        await until(pilot, lambda: isinstance(app.screen, MeasuredDialog), "the report")
        await sees(pilot, r"(?s)gx11, measured.*The node lacks python3.*\+python_on_compute_nodes")
        assert profile.read_text() == before
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, SitesScreen), "no run's page meanwhile")
        assert app.defect is None
        assert "gpu_cores: [13-23, 1-11, 37-47, 25-35]" in profile.read_text()
        # The report of the last job is offered again; now there is nothing to save.
        await pilot.press("f5")
        await sees(pilot, "The profile already contains all of this")
        await pilot.press("s")
        assert isinstance(app.screen, MeasuredDialog) and "Measure again" in shown(pilot)
    app.runs.close()


async def test_plus_on_a_job_that_measured_a_node_says_what_to_do(settings: Settings) -> None:
    app = LumiApp(settings)
    app.runs.history.begin(a_run("node-probe-000001", name="node-probe", site="new"))
    async with app.run_test(size=(100, 30)) as pilot:
        await sees(pilot, "node-probe-000001")
        await pilot.press("+")
        await sees(pilot, r"(?s)only measures a node.*site check new")
        assert not isinstance(app.screen, ResubmitDialog)
    app.runs.close()
