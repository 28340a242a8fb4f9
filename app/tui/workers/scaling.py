"""Studies of how runs scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on, work

from lumitui.app.tui import messages
from lumitui.app.tui.workers.core import CoreApp
from lumitui.remote.errors import LumiError

if TYPE_CHECKING:
    from lumitui.app.scale.scaling.study import Scaling


class ScalingWorkers(CoreApp):
    """An app that studies how runs scale."""

    @on(messages.StudyWanted)
    def _study_wanted(self, event: messages.StudyWanted) -> None:
        self._study(event)

    @work(thread=True, group="study", exit_on_error=False)
    def _study(self, wanted: messages.StudyWanted) -> None:
        outcome: Scaling | LumiError
        try:
            outcome = self.runs.scaling.of(wanted.run_id, wanted.question)
        except LumiError as error:
            outcome = error  # the one who asked shows it where it belongs
        wanted.reply_to.post_message(messages.StudyMade(wanted.number, outcome))
