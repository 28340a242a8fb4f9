"""The guide of the first run, and the demo: when both of its runs have ended, how it scales."""

import time
from pathlib import Path

from textual import on

from lumitui.app.tui import messages
from lumitui.app.tui.flows.scale_up import ScaleApp
from lumitui.remote.site.states import State


class FirstRunApp(ScaleApp):
    """An app that opens the jobs of the guide, and follows the demo."""

    def open_job(self, job: Path) -> None:
        """Open a job file on the screen New; esc leads back to where the person was."""
        from lumitui.app.tui.screens.new_screen import NewScreen

        self.push_screen(NewScreen(self.runs, job))

    @on(messages.JobWanted)
    def _job_wanted(self, event: messages.JobWanted) -> None:
        self.open_job(event.job)
        if event.demo:
            self.follow_demo(event.job)

    def follow_demo(self, job: Path) -> None:
        """Open how the demo scales as soon as its second run has ended well."""
        project, began = job.parent.resolve(), time.time()

        def look() -> None:
            if not self.screen.is_modal and (second := self._scaled(project, began)):
                timer.stop()
                self.post_message(messages.ScalingWanted(second))

        timer = self.set_interval(1.0, look)

    def _scaled(self, project: Path, began: float) -> str | None:
        """Return the run that trained again on more nodes, if it and the first are done."""
        history = self.runs.history
        for run in history.page(10):
            if run.created >= began and run.parent and run.state is State.DONE:
                first, here = history.get(run.parent), history.get(run.id).project
                larger = run.layout.nodes > first.layout.nodes
                if Path(here).resolve() == project and larger and first.state is State.DONE:
                    return run.id
        return None
