"""Cancels: asked first, with what holds at the moment of the answer; what failed is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from lumitui.app.explain import words
from lumitui.app.explain.phrases import chain_words
from lumitui.app.tui import messages
from lumitui.app.tui.flows.leaving import LeavingApp
from lumitui.app.tui.screens.runs_screen import RunsScreen
from lumitui.app.tui.widgets import styled
from lumitui.remote.site.errors import InputError, LinkError, LumiError

if TYPE_CHECKING:
    from lumitui.app.history.run import Run

MOST_LISTED = 10
"""Runs that the question before several cancels names."""


class CancelApp(LeavingApp):
    """An app that cancels runs."""

    @on(messages.CancelWanted)
    def _cancel_wanted(self, event: messages.CancelWanted) -> None:
        from lumitui.app.tui.dialogs.confirm_dialog import AROUND, Confirm

        def answered(yes: bool | None) -> None:
            if yes:
                self.under_way.append(cancelling(event.run_id))
                self.cancel_run(event.run_id)

        def now() -> list[tuple[str, str]] | None:
            run = self.runs.history.get(event.run_id)
            if run.state.is_final:
                words = f"{run.id} has ended: {run.state}. There is nothing to cancel."
                self.notify(words, severity="warning", markup=False)
                return None
            return terms(run)

        run = self._run(event.run_id)
        if run is None:
            return
        if run.state.is_final:
            message = f"{run.id} has ended: {run.state}."
            self.show_error(InputError(message, "There is nothing to cancel."))
            return
        # The end of an id tells it apart: a narrow box must not cut it.
        name = styled.shorten(run.id, max(14, self.size.width * 9 // 10 - AROUND - len("Cancel ?")))
        question = Confirm(f"Cancel {name}?", terms(run), "Cancel the job", now=now)
        self.push_screen(question, answered)

    @on(messages.RunCancelled)
    def _cancelled(self, event: messages.RunCancelled) -> None:
        if event.run is not None:
            self.notify(words.after_cancel(event.run), markup=False)
        for warning in event.warnings:
            self.notify(warning, severity="warning", markup=False)
        if event.error is not None:
            self.show_error(self._again(event.error, (event.run_id,), "c"))
        self.history_changed()
        self._ended(cancelling(event.run_id), well=event.run is not None)

    @on(messages.CancelManyWanted)
    def _cancel_many_wanted(self, event: messages.CancelManyWanted) -> None:
        from lumitui.app.tui.dialogs.confirm_dialog import Confirm

        def live() -> list[Run]:
            found = (self._run(run_id) for run_id in event.run_ids)
            return [run for run in found if run is not None and not run.state.is_final]

        def now() -> list[tuple[str, str]] | None:
            if runs := live():
                return self._many_terms(runs, len(event.run_ids))
            self.notify("All of these runs have ended.", severity="warning", markup=False)
            return None

        def answered(yes: bool | None) -> None:
            if yes and (ids := tuple(run.id for run in live())):
                self.under_way.append(cancelling(*ids))
                self.cancel_runs(ids)

        if not (runs := live()):
            message = f"{words.count(len(event.run_ids), 'run')}: all have ended."
            self.show_error(InputError(message, "There is nothing to cancel."))
            return
        jobs = words.count(len(runs), "job")
        lines = self._many_terms(runs, len(event.run_ids))
        question = Confirm(f"Cancel {jobs}?", lines, f"Cancel {jobs}", now=now)
        self.push_screen(question, answered)

    def _many_terms(self, runs: list[Run], marked: int) -> list[tuple[str, str]]:
        most = max(1, min(MOST_LISTED, self.size.height - 10))
        lines = [
            (run.id, f"{run.state}, {words.count(run.layout.nodes, 'node')}") for run in runs[:most]
        ]
        if len(runs) > most:
            lines.append(("and", f"{len(runs) - most} more"))
        if ended := marked - len(runs):
            lines.append(("not these", f"{words.count(ended, 'run')} ended already"))
        return lines

    @on(messages.ManyCancelled)
    def _many_cancelled(self, event: messages.ManyCancelled) -> None:
        if event.run_ids:
            self.notify(f"Cancelled {words.count(len(event.run_ids), 'job')}.", markup=False)
        for warning in event.warnings:
            self.notify(warning, severity="warning", markup=False)
        if event.failed:
            self.show_error(self._not_all(event.failed))
        first = self.screen_stack[0]
        if isinstance(first, RunsScreen) and not event.failed:
            first.unmark()
        self.history_changed()
        failed = tuple(run_id for run_id, _ in event.failed)
        self._ended(cancelling(*event.wanted), well=not failed)

    def _not_all(self, failed: tuple[tuple[str, LumiError], ...]) -> LumiError:
        """Return one error that names each run, and says why it is not cancelled."""
        said = [
            error.message if run_id in error.message else f"{run_id}: {error.message}"
            for run_id, error in failed
        ]
        first = failed[0][1]
        whole = type(first)("\n".join(said), first.hint)
        return self._again(whole, tuple(run_id for run_id, _ in failed), "c")

    def _again(self, error: LumiError, run_ids: tuple[str, ...], key: str) -> LumiError:
        """Return the error of a cancel with what to press, and when, if the link is the reason."""
        if not isinstance(error, LinkError):
            return error
        sites = sorted({run.site for run_id in run_ids if (run := self._run(run_id))})
        back = f"{' and '.join(sites)} {'is' if len(sites) == 1 else 'are'} back"
        what = "The job" if len(run_ids) == 1 else "The jobs"
        return LumiError(error.message, f"{what} may still run. Press {key} again when {back}.")

    @on(messages.RunFetched)
    def _run_fetched(self, event: messages.RunFetched) -> None:
        self.notify(event.words, markup=False)


def terms(run: Run) -> list[tuple[str, str]]:
    """Return what a person cancels: the state, the job, and what it asks for."""
    return [
        ("state", str(run.state)),
        ("job", run.job_id or "not known yet"),
        ("asks for", words.layout_size(run.layout)),
        *([("trained", kept)] if (kept := chain_words.kept(run)) else []),
    ]


def cancelling(*run_ids: str) -> str:
    """Return what is under way while runs are cancelled."""
    return f"cancelling {run_ids[0] if len(run_ids) == 1 else words.count(len(run_ids), 'run')}"
