"""The first paint waits for nothing that the first screen does not show."""

import os
import subprocess
import sys

from tests.support.places import ROOT
from tests.support.program.home import Home

OPENED = """
import asyncio, gc, sys
from lumitui.app.job.settings import settings
from textual.css.stylesheet import Stylesheet
from lumitui.app.tui.app import LumiApp

def again(sheet):
    raise AssertionError("the style sheets are parsed a second time")

Stylesheet.reparse = again

async def paint():
    gc.disable()
    app = LumiApp(settings())
    app.owns_process = True
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert type(app.screen).__name__ == "RunsScreen"
        assert "late" not in {name for _, name in app.stylesheet.source}
        assert gc.isenabled(), "garbage is collected again after the first paint"
        print(*sorted(sys.modules))

asyncio.run(paint())
"""
LATE = {
    "paramiko", "cryptography", "jinja2", "hjson", "tarfile", "yaml", "pydantic",
    "lumitui.app.job.spec", "lumitui.app.history.listing.filters",
    "lumitui.app.follow.refresh", "lumitui.remote.scheduler.scheduler_protocol",
    "lumitui.remote.connect",
    "lumitui.app.launch.compose", "lumitui.app.scale", "lumitui.app.follow.results.result_files",
    "lumitui.app.launch.send.submit",
    "lumitui.app.knowledge.failure.diagnose", "lumitui.app.knowledge.causes.cause_table",
    "lumitui.remote.source",
    "lumitui.remote.transfer", "lumitui.remote.survey.doctor", "lumitui.app.tui.screens.run_screen",
    "lumitui.app.tui.screens.new_screen", "lumitui.app.tui.screens.sites_screen",
    "lumitui.app.tui.panes.log_pane",
    "lumitui.app.tui.widgets.script_view", "lumitui.app.tui.widgets.chart",
    "lumitui.app.explain.proof.binding_proof", "lumitui.app.explain.training_summary",
}  # fmt: skip


def test_the_first_paint_imports_only_the_first_screen(home: Home) -> None:
    home.data.mkdir()
    home.settings.guide.write_text("{}")  # not the very first start, which opens the guide
    done = subprocess.run(
        [sys.executable, "-c", OPENED],
        capture_output=True,
        text=True,
        env={**os.environ, **home.environ, "PYTHONPATH": str(ROOT / "src")},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(LATE & set(done.stdout.split())) == []
