"""Cancels: asked first, with what holds at the moment of the answer; what failed is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumitui.app.explain import words
from lumitui.app.explain.phrases import chain_words
from lumitui.app.runs import InputError, LinkError, LumiError
from lumitui.app.tui.asking import ask
from lumitui.app.tui.screens.runs_screen import RunsScreen
from lumitui.app.tui.widgets import styled

if TYPE_CHECKING:
    from lumitui.app.runs import Run, Runs
    from lumitui.app.tui.app import LumiApp
    from lumitui.app.tui.flows.leaving import Leaving

Failure = tuple[str, LumiError]
"""A run that was not cancelled, and why."""

MOST_LISTED = 10
"""Runs that the question before several cancels names."""


class Cancels:
    """The cancels of an app."""

    def __init__(self, app: LumiApp, leaving: Leaving) -> None:
        """Cancel runs of `app`."""
        self._app, self._leaving = app, leaving

    def cancel(self, run_id: str) -> None:
        """Cancel a run, after asking."""
        from lumitui.app.tui.dialogs.confirm_dialog import AROUND, Confirm

        app = self._app

        def answered(yes: bool | None) -> None:
            if yes:
                self._cancel(run_id)

        def now() -> list[tuple[str, str]] | None:
            run = app.runs.history.get(run_id)
            if run.state.is_final:
                words = f"{run.id} has ended: {run.state}. There is nothing to cancel."
                app.notify(words, severity="warning", markup=False)
                return None
            return terms(run)

        run = app.run_of(run_id)
        if run is None:
            return
        if run.state.is_final:
            message = f"{run.id} has ended: {run.state}."
            app.show_error(InputError(message, "There is nothing to cancel."))
            return
        # The end of an id tells it apart: a narrow box must not cut it.
        name = styled.shorten(run.id, max(14, app.size.width * 9 // 10 - AROUND - len("Cancel ?")))
        question = Confirm(f"Cancel {name}?", terms(run), "Cancel the job", now=now)
        app.push_screen(question, answered)

    def _cancel(self, run_id: str) -> None:
        app, warnings = self._app, list[str]()

        def cancel(runs: Runs) -> Run | LumiError:
            try:
                return runs.cancel(run_id, warn=warnings.append)
            except LumiError as error:
                return error

        def over(outcome: Run | LumiError | None) -> None:
            if isinstance(outcome, LumiError):
                app.show_error(self._again(outcome, (run_id,), "c"))
            elif outcome is not None:
                app.notify(words.after_cancel(outcome), markup=False)
            well = not isinstance(outcome, LumiError | None)
            if not well:
                app.own_cancels.discard(run_id)
            self._over(cancelling(run_id), warnings, well=well)

        app.under_way.append(cancelling(run_id))
        app.own_cancels.add(run_id)
        ask(app, cancel, over, failed=lambda _: over(None))

    def _over(self, what: str, warnings: list[str], *, well: bool) -> None:
        for warning in warnings:
            self._app.notify(warning, severity="warning", markup=False)
        self._app.history_changed()
        self._leaving.ended(what, well=well)

    def cancel_many(self, run_ids: tuple[str, ...]) -> None:
        """Cancel several runs, after asking once."""
        from lumitui.app.tui.dialogs.confirm_dialog import Confirm

        app = self._app

        def live() -> list[Run]:
            found = (app.run_of(run_id) for run_id in run_ids)
            return [run for run in found if run is not None and not run.state.is_final]

        def now() -> list[tuple[str, str]] | None:
            if runs := live():
                return self._many_terms(runs, len(run_ids))
            app.notify("All of these runs have ended.", severity="warning", markup=False)
            return None

        def answered(yes: bool | None) -> None:
            if yes and (ids := tuple(run.id for run in live())):
                self._cancel_many(ids)

        if not (runs := live()):
            message = f"{words.count(len(run_ids), 'run')}: all have ended."
            app.show_error(InputError(message, "There is nothing to cancel."))
            return
        jobs = words.count(len(runs), "job")
        lines = self._many_terms(runs, len(run_ids))
        question = Confirm(f"Cancel {jobs}?", lines, f"Cancel {jobs}", now=now)
        app.push_screen(question, answered)

    def _cancel_many(self, run_ids: tuple[str, ...]) -> None:
        """Cancel the jobs of runs, one after the other; one that fails does not stop the others."""
        app, done, failed, warnings = self._app, list[str](), list[Failure](), list[str]()

        def cancel_all(runs: Runs) -> None:
            for run_id in run_ids:
                try:
                    done.append(runs.cancel(run_id, warn=warnings.append).id)
                except LumiError as error:
                    failed.append((run_id, error))

        def over(_: object) -> None:
            if done:
                app.notify(f"Cancelled {words.count(len(done), 'job')}.", markup=False)
            if failed:
                app.show_error(self._not_all(failed))
            elif isinstance(first := app.screen_stack[0], RunsScreen):
                first.unmark()
            self._over(cancelling(*run_ids), warnings, well=not failed)

        app.under_way.append(cancelling(*run_ids))
        ask(app, cancel_all, over, failed=over)

    def _many_terms(self, runs: list[Run], marked: int) -> list[tuple[str, str]]:
        most = max(1, min(MOST_LISTED, self._app.size.height - 10))
        lines = [
            (run.id, f"{run.state}, {words.count(run.layout.nodes, 'node')}") for run in runs[:most]
        ]
        if len(runs) > most:
            lines.append(("and", f"{len(runs) - most} more"))
        if ended := marked - len(runs):
            lines.append(("not these", f"{words.count(ended, 'run')} ended already"))
        return lines

    def _not_all(self, failed: list[Failure]) -> LumiError:
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
        sites = sorted({run.site for run_id in run_ids if (run := self._app.run_of(run_id))})
        back = f"{' and '.join(sites)} {'is' if len(sites) == 1 else 'are'} back"
        what = "The job" if len(run_ids) == 1 else "The jobs"
        return LumiError(error.message, f"{what} may still run. Press {key} again when {back}.")


def terms(run: Run) -> list[tuple[str, str]]:
    """Return what a user cancels: the state, the job, and what it asks for."""
    return [
        ("state", str(run.state)),
        ("job", run.job_id or "not known yet"),
        ("asks for", words.layout_size(run.layout)),
        *([("trained", kept)] if (kept := chain_words.kept(run)) else []),
    ]


def cancelling(*run_ids: str) -> str:
    """Return what is under way while runs are cancelled."""
    return f"cancelling {run_ids[0] if len(run_ids) == 1 else words.count(len(run_ids), 'run')}"
