"""Studies of how runs scale, and sends of several sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on, work

from lumitui.app.tui import messages
from lumitui.app.tui.workers.core import CoreApp
from lumitui.remote.errors import LinkError, LumiError

if TYPE_CHECKING:
    from lumitui.app.history.run import Run
    from lumitui.app.scale.resubmission import Resubmission
    from lumitui.app.scale.scaling.study import Scaling
    from lumitui.app.tui.dialogs.sending import SendingDialog


class ScalingWorkers(CoreApp):
    """An app that studies how runs scale, and sends them on several sizes."""

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
    def send_ladder(self, plans: tuple[Resubmission, ...], dialog: SendingDialog) -> None:
        """Send each plan, one after the other; what fails is told and keeps none from being sent.

        Without a link the rest is not tried: each would wait as long for the same answer.
        """
        outcomes: dict[int, Run | LumiError] = {
            plan.preview.launch.layout.nodes: LumiError("It was not tried.", "Send it again.")
            for plan in plans
        }
        try:
            for at, (nodes, plan) in enumerate(zip(outcomes, plans, strict=True), 1):

                def report(step: str, words: str, what: str = f"{at} of {len(plans)}") -> None:
                    dialog.post_message(messages.StepReported(step, f"{what}  {words}"))

                try:
                    outcomes[nodes] = self.runs.resubmit(plan, report=report)
                except LumiError as error:
                    outcomes[nodes] = error
                    if isinstance(error, LinkError):
                        break
        finally:
            self.post_message(messages.LadderEnded(dialog, tuple(outcomes.items())))
