"""The demo: once both of its runs have ended, shows how it scales."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from lumitui.app.runs import State

if TYPE_CHECKING:
    from lumitui.app.runs import Runs
    from lumitui.app.tui.app import LumiApp


def follow_demo(app: LumiApp, job: Path) -> None:
    """Open the demo's scaling as soon as its second run has succeeded."""
    project, began = job.parent.resolve(), time.time()

    def look() -> None:
        if not app.screen.is_modal and (second := _scaled(app.runs, project, began)):
            timer.stop()
            app.open_scaling(second)

    timer = app.set_interval(1.0, look)


def _scaled(runs: Runs, project: Path, began: float) -> str | None:
    """Return the run that repeats the training on more nodes, if it and the first are done."""
    history = runs.history
    for run in history.page(10):
        if run.created >= began and run.parent and run.state is State.DONE:
            first, here = history.get(run.parent), history.get(run.id).project
            larger = run.layout.nodes > first.layout.nodes
            if Path(here).resolve() == project and larger and first.state is State.DONE:
                return run.id
    return None
