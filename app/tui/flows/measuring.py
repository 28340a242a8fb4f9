"""Measurement of a site's node: a job with its price, then the profile changes to save."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from lumitui.app.explain import words
from lumitui.app.runs import InputError, LumiError
from lumitui.app.tui.asking import ask, tui

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.screen import Screen

    from lumitui.app.runs import Looked, Preview

_UNSENT = 600  # seconds after which the app stops waiting for a job that was never sent


class Measurement:
    """The measurement of a node of one site. Sends nothing until the user accepts the price."""

    def __init__(
        self, asker: Screen[None], site: str, account: str, saved: Callable[[], object]
    ) -> None:
        """Measure a node of `site`; `account` pays if the profile names no default.

        `saved` is called when the profile has changed, unless `asker` was closed.
        """
        self._app, self._asker = tui(asker), asker
        self._site, self._account, self._saved = site, account, saved

    def begin(self) -> None:
        """Offer the report of the last job that measured a node there, or offer to send a job."""
        surveys = self._app.runs.surveys
        if run := surveys.under_way(self._site):
            message = f"{run.id} is {run.state}. Its report is shown when it has ended."
            self._app.notify(message, markup=False)
            self._follow(run.created)
        elif last := surveys.measured(self._site):
            # It fails if the run's folder was removed.
            ask(self._app, lambda runs: runs.surveys.looked(last), self._show,
                failed=lambda _: self._prepare(), quietly=True)  # fmt: skip
        else:
            self._prepare()

    def _prepare(self) -> None:
        site, account = self._site, self._account
        ask(self._app, lambda runs: runs.surveys.preview(site, account=account), self._confirm)

    def _confirm(self, preview: Preview) -> None:
        from lumitui.app.tui.dialogs.confirm_dialog import Confirm
        from lumitui.app.tui.widgets.launch_text import rate

        launch = preview.launch
        for finding in preview.findings:
            if finding.severity == "error":
                self._app.show_error(InputError(finding.message, finding.do))
                return
        lines = [
            ("node", f"one of {launch.spec.partition}: {words.layout_size(launch.layout)}"),
            ("time", f"at most {launch.spec.time}"),
            ("price", words.price_sentence(launch.price)),
            *rate([preview]),
            ("measures", "cores near each GPU, disks, network, Python, internet"),
            ("then", "shows the profile changes before you save them"),
            ("yes", "submits 1 job"),
        ]
        question = Confirm(f"Measure a node of {self._site}?", lines, "Send",
                           no="Nothing was sent.")  # fmt: skip
        self._app.push_screen(question, partial(self._answered, preview))

    def _answered(self, preview: Preview, yes: bool | None) -> None:
        if yes:
            began = time.time()
            self._app.sends.send(preview)
            self._follow(began)

    def _follow(self, began: float) -> None:
        """Show the report as soon as the job has ended and no dialog is open."""
        if self._site in self._app.measured_sites:
            return
        self._app.measured_sites.add(self._site)
        start = time.monotonic()

        def look() -> None:
            surveys, waited = self._app.runs.surveys, time.monotonic() - start
            run = surveys.measured(self._site)
            if run and run.created >= began:
                if self._app.screen.is_modal:
                    return
                ask(self._app, lambda runs: runs.surveys.looked(run), self._show)
            elif waited < _UNSENT or surveys.under_way(self._site):
                return
            timer.stop()
            self._app.measured_sites.discard(self._site)

        timer = self._app.set_interval(1.0, look)

    def _show(self, looked: Looked) -> None:
        from lumitui.app.tui.dialogs.measured_dialog import MeasuredDialog

        self._app.push_screen(MeasuredDialog(looked), partial(self._decided, looked))

    def _decided(self, looked: Looked, word: str | None) -> None:
        if word == "again":
            self._prepare()
        elif word == "save":
            try:
                path = self._app.runs.surveys.write(looked)
            except LumiError as error:
                self._app.show_error(error)
            else:
                self._app.notify(f"Wrote {path}.", markup=False)
                if self._asker.is_attached:
                    self._saved()
