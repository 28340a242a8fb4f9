"""More nodes: the screen that says how a run scales, and the runs that are sent on other sizes.

Several sizes, like the runs of a grid, are confirmed once and sent one after the other. What is
left of them after a failure, or after the program was killed, is offered.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual import on

from lumitui.app.explain import words
from lumitui.app.tui import messages
from lumitui.app.tui.flows.mutations import MutationApp
from lumitui.app.tui.screens.runs import RunsScreen
from lumitui.remote.errors import LumiError

if TYPE_CHECKING:
    from lumitui.app.scale.resubmission import Resubmission


class ScaleApp(MutationApp):
    """An app that shows how runs scale, and sends them again on other sizes."""

    @on(messages.ScalingWanted)
    def _scaling_wanted(self, event: messages.ScalingWanted) -> None:
        from lumitui.app.tui.screens.scaling import ScalingScreen

        if self._run(event.run_id) is not None:
            self.push_screen(ScalingScreen(self.runs, event.run_id))

    @on(messages.ResubmitWanted)
    def _resubmit_wanted(self, event: messages.ResubmitWanted) -> None:
        from lumitui.app.tui.dialogs.resubmit import ResubmitDialog

        def answered(plans: tuple[Resubmission, ...] | None) -> None:
            if plans and len(plans) == 1:
                self._send(plans[0].preview, plans[0])
            elif plans:
                self._confirm_ladder(plans)

        if parent := self._run(event.run_id):
            dialog = ResubmitDialog(parent, parent.layout.nodes * event.factor)
            self.push_screen(dialog, answered)

    def _confirm_ladder(self, plans: tuple[Resubmission, ...]) -> None:
        """Ask once for all of them, with what they cost in all."""
        from lumitui.app.scale.series import ladder_terms
        from lumitui.app.tui.dialogs.confirm import Confirm

        first = plans[0].preview

        def answered(yes: bool | None) -> None:
            if yes:
                name = first.launch.spec.name
                dialog = self._show_send(first, f"{name} on {len(plans)} sizes", name)
                self.send_series(partial(self.runs.series.begin_ladder, plans), dialog)

        count = words.count(len(plans), "run")
        lines = ladder_terms(plans)
        if (first.project, first.launch.spec.name) in self._sends.values():
            lines.append(("under way", f"{first.launch.spec.name} is being sent already"))
        title = f"Send {plans[0].parent.id} again as {count}?"
        self.push_screen(Confirm(title, lines, f"Send {count}"), answered)

    @on(messages.SeriesWanted)
    def _series_wanted(self, event: messages.SeriesWanted) -> None:
        name = words.count(len(event.previews), "run")
        begin = partial(self.runs.series.begin_grid, event.previews)
        self.send_series(begin, self._open_send(event.previews[0], name))

    @on(messages.SeriesEnded)
    def _series_ended(self, event: messages.SeriesEnded) -> None:
        from lumitui.app.scale.series import failure, sent_of, sent_sentence, why_stopped

        seen, under_way = self._send_over(event)
        sent = sent_of(event.outcomes)
        if sent:
            self.notify(sent_sentence(sent), markup=False)
            if seen and not self.quits_when_done:
                self.to_first()
                first = self.screen_stack[0]
                assert isinstance(first, RunsScreen)
                first.choose(sent[0].id)
        error = failure(event.series, event.outcomes) if event.series else None
        if error is not None and event.series is not None:
            if event.series.kind == "ladder":  # its sizes stay in the dialog that sent them
                self.show_error(error)
            self.look_for_unsent(event.series, why_stopped(event.outcomes), error)
        self._ended(under_way, well=event.series is not None and error is None)

    # -- what an earlier try has left

    def on_mount(self) -> None:
        """Offer what an earlier start has left unsent."""
        try:
            offered = self.runs.history.series.offered()
        except LumiError:
            return  # the first draw reports it
        if offered:
            self.look_for_unsent()

    @on(messages.UnsentFound)
    def _unsent_found(self, event: messages.UnsentFound) -> None:
        """Say what was sent and what was not, and offer to send the rest."""
        from lumitui.app.tui.dialogs.confirm import Confirm
        from lumitui.app.tui.widgets.launch_text import whole_price

        found, previews = event.standing, event.previews
        series = found.series

        def answered(yes: bool | None) -> None:
            if yes:
                name = words.count(len(found.left), "run")
                self.send_series(lambda: series, self._open_send(previews[0], name))
            else:
                self.runs.series.leave_out(series.id)

        lines = [("stopped", event.why)] if event.why else []
        lines += [*found.rows, ("billed", whole_price(previews))]
        rest = words.count(len(found.left), "run")
        title = f"Send the other {rest} of {series.id}?"
        self.push_screen(Confirm(title, lines, f"Send {rest}"), answered)
