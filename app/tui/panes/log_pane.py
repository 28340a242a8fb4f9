"""The pane with a run's log, which is followed only while the pane is open."""

import re
import time
from dataclasses import dataclass
from threading import Event
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static
from textual.worker import get_current_worker

from lumitui.app.explain import log_words, words
from lumitui.app.runs import (
    LOG_BLOCK,
    LogBegan,
    LogEnded,
    LogEvent,
    LogGrew,
    LogHeard,
    LogLost,
    LogPage,
    LogWaits,
    LumiError,
    RefusedError,
    Run,
    Runs,
    attendance,
    sleep_unless,
)
from lumitui.app.tui.asking import ask, forget, tui
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.choice_button import neighbour
from lumitui.app.tui.widgets.log.log_finder import LogFinder
from lumitui.app.tui.widgets.log.log_view import LogView
from lumitui.app.tui.widgets.log.rank_chips import RankChips

MOST_WAITING = 8
"""Maximum number of waiting messages with undrawn pieces of a log."""
TICK = 1.5
"""Seconds between two readings of a log that grows line by line: each costs a drawing."""
MUCH = 16_384
"""Minimum bytes of a piece after which the next is read immediately, because more wait."""
_FOLLOWED = "follow"
_RANKS = Binding.Group("Rank", compact=True)
_MATCH = Binding.Group("Match", compact=True)
_RANK = re.compile(r"rank (\d{1,9})")  # the search text for one rank of thousands


# A traceback may have been handled, so each kind of line counts by itself.
_STEP_ENDS = re.compile(
    rb"^(?:\d+: )?(?:srun|slurmstepd\S*): (?P<slurm>error: )|(?P<python>Traceback \(most recent)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class LogPlace:
    """The last position in a log."""

    attempt: int | None
    offset: int | None
    """Byte of a line on the screen; None if the end was followed."""
    rank: int | None
    found: str
    """The search text."""


class LogPane(Vertical):
    """The log, its ranks, the search, and a status line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", key_display="/", id="log.search",
                tooltip="Search the whole log, at the site"),
        # As in less and vim. Only the footer shows that n is not New here.
        Binding("n", "find(1)", "Next match", id="log.next", group=_MATCH,
                tooltip="Go to the next match below"),
        Binding("N", "find(-1)", "Previous match", id="log.previous", group=_MATCH,
                tooltip="Go to the next match above"),
        Binding("e", "error", "Error", id="log.error",
                tooltip="Go to the first error in the log, then to the next"),
        Binding("left_curly_bracket", "attempt(-1)", "Previous attempt", show=False,
                key_display="{", id="log.attempt_before",
                tooltip="Show the log of the previous attempt"),
        Binding("right_curly_bracket", "attempt(1)", "Next attempt", show=False,
                key_display="}", id="log.attempt_next",
                tooltip="Show the log of the next attempt"),
        Binding("y", "copy", "Copy", show=False, id="log.copy",
                tooltip="Copy the selection, the error, or the lines on the screen"),
        Binding("comma,less_than_sign", "rank(-1)", "Previous rank", key_display=",",
                id="log.rank_before", group=_RANKS,
                tooltip="Show only the previous rank's lines, or all"),
        Binding("full_stop,greater_than_sign", "rank(1)", "Next rank", key_display=".",
                id="log.rank_next", group=_RANKS,
                tooltip="Show only the next rank's lines, or all"),
        Binding("escape", "clear", "Clear", id="log.clear",
                tooltip="Show all ranks and clear the search; then go back"),
    ]  # fmt: skip

    class StepEnded(Message):
        """The log shows that the run's step may have ended; sent once for each kind of line."""

    class LinkLost(Message):
        """The log's request lost the connection to the site."""

    def __init__(self, run_id: str) -> None:
        super().__init__(id="log")
        self._run_id = run_id
        self._chips, self._view = RankChips(), LogView(id="log-view")
        self._finder, self._status = LogFinder(run_id), Static(id="log-line", markup=False)
        self._end_lines: set[str | None] = set()  # the kinds of lines that showed an end
        self._attempt: int | None = None
        self._older: int | None = None  # the attempt that was chosen instead of the newest
        self._failed: int | None = None  # the rank that ended the run, according to its record
        self._number = 0
        """Number of the latest request or stop; answers to earlier requests are dropped."""
        self._following = False
        self._offset = 0  # received bytes of the attempt's log
        self.tail = b""
        """The newest of them."""
        self._ended, self._run_ended = "", False
        """Why the log is complete or stopped; empty while it is followed."""
        self._heard: float | None = None
        """When the site last answered; None if there is no link to lose."""
        self._grown = time.time()  # when the log began or its last line came
        self._asked: float | None = None  # when the log was requested; None once an answer came
        self._lost: LogLost | None = None
        self._page: object | None = None
        """The part of the log being read; answers for another part are dropped."""
        self._problem = ""  # why a part of the log could not be read
        self._label_is_rank = True
        self._attempts = 1  # number of attempts of the run
        self._goal: int | None = None  # the byte to show once its page has arrived
        self._back_to: LogPlace | None = None
        """The log's last position, until its lines have arrived again."""
        self._sought = ""  # the text to find once the log is available
        self._keys = (False, False, False, True, False)
        """Whether ranks can be chosen, text is sought, a rank is chosen, the log is followed, and
        lines are cut."""
        self._line = ("", "")  # the name and the text of the status line

    def compose(self) -> ComposeResult:
        """Yield the ranks, the log, the search, then the status line."""
        yield from (self._chips, self._view, self._finder, self._status)

    def on_mount(self) -> None:
        """Restore the rank and the search from the last visit."""
        self._back_to = tui(self).log_places.get(self._run_id)
        if self._back_to is not None:
            self._view.rank = self._back_to.rank
            self._view.found = self._finder.found = self._back_to.found
        self.set_interval(1.0, self._pass_time)

    def _pass_time(self) -> None:
        """Update the seconds without an answer or a line; do nothing for a complete log."""
        if not self._ended:
            self._draw_line()

    def draw(self, run: Run) -> None:
        """Show the age of the link's last answer; `tell` adds the log itself."""
        self._label_is_rank = run.layout.tasks_per_node == run.layout.ranks_per_node
        self._attempts, self._run_ended = run.attempt, run.state.is_final
        self._failed = log_words.failed_rank(run) if self._label_is_rank else None
        self._draw_line()

    def follow(self, *, attended: bool = True) -> None:
        """Follow the log from the last received byte, unless it is followed already.

        `attended`: the user requested it and can answer a login's prompts.
        """
        if not self._following and self._older is None:
            self._number += 1
            self._following, self._ended = True, ""
            self._asked = time.time()
            stopped = LogEnded("stopped, press l to follow again")
            request = (self._number, self._attempt, self._offset, tui(self).ending)
            ask(self, lambda runs: self._read(runs, *request, attended=attended),
                failed=lambda _: self.tell(request[0], stopped),
                quietly=not attended, key=_FOLLOWED)  # fmt: skip

    def _read(
        self,
        runs: Runs,
        number: int,
        attempt: int | None,
        offset: int,
        ending: Event,
        *,
        attended: bool,
    ) -> None:
        """Pass on the log's events, in a thread, until it is no longer followed."""
        worker, due = get_current_worker(), 0.0

        def stop() -> bool:
            return worker.is_cancelled or ending.is_set() or not self.is_running

        with attendance(attended):
            try:
                for event in runs.show_log(self._run_id, attempt=attempt, offset=offset, stop=stop):
                    # A log that grows faster than it is drawn waits on the site.
                    while self.message_queue_size > MOST_WAITING and not stop():
                        time.sleep(0.05)
                    self.call_later(self.tell, number, event)
                    if isinstance(event, LogGrew) and len(event.data) < MUCH:
                        sleep_unless(due - time.monotonic(), stop)  # later data is one piece
                        due = time.monotonic() + TICK
            except RefusedError as error:  # such as a deleted folder: nothing to try again
                self.call_later(self.tell, number, LogEnded(error.message))

    def unfollow(self) -> None:
        """Stop following; the pane is no longer on the screen."""
        # Events still under way would show the log as followed; their data is read again later.
        self._number += 1
        self._following, self._asked = False, None
        forget(self, _FOLLOWED)

    def tell(self, number: int, event: LogEvent) -> None:
        """Show an event of the log that request `number` follows."""
        if number != self._number:
            return
        self._asked = None
        match event:
            case LogBegan(attempt, start):
                self._attempt, self._offset, self._page = attempt, start, None
                self._grown = time.time()
                self._following, self._ended, self.tail = True, "", b""
                self._end_lines.clear()
                self._view.clear(start, label_is_rank=self._label_is_rank)
                self._view.note("The log is empty.")
                self._finder.begin(attempt, label_is_rank=self._label_is_rank)
            case LogGrew(data, end):
                was_live = self._following and self._lost is None and self._offset
                self._offset, self._lost = end, None
                self._following, self._ended = True, ""
                now = time.time()
                self._grown = now if data else self._grown
                self._heard = now if self._heard is not None else None
                self._view.feed(data, end - len(data))
                kinds = {match.lastgroup for match in _STEP_ENDS.finditer(data)} - self._end_lines
                if kinds and not self._run_ended:
                    self._end_lines |= kinds
                    self.post_message(self.StepEnded())
                self.tail = (self.tail + data)[-4 * LOG_BLOCK :] if data else self.tail
                self._go_back()
                if was_live and data:
                    return  # the view reports when it has drawn the lines
            case LogHeard(at):
                self._heard = at
            case LogLost():
                self._lost = event
                self.post_message(self.LinkLost())
                self._view.note("Lines appear once the site answers.")
            case LogWaits(why):
                self._following, self._ended = False, f"waiting: {why}"
            case LogEnded(why):
                self._following, self._ended = False, why
                self._view.note("There are no lines.")
        self._draw_line()

    def seek(self, text: str) -> None:
        """Go to the first line with `text` in the newest attempt's log, once it is available."""
        self._sought, self._back_to, self._view.thirds = text, None, 2
        if self._older is not None:
            self.action_attempt(self._attempts - self._older)
        elif self._view.window.size:
            self._go_back()

    def _go_back(self) -> None:
        """Show the search result, or else the last position."""
        left, self._back_to = self._back_to, None
        if self._sought:
            self._finder.found, self._sought = self._sought, ""
            self._finder.step(-1, self._view.window.size, forward=True)
            return
        if left is not None and left.attempt == self._attempt and left.offset is not None:
            self._view.follow = False
            if not self._view.go_to(left.offset, mark=False):
                self._goal, self._page = left.offset, None
                self._part_wanted(LogView.Wanted("goal"))

    def _keep_place(self) -> None:
        """Keep the log's position, for when the run is opened again."""
        view, shown = self._view, self._view.on_screen()
        if self._back_to is None and self._goal is None and shown:
            there = None if view.follow else shown[min(len(shown) - 1, view.third)].offset
            place = LogPlace(self._attempt, there, view.rank, view.found)
            tui(self).log_places[self._run_id] = place

    @on(LogView.Wanted)
    def _part_wanted(self, event: LogView.Wanted) -> None:
        if self._page is not None or not self._view.window.size:
            return
        window = self._view.window
        start, length = 0, 2 * LOG_BLOCK
        if event.where == "before" and (before := window.before()):
            start, length = before[0], before[1] - before[0]
        elif event.where == "after":
            start = window.end
        elif event.where == "goal" and self._goal is not None:
            start = self._goal // LOG_BLOCK * LOG_BLOCK
        self._want_page(event.where, start, length)

    def _want_page(self, where: str, start: int, length: int) -> None:
        run_id, attempt = self._run_id, self._older or self._attempt
        self._page = part = object()

        def read(runs: Runs) -> LogPage:
            with attendance(False):  # only following the log may prompt for a login
                if where == "end":
                    return runs.pages.end(run_id, attempt)
                return runs.pages.page(run_id, attempt, start, length)

        def came(found: LogPage | LumiError) -> None:
            if part is not self._page:
                return
            self._page, self._problem = None, ""
            if not isinstance(found, LumiError):
                self._show_part(where, found)
            elif self._lost is None or self._view.window.size:  # else the status line says it
                self._problem = f"cannot read more: {found.message}"
            self._draw_line()

        ask(self, read, came, failed=came, quietly=True)

    def _show_part(self, where: str, page: LogPage) -> None:
        view = self._view
        if where == "before":
            view.feed_before(page.start, page.data)
        elif where in ("start", "goal") or (where == "end" and page.start > view.window.end):
            view.show_page(page.start, page.data)
        else:
            view.feed_after(page.start, page.data)
        if where == "end" and self._sought:
            self._go_back()
        if where == "goal" and self._goal is not None:
            rank = view.rank
            view.go_to(self._goal)
            self._say_shown(rank)
            self._goal = None
        if view.follow and not view.window.is_at_end and page.data:
            self._part_wanted(LogView.Wanted("after"))  # the log grew meanwhile

    def action_search(self) -> None:
        self._finder.open()

    def action_find(self, step: int) -> None:
        """Go to the next match, below or above."""
        self._view.thirds = 1
        view = self._view
        self._finder.step(view.place, view.window.size, forward=step > 0)

    def action_error(self) -> None:
        self._finder.next_error(self._view.window.size)

    @on(LogFinder.Left)
    def _search_left(self, event: LogFinder.Left) -> None:
        view, finder = self._view, self._finder
        view.focus()
        if event.searches and (one := _RANK.fullmatch(finder.found)):
            finder.found, rank = view.found, int(one[1])
            if rank in self._ranks():
                view.rank = rank
            else:
                finder.words = f"no lines from rank {rank} so far"
        elif event.searches:
            view.found = finder.found
            view.refresh()
            if finder.found:
                at = view.window.size if view.follow else view.place - 1
                finder.step(at, view.window.size, forward=not view.follow)
        self._draw_line()

    @on(LogFinder.Jumped)
    def _jumped(self, event: LogFinder.Jumped) -> None:
        view, rank = self._view, self._view.rank
        view.found = self._finder.found
        if event.offset is not None:
            view.follow = False
            if not view.go_to(event.offset):
                self._goal = event.offset
                self._page = None  # replaces an earlier request
                self._part_wanted(LogView.Wanted("goal"))
            self._say_shown(rank)
        self._draw_line()

    def _say_shown(self, rank: int | None) -> None:
        """Report that all ranks are shown again instead of `rank`, which lacks the match."""
        if rank is not None and self._view.rank is None:
            self._finder.words += f", not from rank {rank}: showing all ranks"

    def action_rank(self, step: int) -> None:
        """Show only the next rank's lines, or all."""
        self._view.rank = neighbour((None, *self._ranks()), self._view.rank, step)

    def action_clear(self) -> None:
        """Show all ranks and clear the search; keep the position."""
        self._finder.forget()
        self._view.found, self._view.rank, self._view.mark = "", None, None
        self._view.refresh()
        self._view.post_message(LogView.Changed())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the choice of ranks if there are two, and search keys if there is a search."""
        if action == "rank":
            return len(self._ranks()) > 1
        if action == "find":
            return bool(self._view.found)
        if action == "clear":
            return bool(self._view.found or self._view.rank is not None)
        return True

    @on(RankChips.Chosen)
    def _chosen(self, event: RankChips.Chosen) -> None:
        self._view.rank = event.rank

    def _mark(self) -> log_words.RankMark | None:
        failed = self._failed if self._older is None else None  # known only for the newest attempt
        return log_words.rank_mark(failed, self._finder.errors)

    def _ranks(self) -> tuple[int, ...]:
        others = {self._view.rank, mark.rank if (mark := self._mark()) else None}
        return tuple(sorted({*self._view.ranks, *(rank for rank in others if rank is not None)}))

    def action_attempt(self, step: int) -> None:
        """Show the log of another attempt; the newest is followed."""
        at = (self._older or self._attempts) + step
        if self._attempts == 1 or not 1 <= at <= self._attempts:
            say = words.count(self._attempts, "attempt")
            self.notify(f"The run has {say}, but no attempt {at}.", markup=False)
            return
        self.unfollow()
        self._older = at if at < self._attempts else None
        self._attempt, self._offset, self._page, self._ended = None, 0, None, ""
        self._view.clear(label_is_rank=self._label_is_rank)
        self._finder.begin(at, label_is_rank=self._label_is_rank)
        if self._older is None:
            self.follow()
        else:
            self._ended, self._view.follow = "ended", True
            self._want_page("end", 0, 0)

    def action_copy(self) -> None:
        """Copy a selection, the marked error, or the lines on the screen."""
        view = self._view
        selected, marked = self.screen.get_selected_text(), view.marked
        lines = view.on_screen()
        if marked is not None and marked in lines:
            fold = marked.fold
            lines = list(fold.first) if fold and fold.head is marked else [marked]  # type: ignore[arg-type]
        text = selected or "\n".join(line.text for line in lines)
        self.app.copy_to_clipboard(text)
        self.notify(f"Copied {words.count(len(text.splitlines()), 'line')}.", markup=False)

    @on(LogView.Changed)
    def _draw_line(self) -> None:
        view = self._view
        # The answer to a user's request comes first, because a narrow screen cuts the end.
        parts = [self._state(), self._finder.words, self._problem]
        if not view.follow:
            size, new = view.window.size - self._seen()[1], view.window.unseen
            parts.append(log_words.below(view.below, size, new, ended=bool(self._ended)))
        if self._attempts > 1:
            attempt = self._older or self._attempt or self._attempts
            parts.append(f"attempt {attempt} of {self._attempts} ({{ }})")
        parts.append(self._position())
        parts += ["wrapped"] if view.wrap else []
        is_live = not self._ended and self._lost is None and self._asked is None
        if view.follow and is_live and not self._run_ended:
            parts.append(log_words.silence(self._grown, time.time()) or "following")
        self._keep_place()
        keys = (len(self._ranks()) > 1, bool(view.found), view.rank is not None, view.follow,
                view.offers("toggle_wrap"))  # fmt: skip
        if keys != self._keys:
            self._keys = keys
            self.refresh_bindings()
        self._chips.show(self._ranks(), view.rank, self._mark())
        line = "  ".join(part for part in parts if part)
        name = "Log  " if self.has_class("titled") else ""  # otherwise the tab shows the name
        if (name, line) != self._line:
            self._line = (name, line)
            text = styled.plain(line)
            text.stylize("green", 0, 6 if line.startswith("● live") else 0)
            self.border_title = Text(name).append_text(text)
            self._status.update(text, layout=False)

    def _position(self) -> str:
        window, (behind, at) = self._view.window, self._seen()
        if not behind:
            return ""
        size = words.size(window.size)
        if self._view.follow:
            known = f"{len(window.lines):,} ({size})"
            return f"last lines of {size if window.start else known}"
        return log_words.position(None if window.start else behind, at, window.size)

    def _seen(self) -> tuple[int, int]:
        """Return the window's lines up to the last one on the screen, and the byte of its end."""
        window, shown = self._view.window, self._view.on_screen()
        behind = window.index(shown[-1]) + 1 if shown else 0
        return behind, window.lines[behind].offset if behind < len(window.lines) else window.end

    def _state(self) -> str:
        """Return a description of how the log is followed."""
        if self._ended:
            return self._ended
        lost = self._lost
        if lost is None and self._asked is not None:
            return log_words.awaited(self._asked, time.time())
        if lost is None and self._run_ended:
            return "reading its end"
        state = log_words.link(self._heard, lost.since if lost else None, time.time())
        return f"{state}: {lost.words.rstrip('.')}" if lost and lost.words else state
