"""Sends: lumitui confirms each, shows its progress, and opens the run once it has a job.

The user confirms several sizes, or the runs of a grid, once; lumitui sends them one after the
other. After a failure or a killed program, it offers to send the rest.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lumitui.app.explain import words
from lumitui.app.runs import NODE_PROBE, LumiError
from lumitui.app.tui.asking import ask
from lumitui.app.tui.screens.runs_screen import RunsScreen
from lumitui.app.tui.widgets import styled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from lumitui.app.runs import (
        MemberOutcome,
        Preview,
        Resubmission,
        Run,
        Runs,
        RunSeries,
        Scaling,
        SeriesMember,
        Standing,
    )
    from lumitui.app.tui.app import LumiApp
    from lumitui.app.tui.dialogs.confirm_dialog import Lines
    from lumitui.app.tui.dialogs.sending import SendingDialog
    from lumitui.app.tui.flows.leaving import Leaving

    Begin = Callable[[Runs], RunSeries]

LONGEST_NAME = 20
"""Maximum characters of a job's name in the title bar during a send."""
_MOST_TOLD = 3
_UNFINISHED = "Press U to send the rest, or to drop it."


class Sends:
    """The sends of an app: single runs, and series of runs."""

    def __init__(self, app: LumiApp, leaving: Leaving) -> None:
        self._app, self._leaving = app, leaving
        self._under_way: dict[SendingDialog, tuple[Path, str]] = {}
        """The project and job name of each running send."""
        self._stopped: dict[str, str] = {}  # why a series stopped in this app, by series id

    def send(self, preview: Preview, resubmission: Resubmission | None = None) -> None:
        """Send the confirmed job; ask first if the same job is already being sent."""
        from lumitui.app.tui.dialogs.confirm_dialog import Confirm

        def answered(yes: bool | None) -> None:
            if yes:
                self._begin(preview, resubmission)

        spec = preview.launch.spec
        if (preview.project, spec.name) in self._under_way.values():
            lines = [("in progress", f"{spec.name} is already being sent")]
            lines.append(("this sends", "a second job, also billed"))
            title = f"Send {styled.shorten(spec.name, LONGEST_NAME)} twice?"
            asked = Confirm(title, lines, "Send a second job", no="No second job was sent.")
            self._app.push_screen(asked, answered)
        else:
            answered(yes=True)

    def _begin(self, preview: Preview, resubmission: Resubmission | None) -> None:
        dialog = self._show(preview, preview.name, preview.name)
        ask(self._app,
            lambda runs: runs.send(preview, report=_report_to(dialog), resubmission=resubmission),
            partial(self._ended, dialog), failed=lambda _: self._ended(dialog, None))  # fmt: skip

    def _show(self, preview: Preview, title: str, name: str) -> SendingDialog:
        """Show, with a title, that the job `name` is being sent."""
        from lumitui.app.tui.dialogs.sending import SendingDialog

        dialog = SendingDialog(title, self._silence_of(preview.launch.spec.site))
        self._under_way[dialog] = (preview.project, name)
        self._app.under_way.append(f"sending {name}")
        self._show_names()
        self._app.push_screen(dialog)
        return dialog

    def _silence_of(self, site: str) -> Callable[[], float]:
        """Return a function that returns the seconds since a site's last answer.

        Without a connection, it counts from the loss of the last one.
        """
        lost = time.monotonic()

        def silence() -> float:
            nonlocal lost
            heard = self._app.runs.silence(site)
            if heard < math.inf:
                lost = time.monotonic() - heard
            return time.monotonic() - lost

        return silence

    def _over(self, dialog: SendingDialog) -> tuple[bool, str]:
        """Close the dialog; return whether it was visible, and the finished operation."""
        seen = dialog.finish()
        _, name = self._under_way.pop(dialog)
        self._show_names()
        self._app.history_changed()
        return seen and not self._leaving.quits_when_done, f"sending {name}"

    def _show_names(self) -> None:
        names = [styled.shorten(name, LONGEST_NAME) for _, name in self._under_way.values()]
        what = names[0] if len(names) == 1 else f"{len(names)} jobs"
        self._app.sub_title = styled.plain(f"sending {what}").plain if names else ""

    def _ended(self, dialog: SendingDialog, run: Run | None) -> None:
        seen, what = self._over(dialog)
        if run is not None:
            self._app.notify(f"{run.id} is job {run.job_id}.", markup=False)
            if seen and run.name != NODE_PROBE:  # the screen that sent it shows its report
                self._choose(run.id)
                self._app.open_run(run.id)
        self._leaving.ended(what, well=run is not None)

    def _choose(self, run_id: str) -> None:
        """Select the run in the list, so that `1` and `+` apply to it."""
        self._app.to_first()
        first = self._app.screen_stack[0]
        assert isinstance(first, RunsScreen)
        first.choose(run_id)

    def resubmit(
        self, run_id: str, factor: int, settings: tuple[str, ...] = (), nodes: int | None = None
    ) -> None:
        """Open the dialog that resubmits a run on `nodes` nodes, or `factor` times its own.

        The dialog starts with `settings`, each as `key=value`.
        """
        from lumitui.app.runs import no_resubmission
        from lumitui.app.tui.dialogs.resubmit_dialog import ResubmitDialog

        def answered(plans: tuple[Resubmission, ...] | None) -> None:
            if plans and dialog.takes_followers:
                first = plans[0]
                ask(self._app, lambda runs: (first, *runs.series.plan_followers(first)),
                    self._confirm_sequence)  # fmt: skip
            elif plans and len(plans) == 1:
                self.send(plans[0].preview, plans[0])
            elif plans:
                self.confirm_ladder(plans, dialog.study)

        parent = self._app.run_of(run_id)
        if parent and (refusal := no_resubmission(parent)):
            self._app.show_error(refusal)
        elif parent:
            followers = [run.id for run, _ in self._app.runs.series.followers(parent.id)]
            size = nodes or parent.layout.nodes * factor
            dialog = ResubmitDialog(parent, size, settings, followers)
            self._app.push_screen(dialog, answered)

    def confirm_ladder(self, plans: tuple[Resubmission, ...], study: Scaling | None) -> None:
        """Ask once for all sizes, with the cost of each and of all."""
        from lumitui.app.runs import ladder_terms

        title = f"{plans[0].preview.name} at {len(plans)} sizes"
        self._confirm_again(plans, ladder_terms(plans, study), title)

    def _confirm_sequence(self, plans: tuple[Resubmission, ...]) -> None:
        """Ask once for a run and its followers, with their total cost."""
        from lumitui.app.tui.widgets.launch_text import error_terms, series_terms

        previews = tuple(replace(plan.preview, cell=plan.preview.name) for plan in plans)
        errors = error_terms(previews)
        forced = tuple(plan.forced(bool(errors)) for plan in plans)
        title = f"{plans[0].preview.name} and {words.count(len(plans) - 1, 'run')} after it"
        lines = [*errors, *series_terms(previews)]
        self._confirm_again(forced, lines, title)

    def _confirm_again(self, plans: tuple[Resubmission, ...], lines: Lines, sending: str) -> None:
        """Ask whether to resubmit a run as several runs; `sending` is the title meanwhile."""
        from lumitui.app.tui.dialogs.confirm_dialog import Confirm

        first = plans[0].preview
        name = first.launch.spec.name

        def answered(yes: bool | None) -> None:
            if yes:
                dialog = self._show(first, sending, name)
                self._send_series(lambda runs: runs.series.begin_again(plans), dialog)

        count = words.count(len(plans), "run")
        if (first.project, name) in self._under_way.values():
            lines = [*lines, ("in progress", f"{name} is already being sent")]
        title = f"Send {plans[0].plan.parent.id} again as {count} with {plans[0].code_sent}?"
        lines = [*lines, ("yes", f"submits {words.count(len(plans), 'job')}")]
        asked = Confirm(title, lines, f"Send {count}", no="Nothing was sent.")
        self._app.push_screen(asked, answered)

    def send_grid(self, previews: tuple[Preview, ...]) -> None:
        """Send the runs of a grid, which the user has confirmed."""
        name = words.count(len(previews), "run")
        dialog = self._show(previews[0], name, name)
        self._send_series(lambda runs: runs.series.begin_grid(previews), dialog)

    def _send_series(
        self, begin: Begin, dialog: SendingDialog, agreed: Sequence[SeriesMember] | None = None
    ) -> None:
        """Send the runs of the series that `begin` returns; report failures at the end.

        If the series was begun before, send only the runs in `agreed`.
        """

        def send(runs: Runs) -> tuple[RunSeries, tuple[MemberOutcome, ...]]:
            from lumitui.app.runs import SeriesUnfinished

            try:
                series = begin(runs)
                return series, runs.series.send(series.id, report=_report_to(dialog), agreed=agreed)
            except SeriesUnfinished as error:
                error.hint = _UNFINISHED
                raise

        ask(self._app, send, lambda sent: self._series_ended(dialog, *sent),
            failed=lambda _: self._series_ended(dialog, None, ()))  # fmt: skip

    def _series_ended(
        self, dialog: SendingDialog, series: RunSeries | None, outcomes: tuple[MemberOutcome, ...]
    ) -> None:
        from lumitui.app.runs import sent_of, sent_sentence, series_failure, why_stopped

        seen, what = self._over(dialog)
        if sent := sent_of(outcomes):
            self._app.notify(sent_sentence(sent), markup=False)
            if seen:
                self._choose(sent[0].id)
        error = series_failure(series, outcomes) if series else None
        if error is not None and series is not None:
            self._stopped[series.id] = why_stopped(outcomes)
            hint = f"{error.hint} Press U to send the rest.".strip()
            self._app.show_error(type(error)(error.message, hint))
        elif series is not None:
            self.say_unsent()
        self._leaving.ended(what, well=series is not None and error is None)

    def say_unsent(self) -> None:
        """Report runs left unsent by an earlier attempt."""
        try:
            offered = self._app.runs.history.series.offered()
        except LumiError:
            return  # the first draw shows the error
        if offered:
            ask(self._app, lambda runs: tuple(runs.series.unsent()), self._tell_unsent)

    def _tell_unsent(self, standings: tuple[Standing, ...]) -> None:
        """Report unsent runs in a toast: a dialog that opens by itself would catch other keys."""
        for found in standings[:_MOST_TOLD]:
            told = f"{found.sentence} Press U to send the rest."
            self._app.notify(told, severity="warning", markup=False, timeout=20)

    def ask_for_rest(self) -> None:
        """Ask whether to send the rest of the newest series."""

        def rest_ready(rest: tuple[Standing, tuple[Preview, ...]] | None) -> None:
            if rest is None:
                self._app.notify("There is nothing left to send.")
            elif not self._app.screen.is_modal:  # else the next key is for the open dialog
                self._confirm_rest(*rest)

        ask(self._app, _rest, rest_ready)

    def _confirm_rest(self, found: Standing, previews: tuple[Preview, ...]) -> None:
        """Ask whether to send the rest; if it changes meanwhile, ask again."""
        from lumitui.app.tui.dialogs.confirm_dialog import Confirm
        from lumitui.app.tui.widgets.launch_text import rate, whole_price

        series, runs = found.series, self._app.runs
        why = self._stopped.get(series.id)
        lines = [("stopped", why)] if why else []
        rest = words.count(len(found.left), "run")
        lines += [*found.rows, ("billed", whole_price(previews)), *rate(previews)]
        lines += [("yes", f"sends the {rest}"), ("no", "leaves them out")]

        def changed() -> bool:
            now = runs.series.standing(runs.history.series.get(series.id))
            return (now.left, now.open) != (found.left, found.open)

        def answered(yes: bool | None) -> None:
            if changed():
                self.ask_for_rest()
            elif yes:
                dialog = self._show(previews[0], rest, rest)
                self._send_series(lambda _: series, dialog, found.left)
            else:
                runs.series.leave_out(series.id)

        title = f"Send the other {rest} of {series.id}?"
        asked = Confirm(title, lines, f"Send {rest}", no=f"Left out {rest}.",
                        now=lambda: None if changed() else lines)  # fmt: skip
        self._app.push_screen(asked, answered)


def _report_to(dialog: SendingDialog) -> Callable[[str, str], None]:
    """Return a callback that reports a send's step to a dialog from a thread."""

    def report(step: str, said: str) -> None:
        dialog.call_later(dialog.report, step, said)

    return report


def _rest(runs: Runs) -> tuple[Standing, tuple[Preview, ...]] | None:
    """Return the unsent rest of the newest incomplete series, prepared for sending.

    It first queries the sites about runs that may already have jobs.
    """
    from lumitui.app.runs import still_unknown

    found = next(iter(runs.series.unsent(settle=True)), None)
    if found is None:
        return None
    if not found.left:
        raise still_unknown(found)
    try:
        return found, runs.series.made_ready(found)
    except LumiError as error:
        # The error would be the same each time, so it is shown once.
        runs.series.leave_out(found.series.id)
        said = f"{found.sentence} lumitui can no longer send them: {error.message}"
        raise LumiError(said, error.hint) from error
