"""The pane with a run's log. It is followed while the pane is open, and only then."""

import time

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from lumitui.app.explain import log_words, words
from lumitui.app.history.run import Run
from lumitui.app.tui import messages
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.log.log_view import LogView
from lumitui.app.watch.follow_log import LogBegan, LogEnded, LogGrew, LogHeard, LogLost, LogWaits


class LogPane(Vertical):
    """The log, and a line on how far it is followed."""

    def __init__(self, run_id: str) -> None:
        """Show the log of the run `run_id`."""
        super().__init__(id="log")
        self._run_id = run_id
        self._number = 0
        """Of the latest request or its end; what comes for an earlier one is dropped."""
        self._following = False
        self._attempt: int | None = None
        self._offset = 0
        """Bytes of the attempt's log that came."""
        self._ended = ""
        """Why nothing more comes; empty while the log is followed."""
        self._heard: float | None = None
        """When the site was heard last; None where no link can be lost."""
        self._lost: LogLost | None = None
        self._line = ""
        """What the line says."""

    def compose(self) -> ComposeResult:
        """Yield the log, then its line."""
        yield LogView(id="log-view")
        yield Static(id="log-line", markup=False)

    def draw(self, run: Run) -> None:
        """Say how old the link's last sign of life is; the log itself comes by messages."""
        self._draw_line()

    def follow(self) -> None:
        """Follow the log from where the pane has it, unless it is followed already."""
        if not self._following:
            self._number += 1
            self._following, self._ended = True, ""
            wanted = messages.FollowWanted(
                self, self._number, self._run_id, self._attempt, self._offset
            )
            self.app.post_message(wanted)

    def unfollow(self) -> None:
        """Stop following; the pane is no longer on the screen."""
        # What is still on its way would say that the log is followed; it comes again later.
        self._number += 1
        self._following = False
        self.app.post_message(messages.UnfollowWanted())

    @on(messages.LogNews)
    def _news(self, news: messages.LogNews) -> None:
        if news.number != self._number:
            return
        view = self.query_one(LogView)
        match news.event:
            case LogBegan(attempt, start):
                self._attempt, self._offset = attempt, start
                self._following, self._ended = True, ""
                view.clear()
                if start:
                    view.note(f"{start:,} earlier bytes are on the site")
            case LogGrew(data, end):
                self._offset = end
                self._following, self._ended = True, ""
                self._lost = None
                if self._heard is not None:
                    self._heard = time.time()
                view.feed(data)
            case LogHeard(at):
                self._heard = at
                self._draw_line()
            case LogLost():
                self._lost = news.event
                self._draw_line()
            case LogWaits(words):
                self._pause(f"waiting: {words}")
            case LogEnded(words):
                self._pause(words)

    def _pause(self, words: str) -> None:
        self._following, self._ended = False, words
        self._draw_line()

    @on(LogView.Changed)
    def _draw_line(self) -> None:
        view = self.query_one(LogView)
        attempt = f"attempt {self._attempt or 1}, {words.count(view.total, 'line')}"
        paused = f"paused, {view.unseen:,} new below, press f to follow"
        parts = [self._state(), *([] if view.follow else [paused]), attempt]
        line = "; ".join([*parts, "wrapped (w)" if view.wrap else "not wrapped (w)"])
        if line != self._line:
            self._line = line
            self.query_one("#log-line", Static).update(styled.plain(line))

    def _state(self) -> str:
        """Return how the log is followed, in words."""
        if self._ended:
            return self._ended
        lost = self._lost
        state = log_words.link(self._heard, lost.since if lost else None, time.time())
        return f"{state}: {lost.words.rstrip('.')}" if lost and lost.words else state
