"""Where a job would start first: a key on New compares the places, and takes one over."""

from pathlib import Path
from typing import Any

import pytest

from lumitui.app.job.settings import Settings
from lumitui.app.job.spec import JobSpec
from lumitui.app.runs import Runs, StartPlace
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.pick import distance
from lumitui.app.tui.dialogs.start_dialog import StartDialog
from lumitui.app.tui.panes.compose.text_pane import TextEditor
from lumitui.app.tui.screens.new_screen import NewScreen
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import app_of, cut_off, sees, shown, until

LUMI = """# a trial
name: vit                # short
site: lumi
account: project_462000001
partition: small-g
nodes: 2                 # grows
time: "01:00:00"
container: {image: x.sif}
script: hello.py
"""
NOW = 1_800_000_000.0
OWN = (
    StartPlace("lumi", "small-g", 2, {}, start=NOW, waiting=34, latest_end=NOW + 3600),
    StartPlace("lumi", "standard-g", 2, {"partition": "standard-g"}, waiting=512),
    StartPlace("lumi", "dev-g", 2, {"partition": "dev-g"}, refusal="Its limit is 30 minutes."),
)
MN5 = {"site": "mn5", "account": "bsc1", "partition": "acc", "nodes": 4, "container": None}
OTHERS = (StartPlace("mn5", "acc", 4, MN5, start=NOW, waiting=0, latest_end=NOW + 3600),)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Answer for the sites; return which were asked, in their order."""
    calls: list[tuple[str, ...]] = []

    def start_places(
        self: Runs, job: JobSpec, folder: Path, *, sites: Any = None
    ) -> tuple[StartPlace, ...]:
        calls.append(tuple(sites or (job.site,)))
        return OTHERS if sites else OWN

    monkeypatch.setattr(Runs, "start_places", start_places)
    return calls


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_chosen_place_is_taken_over_into_the_job_file(
    settings: Settings, project: Path, asked: list[tuple[str, ...]], size: tuple[int, int]
) -> None:
    job = project / "lumi.yaml"
    job.write_text(LUMI)
    app = LumiApp(settings, job)
    for number, site in enumerate(("mn5", "laptop", "gone", "lumi")):
        app.runs.history.begin(a_run(f"there-{number:06d}", site=site, state=State.DONE))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, NewScreen), "the New screen")
        screen = app.screen
        assert isinstance(screen, NewScreen)
        await until(pilot, lambda: bool(screen._checked and screen._checked.previews), "its check")
        await pilot.press("P")
        await until(pilot, lambda: isinstance(app.screen, StartDialog), "the places")
        assert asked == [("lumi",), ("mn5",)]
        await sees(pilot, r"Site +Partition +Nodes +Starts +Waiting")
        await sees(pilot, r"lumi +standard-g +2 +unknown +512")
        await sees(pilot, r"lumi, dev-g: Its limit is 30 minutes\.")
        assert not cut_off(pilot) and "1 more refused" in shown(pilot)
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: app_of(pilot).screen is screen, "the form")
        text = screen.query_one(TextEditor).text
        assert "site: mn5\naccount: bsc1\npartition: acc\nnodes: 4" in text
        assert "container" not in text and "# grows" in text
        assert job.read_text() == LUMI, "nothing is saved by itself"


async def test_no_place_is_taken_over_after_esc_or_an_edit(
    settings: Settings, project: Path, asked: list[tuple[str, ...]]
) -> None:
    job = project / "lumi.yaml"
    job.write_text(LUMI)
    async with LumiApp(settings, job).run_test(size=(120, 40)) as pilot:
        app = app_of(pilot)
        await until(pilot, lambda: isinstance(app.screen, NewScreen), "the New screen")
        screen = app.screen
        assert isinstance(screen, NewScreen)
        await until(pilot, lambda: bool(screen._checked and screen._checked.previews), "its check")
        await pilot.press("P")
        await until(pilot, lambda: isinstance(app.screen, StartDialog), "the places")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen, "the form")
        assert screen.query_one(TextEditor).text == LUMI
        screen._offer_places(screen._asked - 1, OWN)
        await pilot.pause()
        assert app.screen is screen


def test_names_that_begin_with_the_typed_text_come_first() -> None:
    names = ["minilumi", "mycosmos", "cosmos"]
    names.sort(key=lambda name: distance(name, "co"))
    assert names == ["cosmos", "mycosmos", "minilumi"]
