"""A walk through every screen: each place, each pane of a run, each dialog."""

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.pilot import Pilot
from textual.scrollbar import ScrollBar
from textual.widget import Widget

from lumitui.app.follow.sites.cluster_overviews import Answered
from lumitui.app.job.settings import Settings
from lumitui.app.tui import app as app_module
from lumitui.app.tui.app import PLACES, LumiApp
from lumitui.app.tui.screens.run_screen import PANES, RunScreen
from lumitui.app.tui.widgets.log.log_view import LogView
from lumitui.remote.site.safe_text import CONTROL_CHARACTERS
from tests.support.gallery.histories import a_cluster
from tests.support.program.driven_tui import app_of, screen_lines, sees, until

SIZES = ((80, 24), (120, 40), (200, 50))
DIALOGS = {
    "help": "question_mark", "cancel": "c", "resubmit": "plus", "palette": "colon", "scaling": "S",
}  # fmt: skip
"""Dialogs and screens by the key that opens each above the list of runs."""


class StillApp(LumiApp):
    """The app without polls: what is shown stays as it was made, each site as the gallery's."""

    # Textual looks for style sheets beside the module of a class.
    CSS_PATH: ClassVar[list[str | PurePath]] = [
        Path(app_module.__file__).parent / path for path in LumiApp.CSS_PATH
    ]

    def __init__(self, settings: Settings, job: Path | None = None, **given: Any) -> None:
        """Answer for the sites, unless `runs` is a recording of them."""
        super().__init__(settings, job, **given)
        if given:
            return
        setattr(self.runs.clusters, "ask", self._answer)  # noqa: B010 - mypy knows it as a method

    def _answer(self, site: str, *, attended: bool = True) -> Answered:
        now = time.time()
        self.runs.clusters._last[site] = answered = Answered(a_cluster(now), now - 5)
        return answered

    def tick(self, *, asked: bool = False) -> None:
        """Poll nothing."""


@dataclass(frozen=True)
class Stop:
    """A screen of the tour, as it is now."""

    name: str
    pilot: Pilot[int]

    def faults(self) -> list[str]:
        """Return what no screen may have, in words; empty when nothing is wrong."""
        app, lines = self.pilot.app, screen_lines(self.pilot.app)
        width, height = app.size
        found = [f"{len(lines)} lines of {height}"] if len(lines) != height else []
        found += [
            f"line {number} has {cell_len(line)} of {width} cells: {line!r}"
            for number, line in enumerate(lines, start=1)
            if cell_len(line) != width
        ]
        text = "\n".join(lines)
        found += [word for word in ("\ufffd", "Traceback (most recent call last):\n  File")
                  if word in text]  # fmt: skip
        found += [
            f"{letter!r} reaches the terminal"
            for letter in sorted(CONTROL_CHARACTERS & set(text) - {"\n"})
        ]
        if app.screen.query("#title") and not lines[0].strip():
            found.append("the title bar is empty")
        if app.screen.query("Footer") and not lines[-1].strip():
            found.append("the footer is empty")
        inside = app.screen.walk_children(Widget)
        bars = [widget for widget in inside if widget.show_vertical_scrollbar]
        found += [
            f"the bar of {widget} is drawn for {bar.position}, not for {widget.scroll_y}"
            for widget in bars
            if _drawn(bar := widget.vertical_scrollbar, bar.position)
            != _drawn(bar, widget.scroll_y)
        ]
        if (focused := app.screen.focused) and not app.screen.region.overlaps(focused.region):
            found.append(f"{focused} has the focus outside the screen")
        return [f"{self.name} at {width}x{height}: {fault}" for fault in found]

    async def lasting_faults(self) -> list[str]:
        """Return the faults that are still there when all has been drawn."""
        deadline = time.monotonic() + 30
        while (found := self.faults()) and time.monotonic() < deadline:
            await self.pilot.pause(0.05)
        return found


def _drawn(bar: ScrollBar, position: float) -> list[Segment]:
    """Return the cells of a bar at a position: a long log moves it by many rows at a time."""
    size, rows, shown = bar.size.height, bar.window_virtual_size, bar.window_size
    return list(bar.renderer.render_bar(size, rows, shown, position).segments)


async def tour(pilot: Pilot[int], *run_ids: str, grid: str = "") -> AsyncIterator[Stop]:
    """Yield every screen, with the panes of each run; without a run, those that need none.

    `grid`: a run of one.
    """
    app = app_of(pilot)
    for place in PLACES:
        app.action_go(place.name)
        await pilot.pause(0.05)
        if place.name == "runs" and run_ids:
            await pilot.press("end", "home")  # the curves are read once a run is chosen
            await pilot.pause(1)
        yield Stop(place.name, pilot)
    app.action_go("runs")
    if grid:
        app.open_grid(grid)
        await sees(pilot, "samples/s")
        yield Stop("grid", pilot)
        app.action_go("runs")
    for run_id in run_ids:
        app.push_screen(screen := RunScreen(app.runs, run_id))
        await pilot.pause(0.05)
        for pane in PANES:
            screen.action_pane(pane)
            await pilot.pause(0.05)
            if pane == "log":
                await until(
                    pilot, lambda: any(log.lines for log in app.screen.query(LogView)), "it"
                )
            yield Stop(f"run-{pane}", pilot)
        app.action_go("runs")
        first = app.screen_stack[0]
        first.choose(run_id)  # type: ignore[attr-defined]  # the first screen is the list of runs
    for name, key in DIALOGS.items() if run_ids else [("help", "question_mark")]:
        await pilot.press(key)
        await pilot.pause(0.05)
        yield Stop(name, pilot)
        while len(app.screen_stack) > 1:
            await pilot.press("escape")
            await pilot.pause(0.02)


async def details(
    pilot: Pilot[int], job: Path, failed: str, sizes: Sequence[str]
) -> AsyncIterator[Stop]:
    """Yield what a tour passes by: runs compared, how they scale, a draft, why a run failed."""
    app = app_of(pilot)
    app.open_compare(tuple(sizes[:2]))
    await sees(pilot, r"samples/s +\d")
    yield Stop("compare", pilot)
    app.action_go("runs")
    app.open_scaling(sizes[0])
    await sees(pilot, "speed-up and efficiency")
    yield Stop("scaling", pilot)
    app.action_go("runs")
    app.open_job(job)
    await sees(pilot, "billed at most")
    for key in ("f1", "f2", "f3", "f4"):
        await pilot.press(key)
        yield Stop(f"new-{key}", pilot)
    app.action_go("runs")
    app.open_run(failed, "why")
    await sees(pilot, "enter: show it in the log")
    yield Stop("why", pilot)
    await pilot.press("enter", "e")
    await sees(pilot, "first error")
    yield Stop("log-error", pilot)


def still(where: Settings, job: Path | None = None) -> StillApp:
    """Return the app on a person's folders; LUMI is this machine, and is never polled."""
    (where.profiles[0] / "lumi.yaml").write_text("extends: lumi\nscheduler: process\n")
    return StillApp(where, job)
