"""More nodes: the screen that says how a run scales, and the runs that are sent on other sizes.

Several sizes are confirmed once and sent one after the other, each as an ordinary resubmission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from lumitui.app.explain import words
from lumitui.app.history.run import Run
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
        from lumitui.app.tui.dialogs.confirm import Confirm

        def answered(yes: bool | None) -> None:
            if yes:
                self._begin_ladder(plans)

        count = words.count(len(plans), "run")
        lines = ladder_terms(plans)
        first = plans[0].preview
        if (first.project, first.launch.spec.name) in self._sends.values():
            lines.append(("under way", f"{first.launch.spec.name} is being sent already"))
        title = f"Send {plans[0].parent.id} again as {count}?"
        self.push_screen(Confirm(title, lines, f"Send {count}"), answered)

    def _begin_ladder(self, plans: tuple[Resubmission, ...]) -> None:
        preview = plans[0].preview
        name = preview.launch.spec.name
        self.send_ladder(plans, self._show_send(preview, f"{name} on {len(plans)} sizes", name))

    @on(messages.LadderEnded)
    def _ladder_ended(self, event: messages.LadderEnded) -> None:
        seen, under_way = self._send_over(event)
        sent = [outcome for _, outcome in event.outcomes if isinstance(outcome, Run)]
        if sent:
            self.notify(sent_sentence(sent), markup=False)
            if seen and not self.quits_when_done:
                self.to_first()
                first = self.screen_stack[0]
                assert isinstance(first, RunsScreen)
                first.choose(sent[0].id)
        whole = len(sent) == len(event.outcomes)
        if not whole:
            self.show_error(ladder_error(event.outcomes))
        self._ended(under_way, well=whole)


def ladder_terms(plans: tuple[Resubmission, ...]) -> list[tuple[str, str]]:
    """Return what a person agrees to by sending runs on several sizes."""
    prices = [plan.preview.launch.price for plan in plans]
    lines = [
        (
            words.count(plan.preview.launch.layout.nodes, "node"),
            f"at most {plan.preview.launch.spec.time}, billed {words.price_limit(price)}",
        )
        for plan, price in zip(plans, prices, strict=True)
    ]
    total = sum(price.amount for price in prices)
    in_all = (
        f"billed at most {words.price(total)} {prices[0].unit}" if total else "nothing is billed"
    )
    warnings = sum(
        finding.severity == "warning" for plan in plans for finding in plan.preview.findings
    )
    lines.append(("in all", in_all))
    return [*lines, ("warnings", str(warnings))] if warnings else lines


def sent_sentence(sent: list[Run]) -> str:
    """Return which job each run is."""
    return "; ".join(f"{run.id} is job {run.job_id}" for run in sent) + "."


def ladder_error(outcomes: tuple[tuple[int, Run | LumiError], ...]) -> LumiError:
    """Return what was sent and what was not, as one error."""
    lines, hint = [], ""
    for nodes, outcome in outcomes:
        size = words.count(nodes, "node")
        if isinstance(outcome, Run):
            lines.append(f"{size}: sent, {outcome.id} is job {outcome.job_id}.")
        else:
            lines.append(f"{size}: not sent. {outcome.message}")
            hint = hint or outcome.hint
    return LumiError("\n".join(lines), hint)
