"""The pane with a run's log. It is followed while the pane is open, and only then."""

import os
import time
from typing import ClassVar

from textual import on
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from lumitui.app.explain import log_words, words
from lumitui.app.history.run import Run
from lumitui.app.tui import messages
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.log.log_finder import LogFinder
from lumitui.app.tui.widgets.log.log_view import LogView
from lumitui.app.tui.widgets.log.rank_chips import RankChips, neighbour
from lumitui.app.watch.follow_log import LogBegan, LogEnded, LogGrew, LogHeard, LogLost, LogWaits
from lumitui.app.watch.log_pages import KeptPage
from lumitui.remote.scheduler.run_log import BLOCK, Page


class LogPane(Vertical):
    """The log, its ranks, what is searched for, and a line on how far it is followed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", key_display="/", id="log.search",
                tooltip="Search the whole log, at the site"),
        Binding("n", "find(1)", "Next match", show=False, id="log.next",
                tooltip="Go to the next match below"),
        Binding("N", "find(-1)", "Match above", show=False, id="log.previous",
                tooltip="Go to the next match above"),
        Binding("e", "error", "Error", id="log.error",
                tooltip="Go to the first error of the log, then to the next"),
        Binding("y", "copy", "Copy", show=False, id="log.copy",
                tooltip="Copy what is marked: a selection, the error, or the lines on the screen"),
        Binding("P", "pager", "Pager", show=False, id="log.pager",
                tooltip="Open what is kept of the log on this machine in $PAGER"),
        Binding("a", "attempt(-1)", "Attempt before", show=False, id="log.attempt_before",
                tooltip="Show the log of the attempt before"),
        Binding("A", "attempt(1)", "Next attempt", show=False, id="log.attempt_next",
                tooltip="Show the log of the next attempt"),
        Binding("comma,less_than_sign", "rank(-1)", "Rank before", show=False, key_display=",",
                id="log.rank_before", tooltip="Show only the lines of the rank before, or of all"),
        Binding("full_stop,greater_than_sign", "rank(1)", "Next rank", show=False, key_display=".",
                id="log.rank_next", tooltip="Show only the lines of the next rank, or of all"),
    ]  # fmt: skip

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
        self._page: messages.PageWanted | None = None
        """The part of the log that is being read."""
        self._problem = ""
        """Why a part of the log could not be read."""
        self._label_is_rank = True
        self._attempts = 1
        """Attempts of the run."""
        self._older: int | None = None
        """The attempt that was chosen instead of the newest."""
        self._copy_of: float | None = None
        """When what is on the screen was read, while the site cannot be reached."""
        self._failed: int | None = None
        """The rank that ended the run, as its record says."""
        self._goal: int | None = None
        """The byte that is to be shown when its page has come."""
        self._line = ""
        """What the line says."""

    def compose(self) -> ComposeResult:
        """Yield the ranks, the log, the search, then the line."""
        yield RankChips()
        yield LogView(id="log-view")
        yield LogFinder(self._run_id)
        yield Static(id="log-line", markup=False)

    def draw(self, run: Run) -> None:
        """Say how old the link's last sign of life is; the log itself comes by messages."""
        self._label_is_rank = run.layout.tasks_per_node == run.layout.ranks_per_node
        self._attempts = run.attempt
        self._failed = log_words.failed_rank(run) if self._label_is_rank else None
        self._draw_line()

    @property
    def _view(self) -> LogView:
        return self.query_one(LogView)

    @property
    def _finder(self) -> LogFinder:
        return self.query_one(LogFinder)

    # -- following

    def follow(self) -> None:
        """Follow the log from where the pane has it, unless it is followed already."""
        if not self._following and self._older is None:
            self._number += 1
            self._following, self._ended = True, ""
            place = (self._run_id, self._attempt, self._offset)
            self.app.post_message(messages.FollowWanted(self, self._number, *place))

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
        match news.event:
            case LogBegan(attempt, start):
                self._attempt, self._offset, self._page = attempt, start, None
                self._copy_of = None
                self._following, self._ended = True, ""
                self._view.clear(start, label_is_rank=self._label_is_rank)
                self._view.note("The log is empty.")
                self._finder.begin(attempt, label_is_rank=self._label_is_rank)
            case LogGrew(data, end):
                was_live = self._following and self._lost is None and self._offset
                self._offset, self._lost = end, None
                self._following, self._ended = True, ""
                if self._heard is not None:
                    self._heard = time.time()
                self._view.feed(data, end - len(data))
                if was_live:
                    return  # the view says when it has drawn the lines
            case LogHeard(at):
                self._heard = at
            case LogLost():
                self._lost = news.event
                self._view.note("The lines come by themselves when the site answers.")
                if self._attempt is None and self._page is None and self._copy_of is None:
                    self._want_page("end", 0, 0)  # what is kept on the laptop
            case LogWaits(why):
                self._following, self._ended = False, f"waiting: {why}"
            case LogEnded(why):
                self._following, self._ended = False, why
                self._view.note("There are no lines.")
        self._draw_line()

    # -- parts that are not on the screen

    @on(LogView.Wanted)
    def _part_wanted(self, event: LogView.Wanted) -> None:
        if self._page is not None or not self._view.window.size:
            return
        window = self._view.window
        start, length = 0, 2 * BLOCK
        if event.where == "before" and (before := window.before()):
            start, length = before[0], before[1] - before[0]
        elif event.where == "after":
            start = window.end
        elif event.where == "goal" and self._goal is not None:
            start = self._goal // BLOCK * BLOCK
        self._want_page(event.where, start, length)

    def _want_page(self, where: str, start: int, length: int) -> None:
        attempt = self._older or self._attempt
        self._page = messages.PageWanted(
            self, self._number, self._run_id, attempt, where, start, length
        )
        self.app.post_message(self._page)

    @on(messages.PageFound)
    def _part_found(self, event: messages.PageFound) -> None:
        if event.wanted is not self._page:
            return
        self._page = None
        self._problem = "" if event.error is None else f"cannot read more: {event.error.message}"
        if self._lost is not None and not self._view.window.size:
            self._problem = ""  # the line says already that there is no link
        if isinstance(event.page, KeptPage):
            self._copy_of = event.page.read
        if event.page is not None:
            self._show_part(event.wanted.where, event.page)
        self._draw_line()

    def _show_part(self, where: str, page: Page) -> None:
        view = self._view
        if where == "before":
            view.feed_before(page.start, page.data)
        elif where in ("start", "goal") or (where == "end" and page.start > view.window.end):
            view.show_page(page.start, page.data)
        else:
            view.feed_after(page.start, page.data)
        if where == "goal" and self._goal is not None:
            view.go_to(self._goal)
            self._goal = None
        if view.follow and not view.window.is_at_end and page.data:
            self._part_wanted(LogView.Wanted("after"))  # it grew meanwhile

    # -- what is searched for

    def action_search(self) -> None:
        """Let the person type what to search for."""
        self._finder.open()

    def action_find(self, step: int) -> None:
        """Go to the next match, below or above."""
        view = self._view
        self._finder.step(view.place, view.window.size, forward=step > 0)

    def action_error(self) -> None:
        """Go to the first error, then to the next."""
        self._finder.next_error(self._view.window.size)

    @on(LogFinder.Left)
    def _search_left(self, event: LogFinder.Left) -> None:
        view, finder = self._view, self._finder
        view.focus()
        if event.searches:
            view.found = finder.found
            view.refresh()
            if finder.found:
                at = view.window.size if view.follow else view.place - 1
                finder.step(at, view.window.size, forward=not view.follow)
        self._draw_line()

    @on(LogFinder.Jumped)
    def _jumped(self, event: LogFinder.Jumped) -> None:
        if event.offset is not None:
            self._view.follow = False
            if not self._view.go_to(event.offset):
                self._goal = event.offset
                self._page = None  # this one is wanted now
                self._part_wanted(LogView.Wanted("goal"))
        self._draw_line()

    # -- ranks

    def action_rank(self, step: int) -> None:
        """Show only the lines of the next rank, or of all."""
        self._view.rank = neighbour(self._ranks(), self._view.rank, step)

    @on(RankChips.Chosen)
    def _chosen(self, event: RankChips.Chosen) -> None:
        self._view.rank = event.rank

    def _mark(self) -> log_words.RankMark | None:
        failed = self._failed if self._older is None else None  # it is known of the newest attempt
        return log_words.rank_mark(failed, self._finder.errors)

    def _ranks(self) -> tuple[int, ...]:
        """Return the ranks to choose from."""
        others = {self._view.rank, mark.rank if (mark := self._mark()) else None}
        return tuple(sorted({*self._view.ranks, *(rank for rank in others if rank is not None)}))

    # -- out of here

    def action_copy(self) -> None:
        """Copy a selection, the marked error, or the lines on the screen."""
        selected, marked = self.screen.get_selected_text(), self._view.marked
        lines = self._view.on_screen()
        if marked is not None and marked in lines:
            fold = marked.fold
            lines = list(fold.first) if fold and fold.head is marked else [marked]  # type: ignore[arg-type]
        text = selected or "\n".join(line.text for line in lines)
        self.app.copy_to_clipboard(text)
        self.notify(f"Copied {words.count(len(text.splitlines()), 'line')}.", markup=False)

    def action_pager(self) -> None:
        """Open what is kept of the log in the person's pager."""
        attempt = self._older or self._attempt
        self.app.post_message(messages.PagerWanted(self, self._run_id, attempt))

    @on(messages.PagerReady)
    def _pager_ready(self, event: messages.PagerReady) -> None:
        import shlex
        import subprocess

        command = shlex.split(os.environ.get("PAGER") or "less -R")
        try:
            with self.app.suspend():
                subprocess.run([*command, str(event.path)], check=False)
        except (SuspendNotSupported, OSError) as error:
            why = str(error).rstrip(".") or "this terminal cannot be left"
            self.notify(f"The pager cannot be opened: {why}.", severity="warning", markup=False)
        finally:
            event.path.unlink(missing_ok=True)

    def action_attempt(self, step: int) -> None:
        """Show the log of another attempt; the newest is followed."""
        at = (self._older or self._attempts) + step
        if self._attempts == 1 or not 1 <= at <= self._attempts:
            say = words.count(self._attempts, "attempt")
            self.notify(f"The run has {say}; there is no attempt {at}.", markup=False)
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

    # -- the line

    @on(LogView.Changed)
    def _draw_line(self) -> None:
        view = self._view
        parts = [self._state()]
        if not view.follow:
            unseen = view.window.unseen
            parts.append(f"+{unseen:,} new below (G)" if unseen else "paused (f follows)")
        if self._attempts > 1:
            attempt = self._older or self._attempt or self._attempts
            parts.append(f"attempt {attempt} of {self._attempts} (a)")
        if self._copy_of is not None:
            parts.append(log_words.offline_copy(self._copy_of, time.time()))
        parts.append(self._position())
        parts += [self._finder.words, self._problem]
        parts += ["wrapped"] if view.wrap else []
        self.query_one(RankChips).show(self._ranks(), view.rank, self._mark())
        line = "  ".join(part for part in parts if part)
        if line != self._line:
            self._line = line
            self.query_one("#log-line", Static).update(styled.plain(line), layout=False)

    def _position(self) -> str:
        window, shown = self._view.window, self._view.on_screen()
        if not shown:
            return ""
        behind = window.index(shown[-1]) + 1
        at = window.lines[behind].offset if behind < len(window.lines) else window.end
        return log_words.position(None if window.start else behind, at, window.size)

    def _state(self) -> str:
        """Return how the log is followed, in words."""
        if self._ended:
            return self._ended
        lost = self._lost
        state = log_words.link(self._heard, lost.since if lost else None, time.time())
        return f"{state}: {lost.words.rstrip('.')}" if lost and lost.words else state
