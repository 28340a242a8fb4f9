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
from lumitui.app.tui.flows.send_flow import MutationApp
from lumitui.app.tui.screens.runs_screen import RunsScreen
from lumitui.remote.site.errors import LumiError

if TYPE_CHECKING:
    from lumitui.app.scale.resubmission import Resubmission

_MOST_TOLD = 3


class ScaleApp(MutationApp):
    """An app that shows how runs scale, and sends them again on other sizes."""

    @on(messages.ScalingWanted)
    def _scaling_wanted(self, event: messages.ScalingWanted) -> None:
        from lumitui.app.tui.screens.scaling_screen import ScalingScreen

        if self._run(event.run_id) is not None:
            self.push_screen(ScalingScreen(self.runs, event.run_id))

    @on(messages.ResubmitWanted)
    def _resubmit_wanted(self, event: messages.ResubmitWanted) -> None:
        from lumitui.app.tui.dialogs.resubmit_dialog import ResubmitDialog

        def answered(plans: tuple[Resubmission, ...] | None) -> None:
            if plans and len(plans) == 1:
                self._send(plans[0].preview, plans[0])
            elif plans:
                self._confirm_ladder(plans)

        if parent := self._run(event.run_id):
            dialog = ResubmitDialog(parent, parent.layout.nodes * event.factor, event.settings)
            self.push_screen(dialog, answered)

    def _confirm_ladder(self, plans: tuple[Resubmission, ...]) -> None:
        """Ask once for all of them, with what they cost in all."""
        from lumitui.app.scale.series_words import ladder_terms
        from lumitui.app.tui.dialogs.confirm_dialog import Confirm

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
        title = f"Send {plans[0].plan.parent.id} again as {count}?"
        self.push_screen(Confirm(title, lines, f"Send {count}"), answered)

    @on(messages.SeriesWanted)
    def _series_wanted(self, event: messages.SeriesWanted) -> None:
        name = words.count(len(event.previews), "run")
        begin = partial(self.runs.series.begin_grid, event.previews)
        self.send_series(begin, self._open_send(event.previews[0], name))

    @on(messages.SeriesEnded)
    def _series_ended(self, event: messages.SeriesEnded) -> None:
        from lumitui.app.scale.series_words import failure, sent_of, sent_sentence, why_stopped

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
            self._stopped[event.series.id] = why_stopped(event.outcomes)
            hint = f"{error.hint} The key U asks to send what is left.".strip()
            self.show_error(type(error)(error.message, hint))
        elif event.series is not None:
            self._say_unsent()
        self._ended(under_way, well=event.series is not None and error is None)

    # -- what an earlier try has left

    def on_mount(self) -> None:
        """Say what an earlier start has left unsent."""
        self._stopped: dict[str, str] = {}
        """Why a series ended here, by its id."""
        self._say_unsent()

    def action_unsent(self) -> None:
        """Ask whether to send what is left of the newest series."""
        self.look_for_unsent(ask=True)

    def _say_unsent(self) -> None:
        try:
            offered = self.runs.history.series.offered()
        except LumiError:
            return  # the first draw reports it
        if offered:
            self.look_for_unsent()

    @on(messages.UnsentFound)
    def _unsent_found(self, event: messages.UnsentFound) -> None:
        """Say it in a toast: a question that opens by itself would take the answer to another."""
        for found in event.standings[:_MOST_TOLD]:
            words = f"{found.sentence} The key U asks to send those."
            self.notify(words, severity="warning", markup=False, timeout=20)
        if not event.standings:
            self.notify("Nothing is left to send.")

    @on(messages.RestReady)
    def _rest_ready(self, event: messages.RestReady) -> None:
        """Ask whether to send the rest; when what is left changes meanwhile, ask anew."""
        from lumitui.app.tui.dialogs.confirm_dialog import Confirm
        from lumitui.app.tui.widgets.launch_text import whole_price

        found, previews = event.standing, event.previews
        series = found.series
        if self.screen.is_modal:
            return  # the next key is meant for what is open
        why = self._stopped.get(series.id)
        lines = [("stopped", why)] if why else []
        lines += [*found.rows, ("billed", whole_price(previews)), ("a no", "leaves them out")]

        def changed() -> bool:
            now = self.runs.series.standing(self.runs.history.series.get(series.id))
            return (now.left, now.open) != (found.left, found.open)

        def answered(yes: bool | None) -> None:
            if changed():
                self.look_for_unsent(ask=True)
            elif yes:
                dialog = self._open_send(previews[0], words.count(len(found.left), "run"))
                self.send_series(lambda: series, dialog, found.left)
            else:
                self.runs.series.leave_out(series.id)

        rest = words.count(len(found.left), "run")
        title = f"Send the other {rest} of {series.id}?"
        ask = Confirm(title, lines, f"Send {rest}", now=lambda: None if changed() else lines)
        self.push_screen(ask, answered)
