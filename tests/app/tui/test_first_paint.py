"""The first paint waits for nothing that the first screen does not show."""

import os
import subprocess
import sys

from tests.support.places import ROOT
from tests.support.program.home import Home

OPENED = """
import asyncio, sys
from lumitui.app.settings import settings
from textual.css.stylesheet import Stylesheet
from lumitui.app.tui.app import LumiApp

def again(sheet):
    raise AssertionError("the style sheets are parsed a second time")

Stylesheet.reparse = again

async def paint():
    async with LumiApp(settings()).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert type(pilot.app.screen).__name__ == "RunsScreen"
        print(*sorted(sys.modules))

asyncio.run(paint())
"""
LATE = {
    "paramiko", "cryptography", "jinja2", "hjson", "tarfile", "yaml", "pydantic",
    "lumitui.app.job.spec", "lumitui.app.history.listing.terms",
    "lumitui.app.history.metrics.points",
    "lumitui.app.watch.refresh", "lumitui.remote.scheduler.protocol", "lumitui.remote.connect",
    "lumitui.app.compose", "lumitui.app.scale", "lumitui.app.results.fetch",
    "lumitui.app.send.submission.submit",
    "lumitui.app.explain.failure.diagnose", "lumitui.app.explain.failure.rules.table",
    "lumitui.remote.source",
    "lumitui.remote.storage", "lumitui.remote.questions.doctor", "lumitui.app.tui.screens.run",
    "lumitui.app.tui.screens.new", "lumitui.app.tui.screens.sites", "lumitui.app.tui.panes.log",
    "lumitui.app.tui.panes.script",
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
