"""The ranks of a log: which one is shown, by keys, by its number or by the mouse."""

import time
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import App
from textual.binding import Binding, BindingType

from lumitui.app.explain import log_words
from lumitui.app.tui.widgets.log.log_exits import LogExits
from lumitui.app.tui.widgets.log.log_finder import LogFinder
from lumitui.app.tui.widgets.log.log_view import LogView
from lumitui.app.tui.widgets.log.rank_chips import RankChips, neighbour, typed

_RANKS = Binding.Group("Rank", compact=True)
_TYPING = 1.5
"""Seconds within which two digits are one number."""


@dataclass(frozen=True)
class LogPlace:
    """Where a log was left."""

    attempt: int | None
    offset: int | None
    """Of a line on the screen; None: its end was followed."""
    rank: int | None
    found: str
    """What was searched for."""


def places(app: App[object]) -> dict[str, LogPlace]:
    """Return where the logs of runs were left, by the run's id."""
    kept: dict[str, LogPlace] = getattr(app, "log_places", {})
    return kept


class LogRanks(LogExits):
    """A log of which all ranks are shown, or one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("comma,less_than_sign", "rank(-1)", "Rank before", key_display=",",
                id="log.rank_before", group=_RANKS,
                tooltip="Show only the lines of the rank before, or of all"),
        Binding("full_stop,greater_than_sign", "rank(1)", "Next rank", key_display=".",
                id="log.rank_next", group=_RANKS,
                tooltip="Show only the lines of the next rank, or of all"),
        *(
            Binding(str(digit), f"rank_digit({digit})", f"Rank {digit}", show=False,
                    id=f"log.rank_{digit}", tooltip="Show only the lines of the rank typed")
            for digit in range(10)
        ),
        Binding("escape", "clear", "Clear", id="log.clear",
                tooltip="Show all ranks again, and forget the search; then go back"),
    ]  # fmt: skip

    def __init__(self, run_id: str, *, id: str) -> None:  # noqa: A002 - Textual's name
        """Hold the log of the run `run_id`."""
        super().__init__(run_id, id=id)
        self._failed: int | None = None
        """The rank that ended the run, as its record says."""
        self._typed, self._typed_at = "", 0.0

    @property
    def _view(self) -> LogView:
        return self.query_one(LogView)

    @property
    def _finder(self) -> LogFinder:
        return self.query_one(LogFinder)

    def action_rank(self, step: int) -> None:
        """Show only the lines of the next rank, or of all."""
        self._view.rank = neighbour(self._ranks(), self._view.rank, step)

    def action_rank_digit(self, digit: int) -> None:
        """Show only the lines of the rank whose number is typed."""
        now = time.monotonic()
        before, self._typed_at = self._typed if now - self._typed_at < _TYPING else "", now
        self._typed, rank = typed(self._ranks(), before, str(digit))
        if rank is not None:
            self._view.rank = rank
        elif not self._typed:
            self.notify(f"No line of a rank {before}{digit} has been read.", markup=False)

    def action_clear(self) -> None:
        """Show all ranks, and mark nothing that was searched for; the place stays."""
        self._finder.forget()
        self._view.found, self._view.rank, self._view.mark = "", None, None
        self._view.refresh()
        self._view.post_message(LogView.Changed())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let a digit open its screen where there are no ranks; leave where nothing is chosen."""
        if not self.query(LogView):
            return True  # before the first paint
        if action in ("rank", "rank_digit"):
            return len(self._ranks()) > 1
        if action == "clear":
            return bool(self._view.found or self._view.rank is not None)
        return True

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
