"""Studies of how runs scale, and sends of several runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on, work

from lumitui.app.tui import messages
from lumitui.app.tui.workers.core import CoreApp
from lumitui.remote.site.errors import LumiError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lumitui.app.history.listing.series_runs import Member, Series
    from lumitui.app.scale.scaling.study import Scaling
    from lumitui.app.scale.series_words import Standing
    from lumitui.app.tui.dialogs.sending import SendingDialog

_UNFINISHED = "The key U asks to send the rest of it; a no there leaves it out."


class ScalingWorkers(CoreApp):
    """An app that studies how runs scale, and sends several runs."""

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

    @work(thread=True, group="send", exit_on_error=False)
    def send_series(
        self,
        begin: Callable[[], Series],
        dialog: SendingDialog,
        agreed: Sequence[Member] | None = None,
    ) -> None:
        """Send the runs of the series that `begin` returns; what fails is told at the end.

        Of one that was begun before, only those that were `agreed` to.
        """

        def report(step: str, words: str) -> None:
            dialog.post_message(messages.StepReported(step, words))

        from lumitui.app.scale.series_words import LadderUnfinished

        ended = messages.SeriesEnded(dialog, None, ())
        try:
            series = begin()
            outcomes = self.runs.series.send(series.id, report=report, agreed=agreed)
            ended = messages.SeriesEnded(dialog, series, outcomes)
        except LadderUnfinished as error:
            raise LadderUnfinished(error.message, _UNFINISHED) from error
        finally:
            self.post_message(ended)

    @work(thread=True, group="unsent", exit_on_error=False)
    def look_for_unsent(self, *, ask: bool = False) -> None:
        """Say which series were not sent whole; `ask` about the newest instead."""
        found = tuple(self.runs.series.unsent())
        if ask and found:
            self._offer(found[0])
        elif found or ask:
            self.post_message(messages.UnsentFound(found))

    def _offer(self, found: Standing) -> None:
        try:
            previews = self.runs.series.made_ready(found)
        except LumiError as error:
            # It would be the same each time: it is said once.
            self.runs.series.leave_out(found.series.id)
            words = f"{found.sentence} They cannot be sent any more: {error.message}"
            raise LumiError(words, error.hint) from error
        self.post_message(messages.RestReady(found, previews))
