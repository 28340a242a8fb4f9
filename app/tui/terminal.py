"""The app at its terminal: no control characters, one place for errors, questions from threads."""

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from textual import events, on
from textual.await_complete import AwaitComplete
from textual.filter import LineFilter
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from lumitui.app.tui import messages
from lumitui.app.tui.loop.key_order import OrderedKeysApp
from lumitui.app.tui.preferences.contrast import ReadableText
from lumitui.app.tui.widgets.control_filter import ControlFilter
from lumitui.remote.site.errors import LumiError

if TYPE_CHECKING:
    from lumitui.app.tui.dialogs.question import QuestionDialog
    from lumitui.remote.ssh.prompts import Question

ANSWER_SECONDS = 240.0
"""A question is closed after this time; sshd's LoginGraceTime is 120 s by default."""


class TerminalApp(OrderedKeysApp):
    """An app that shows every error in a dialog and asks what a connection needs to know."""

    def __init__(self) -> None:
        """Start without errors and without questions."""
        super().__init__()
        self.leaving = threading.Event()
        """Set when the app ends: threads that wait for something stop waiting."""
        self.defect: Exception | None = None
        """The exception that ended the app, if one did."""
        self._last_repeated = ""
        self._errors: deque[LumiError] = deque()
        """Errors that wait until a question is answered."""
        self._own_filters = (ControlFilter(), ReadableText())

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return Textual's own filters; then no control characters, and readable text."""
        return [*super().get_line_filters(), *self._own_filters]

    def refresh_css(self, animate: bool = True) -> None:
        """Apply the style sheets anew; before the first screen nothing has been styled by them.

        A theme that is chosen before the start would have them all parsed once more.
        """
        if self.screen_stack:
            super().refresh_css(animate)
        else:
            self.stylesheet.set_variables(self.get_css_variables())

    # -- errors

    def _handle_exception(self, error: Exception) -> None:
        """Keep the first defect for the report."""
        self.defect = self.defect or error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """End as Textual does, without its traceback: that shows local variables, and secrets."""
        self._close_messages_no_wait()

    @on(Worker.StateChanged)
    def _worker_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.show_error(event.worker.error)

    @on(messages.Failed)
    def _failed(self, event: messages.Failed) -> None:
        if event.repeats and str(event.error) == self._last_repeated:
            return
        self._last_repeated = str(event.error) if event.repeats else self._last_repeated
        self.show_error(event.error)

    def show_error(self, error: BaseException) -> None:
        """Show an error in a dialog; every error of the TUI is shown here.

        While a question is open, or the person types in a field, it is told in a notice and waits:
        the next key is not meant for it.
        """
        if not isinstance(error, LumiError):
            error = LumiError(
                f"lumitui failed with an internal error: {type(error).__name__}: {error}.",
                "Please report it. What was sent is in the history.",
            )
        self._errors.append(error)
        if _is_question(self.screen) or self.is_typed_in:
            words = f"{error.message} More when {self._until()}."
            self.notify(words, severity="error", markup=False)
        self._show_next_error()

    def _until(self) -> str:
        return "this is closed" if _is_question(self.screen) else "the field is left"

    def _show_next_error(self) -> None:
        """Show the error that waits longest, if nothing else has the next key."""
        from lumitui.app.tui.dialogs.notice_dialogs import ErrorDialog

        taken = isinstance(self.screen, ErrorDialog) or _is_question(self.screen)
        if self._errors and not taken and not self.is_typed_in:
            self.push_screen(ErrorDialog(self._errors.popleft()))

    @on(events.DescendantBlur)
    def _field_left(self) -> None:
        """Show an error that waited while the person typed."""
        if self._errors:
            self.call_later(self._show_next_error)

    def pop_screen(self) -> AwaitComplete:
        """Close the screen on top; then show an error that waited for it."""
        closing = super().pop_screen()
        if self._errors:
            self.call_later(self._show_next_error)
        return closing

    # -- questions

    def ask(self, question: "Question") -> str | None:
        """Ask the person a question, from a worker's thread, and return the answer.

        None: the person declined, left the app, or took longer than the site waits.
        """
        from lumitui.app.tui.dialogs.question import QuestionDialog

        answered: Future[str | None] = Future()
        dialog, deadline = QuestionDialog(question), time.monotonic() + ANSWER_SECONDS
        self.call_from_thread(self.push_screen, dialog, answered.set_result)
        while not self.leaving.is_set() and time.monotonic() < deadline:
            try:
                return answered.result(timeout=0.2)
            except TimeoutError:
                continue
        if not self.leaving.is_set():
            self.call_from_thread(self._withdraw, dialog)
        return None

    def _withdraw(self, dialog: "QuestionDialog") -> None:
        """Close a question that was not answered in time."""
        if dialog.is_current:
            dialog.dismiss(None)


def _is_question(screen: Screen[object]) -> bool:
    """Return whether the person is about to answer something; a dialog may say that it is none."""
    return screen.is_modal and bool(getattr(screen, "is_question", True))
