"""Cancels: the user confirms the current facts, and failures are listed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lumitui.app.explain import run_phrases, words
from lumitui.app.runs import InputError, LinkError, LumiError
from lumitui.app.tui.asking import ask
from lumitui.app.tui.screens.runs_screen import RunsScreen
from lumitui.app.tui.widgets import styled

if TYPE_CHECKING:
    from lumitui.app.runs import Run, Runs
    from lumitui.app.tui.app import LumiApp
    from lumitui.app.tui.flows.leaving import Leaving

Failure = tuple[str, LumiError]
"""A run that was not cancelled, and the error."""
MOST_LISTED = 10
"""Maximum number of runs listed when the user confirms several cancels."""


class Cancels:
    """The cancels of an app."""

    def __init__(self, app: LumiApp, leaving: Leaving) -> None:
        self._app, self._leaving = app, leaving

    def cancel(self, *run_ids: str) -> None:
        """Cancel runs after one confirmation."""
        from lumitui.app.tui.dialogs.confirm_dialog import AROUND, Confirm

        app = self._app

        def live() -> list[Run]:
            found = map(app.runs.history.get, run_ids)
            return [run for run in found if not run.state.is_final]

        def now() -> list[tuple[str, str]] | None:
            if runs := live():
                return self._terms(runs, run_ids)
            app.notify(self._ended(run_ids), severity="warning", markup=False)
            return None

        def answered(yes: bool | None) -> None:
            try:
                ids = tuple(run.id for run in live()) if yes else ()
            except LumiError as error:
                app.show_error(error)
                return
            if ids:
                self._cancel(ids)

        try:
            if not (runs := live()):
                raise InputError(self._ended(run_ids), "There is nothing to cancel.")
        except LumiError as error:
            app.show_error(error)
            return
        # A narrow box must not cut the end of an id, which distinguishes it.
        room = app.size.width * 9 // 10 - AROUND - len("Cancel ?")
        title, jobs = styled.shorten(run_ids[0], max(14, room)), "the job"
        if len(run_ids) > 1:
            title = jobs = words.count(len(runs), "job")
        lines = self._terms(runs, run_ids)
        asked = Confirm(f"Cancel {title}?", lines, f"Cancel {jobs}", no="Nothing was cancelled.",
                        now=now)  # fmt: skip
        app.push_screen(asked, answered)

    def _ended(self, run_ids: tuple[str, ...]) -> str:
        if len(run_ids) > 1:
            first = self._app.screen_stack[0]
            if isinstance(first, RunsScreen) and first.marked:
                return f"The {len(run_ids)} marked runs have all ended. To unmark them, press esc."
            return f"All {len(run_ids)} runs of this row have ended."
        return f"{run_ids[0]} has ended: {self._app.runs.history.get(run_ids[0]).state}."

    def _cancel(self, run_ids: tuple[str, ...]) -> None:
        """Cancel the jobs of runs one after the other; continue after a failure."""
        app, failed, warnings = self._app, list[Failure](), list[str]()
        done: list[Run] = []
        one = len(run_ids) == 1

        def cancel_all(runs: Runs) -> None:
            for run_id in run_ids:
                try:
                    done.append(runs.cancel(run_id, warn=warnings.append))
                except LumiError as error:
                    failed.append((run_id, error))

        def over(_: object) -> None:
            if done:
                said = f"Cancelled {words.count(len(done), 'job')}."
                app.notify(words.after_cancel(done[0]) if one else said, markup=False)
            if failed:
                app.show_error(self._not_all(failed))
            elif not one and isinstance(first := app.screen_stack[0], RunsScreen):
                first.unmark()
            app.own_cancels -= set(run_ids) - {run.id for run in done}
            for warning in warnings:
                app.notify(warning, severity="warning", markup=False)
            app.history_changed()
            self._leaving.ended(cancelling(*run_ids), well=len(done) == len(run_ids))

        app.under_way.append(cancelling(*run_ids))
        app.own_cancels |= set(run_ids)
        ask(app, cancel_all, over, failed=over)

    def _terms(self, runs: list[Run], run_ids: tuple[str, ...]) -> list[tuple[str, str]]:
        """Return the facts of a cancel: in full for one run, a row each for several."""
        if len(run_ids) == 1:
            waiting = self._app.runs.left_waiting(run_ids[0])
            return [*terms(runs[0]), *(("note", words) for words in waiting)]
        most = max(1, min(MOST_LISTED, self._app.size.height - 10))
        lines = [
            (run.id, f"{run.state}, {words.count(run.layout.nodes, 'node')}") for run in runs[:most]
        ]
        if len(runs) > most:
            lines.append(("and", f"{len(runs) - most} more"))
        lines.append(("yes", "ends them for good"))
        if ended := len(run_ids) - len(runs):
            lines.append(("already ended", words.count(ended, "run")))
        return lines

    def _not_all(self, failed: list[Failure]) -> LumiError:
        """Return one error that lists each run and why it was not cancelled."""
        said = [
            error.message if run_id in error.message else f"{run_id}: {error.message}"
            for run_id, error in failed
        ]
        first = failed[0][1]
        if not isinstance(first, LinkError):
            return type(first)("\n".join(said), first.hint)
        sites = sorted({run.site for run_id, _ in failed if (run := self._app.run_of(run_id))})
        back = f"{' and '.join(sites)} {'is' if len(sites) == 1 else 'are'} back"
        what = "The job" if len(failed) == 1 else "The jobs"
        return LumiError("\n".join(said), f"{what} may still run. Press c again when {back}.")


def terms(run: Run) -> list[tuple[str, str]]:
    """Return the facts of a cancel: the run's state, job and request."""
    return [
        ("state", str(run.state)),
        ("job", run.job_id or "not known yet"),
        ("requests", words.layout_size(run.layout)),
        ("billed", words.billed(run, time.time())),
        *([("trained", kept)] if (kept := run_phrases.kept(run)) else []),
        ("yes", "ends the job for good"),
    ]


def cancelling(*run_ids: str) -> str:
    """Return the description of the runs being cancelled."""
    return f"cancelling {run_ids[0] if len(run_ids) == 1 else words.count(len(run_ids), 'run')}"
