"""An app's errors, shown in one place, and questions from threads."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING

from lumitui.app.tui.asking import as_lumi_error

if TYPE_CHECKING:
    from typing import Any

    from textual.screen import Screen

    from lumitui.app.runs import LoginQuestion, LumiError
    from lumitui.app.tui.app import LumiApp

TYPING_SECONDS = 1.5
"""Seconds without a key after which a word counts as finished."""
ANSWER_SECONDS = 240.0
"""Seconds after which a question is closed; sshd's LoginGraceTime is 120 s by default."""


class Errors:
    """The errors of an app, shown in dialogs one after another."""

    def __init__(self, app: LumiApp) -> None:
        self._app = app
        self._last_repeated = ""
        self._waiting: deque[LumiError] = deque()  # errors that wait until a question is answered

    def show(self, error: BaseException, *, repeats: bool) -> None:
        """Show an error; a repeated one (`repeats`) only once.

        While a question is open or the user types in a field, a toast announces the error and the
        dialog waits, because the next key is not meant for it.
        """
        app, shown = self._app, as_lumi_error(error)
        if repeats and str(shown) == self._last_repeated:
            return
        self._last_repeated = str(shown) if repeats else self._last_repeated
        self._waiting.append(shown)
        asks = _is_question(app.screen)
        if asks or app.is_typed_in:
            until = "you close this" if asks else "you leave the field"
            app.notify(f"{shown.message} More when {until}.", severity="error", markup=False)
        self._show_next()

    def show_next_later(self) -> None:
        """Show the oldest waiting error once the running operation is done."""
        if self._waiting:
            self._app.call_later(self._show_next)

    def _show_next(self) -> None:
        """Show the oldest waiting error, unless something else expects the next key."""
        from lumitui.app.tui.dialogs.notice_dialogs import ErrorDialog

        app = self._app
        taken = isinstance(app.screen, ErrorDialog) or _is_question(app.screen)
        if self._waiting and not taken and not app.is_typed_in:
            app.push_screen(ErrorDialog(self._waiting.popleft()))


def ask_person(app: LumiApp, question: LoginQuestion) -> str | None:
    """Ask the user a question, from a worker's thread, and return the answer.

    Return None if the user declined, left the app, or took longer than the site waits.
    """
    from lumitui.app.tui.dialogs.confirm_dialog import Confirm
    from lumitui.app.tui.dialogs.line_dialog import LineDialog

    answered, deadline = Future[str | bool | None](), time.monotonic() + ANSWER_SECONDS
    title = f"Question from {question.site or 'the site'}"
    dialog: Screen[Any] = LineDialog(title, question.text, secret=question.secret)
    if question.kind == "host-key":  # the user must trust it explicitly
        of_site = f" for {question.site}" if question.site else ""
        facts = [("", line) for line in question.text.removesuffix(" (yes/no)").split("\n")]
        dialog = Confirm(f"Is this the right host{of_site}?", facts, "Yes, trust it", patient=True)
    # The remaining letters of a half-typed word would end up in the answer.
    while app.is_typed_in and time.monotonic() - app.schedule.last_input < TYPING_SECONDS:
        if app.ending.wait(0.1):
            return None
    app.call_from_thread(app.push_screen, dialog, answered.set_result)
    while not app.ending.is_set() and time.monotonic() < deadline:
        try:
            answer = answered.result(timeout=0.2)
            return "yes" if answer is True else None if answer is False else answer
        except TimeoutError:
            continue
    if not app.ending.is_set():
        app.call_from_thread(_withdraw, dialog)
    return None


def _withdraw(dialog: Screen[Any]) -> None:
    """Close a question that the user did not answer in time."""
    if dialog.is_current:
        dialog.dismiss(None)


def _is_question(screen: Screen[object]) -> bool:
    """Return whether the user is about to answer a dialog; a dialog may opt out."""
    return screen.is_modal and bool(getattr(screen, "is_question", True))
