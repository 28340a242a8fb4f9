"""The search in a log: the field, the known matches, and the errors."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

from lumitui.app.runs import (
    ERROR_PATTERN,
    MOST_MATCHES,
    LogError,
    LogMatches,
    LumiError,
    Runs,
    Sought,
    attendance,
    first_errors,
)
from lumitui.app.tui.asking import ask
from lumitui.app.tui.widgets.input import LineInput

_ERRORS = Sought(ERROR_PATTERN, is_pattern=True)


class LogMatchPlaces:
    """The known matches in the searched part of a log."""

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._first, self._last = 0, 0
        self._to_end = False

    def add(self, found: LogMatches) -> None:
        """Add the result of one search."""
        new = [match.offset for match in found.matches]
        last = found.last if found.last is not None else max([found.first, *new]) + 1
        adjoins = found.first <= self._last and self._first <= last and self._last > self._first
        if not adjoins:
            self._offsets, self._first, self._last, self._to_end = [], found.first, last, False
        self._offsets = sorted({*self._offsets, *new})
        self._first, self._last = min(self._first, found.first), max(self._last, last)
        self._to_end = self._to_end or found.last is None

    def after(self, at: int) -> int | None:
        """Return the first known match after byte `at`, or None."""
        index = bisect_right(self._offsets, at)
        known = self._first <= at + 1 and index < len(self._offsets)
        return self._offsets[index] if known else None

    def before(self, at: int) -> int | None:
        """Return the last known match before byte `at`, or None."""
        index = bisect_left(self._offsets, at) - 1
        return self._offsets[index] if index >= 0 and (at <= self._last or self._to_end) else None

    def words(self, offset: int, size: int) -> str:
        """Return the match's number and the total for byte `offset`; the log has `size` bytes."""
        number = bisect_left(self._offsets, offset) + 1
        return f"match {number:,} of {len(self._offsets):,}" if self._are_all(size) else "match"

    def are_none(self, size: int) -> bool:
        """Return whether all `size` bytes of the log were searched without a match."""
        return not self._offsets and self._are_all(size)

    def _are_all(self, size: int) -> bool:
        return self._first == 0 and (self._to_end or self._last >= size)


class LogFinder(LineInput):
    """The search field of a log, and the result."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Search", id="log-search.go",
                tooltip="Search the log: upwards from its end, otherwise downwards"),
        Binding("escape", "leave", "Close", id="log-search.close", tooltip="Close the search"),
    ]  # fmt: skip

    @dataclass
    class Jumped(Message):
        """Requests the line at a byte of the log, or shows only a message."""

        offset: int | None
        """The start of the line; None to show only a message."""

    @dataclass
    class Left(Message):
        """The field was closed."""

        searches: bool = False
        """Whether to search for the typed text."""

    def __init__(self, run_id: str) -> None:
        hint = "search the log; `rank 12` shows only that rank"
        super().__init__(placeholder=hint, id="log-search", compact=True)
        self._run_id = run_id
        self.attempt: int | None = None
        self.label_is_rank = True
        self.found = ""
        """The search text."""
        self.words = ""
        """The current message of the search or the errors."""
        self.errors: list[LogError] | None = None
        self._places = LogMatchPlaces()
        self._searching: object | None = None
        """The running search; answers to another one are dropped."""
        self._at = self._of = 0
        self._forward = True
        self._turned = False
        """Whether the search has turned to the other direction, because there was no match."""
        self._error = -1
        self._errors_of = -1

    def begin(self, attempt: int, *, label_is_rank: bool) -> None:
        """Clear the results, for another log."""
        self.attempt, self.label_is_rank = attempt, label_is_rank
        self._places, self.errors, self._error, self.words = LogMatchPlaces(), None, -1, ""
        self._searching = None

    def forget(self) -> None:
        """Clear the search text."""
        self.found, self.words, self._places = "", "", LogMatchPlaces()

    def open(self) -> None:
        """Open the field."""
        self.display = True
        self.focus()

    def action_leave(self) -> None:
        self.display = False
        self.post_message(self.Left())

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.display = False
        # `step 2 ` is not `step 23`: spaces count.
        self.found = self.value if self.value.strip() else ""
        self._places, self.words = LogMatchPlaces(), ""
        self.post_message(self.Left(searches=True))

    def step(self, at: int, size: int, *, forward: bool) -> None:
        """Go to the next match after or before byte `at` of `size`; may query the site."""
        if not self.found:
            self.open()
            return
        self._at, self._of, self._forward, self._turned = at, size, forward, False
        place = self._places.after(at) if forward else self._places.before(at)
        if place is not None:
            self._show(place)
        elif self._searching is None:
            self._ask(Sought(self.found), max(at, 0), forward=forward)

    def _show(self, place: int) -> None:
        self.words = f"{self._places.words(place, self._of)} of “{self.found}”"
        self.post_message(self.Jumped(place))

    def next_error(self, size: int) -> None:
        """Go to the log's first error, then to the next; the log has `size` bytes."""
        if self.errors is None or self._errors_of != size:
            if self._searching is None:
                self._errors_of = size
                self._ask(_ERRORS, 0, forward=True)
            return
        if self.errors:
            self._error = (self._error + 1) % len(self.errors)
            error = self.errors[self._error]
            first = "first error" if self._error == 0 else "error"
            rank = "" if error.rank is None else f", rank {error.rank}"
            self.words = f"{first} {self._error + 1}/{len(self.errors)}{rank}"
            self.post_message(self.Jumped(error.offset))

    def _ask(self, sought: Sought, at: int, *, forward: bool) -> None:
        self.words = "searching …"
        self._searching = search = object()
        run_id, attempt = self._run_id, self.attempt

        def find(runs: Runs) -> LogMatches:
            with attendance(False):  # only following the log may prompt for a login
                return runs.pages.find(run_id, attempt, sought, at, forward=forward)

        def answered(found: LogMatches | LumiError) -> None:
            if search is self._searching:
                self._searching = None
                self._take(found, sought, forward=forward)

        ask(self, find, answered, failed=answered, quietly=True)
        self.post_message(self.Jumped(None))

    def _take(self, found: LogMatches | LumiError, sought: Sought, *, forward: bool) -> None:
        if isinstance(found, LumiError):
            self.words = f"cannot search: {found.message}"
            self.post_message(self.Jumped(None))
        elif sought is _ERRORS:
            lines = [(match.offset, match.text) for match in found.matches]
            self.errors = first_errors(lines, label_is_rank=self.label_is_rank)
            more = " in its first part" if len(lines) == MOST_MATCHES else ""
            self.words = f"no errors found{more}"
            self.post_message(self.Jumped(None))
            self.next_error(self._errors_of)
        else:
            self._matched(found, forward=forward)

    def _matched(self, found: LogMatches, *, forward: bool) -> None:
        self._places.add(found)
        place = self._places.after(self._at) if forward else self._places.before(self._at)
        if place is not None and not self._turned:
            self._show(place)
        elif self._turned or self._places.are_none(self._of):
            self._missed(place, forward=forward)
        else:
            # The user wants to know of any match, not only in the requested direction.
            self._turned = True
            self._ask(Sought(self.found), max(self._at, 0), forward=not forward)

    def _missed(self, other: int | None, *, forward: bool) -> None:
        """Report that nothing was found; `other` is a match in the other direction."""
        short = self.found.strip()
        if other is not None:
            asked, there = ("above", "below it (n)") if forward else ("below", "above it (N)")
            self.words = f"“{self.found}” is not {asked} this line, but {there}"
        elif not self._places.are_none(self._of):
            self.words = f"“{self.found}” is nowhere else in the log"
        elif short != self.found:
            # Ignore a space typed by mistake; a meaningful one, as in `step 2 `, would have
            # matched.
            self.found, self._places, self._turned = short, LogMatchPlaces(), False
            self._ask(Sought(short), max(self._at, 0), forward=self._forward)
            return
        else:
            self.words = f"“{self.found}” is not in the log"
        self.post_message(self.Jumped(None))
