"""The ranks of a log in one row: one or all are chosen, and a failed rank is marked."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.message import Message
from textual.widgets import Static

from lumitui.app.explain.log_words import RankMark

_KEYS = {"log.rank_before": ",", "log.rank_next": "."}
"""The bindings that choose a rank, and their default keys."""
_WIDE = 60  # minimum cells for a heading
_Places = list[tuple[int, int, int | None]]


class RankChips(Static):
    """The row `ranks (, .) [all] ●9 failed first 0 1 2 …`, which the mouse can choose from."""

    @dataclass
    class Chosen(Message):
        """The user clicked a rank, or `all`."""

        rank: int | None
        """None for all ranks."""

    def __init__(self) -> None:
        """Show no ranks; the row is hidden while there are fewer than two."""
        super().__init__(id="ranks", markup=False)
        self._shown: tuple[object, ...] = ()
        self._places = _Places()

    def show(self, ranks: Sequence[int], chosen: int | None, mark: RankMark | None) -> None:
        """Show `ranks` in order, with a message about one of them."""
        width = self.size.width or self.app.size.width
        if self._shown == (ranks, chosen, mark, width):
            return
        self._shown = (ranks, chosen, mark, width)
        self.display = len(ranks) > 1
        text, self._places = chips(ranks, chosen, mark, width, self._keys())
        self.update(text)

    def _keys(self) -> str:
        bindings = [active.binding for active in self.screen.active_bindings.values()]
        found = {binding.id: self.app.get_key_display(binding) for binding in bindings}
        return " ".join(found.get(name, usual) for name, usual in _KEYS.items())

    def on_click(self, event: events.Click) -> None:
        for first, last, rank in self._places:
            if first <= event.x < last:
                self.post_message(self.Chosen(rank))


def chips(
    ranks: Sequence[int], chosen: int | None, mark: RankMark | None, width: int, keys: str = ", ."
) -> tuple[Text, _Places]:
    """Return the row, at most `width` cells, and the cells of each rank (None: all).

    A failed rank comes first; a rank that only raised an error keeps its place. If there are many
    ranks, those around the chosen one are shown. `keys` choose the previous and the next rank.
    """
    text, places = Text(f"ranks ({keys}) " if width >= _WIDE else "ranks "), _Places()

    def chip(rank: int | None, words: str) -> None:
        is_chosen, style = rank == chosen, ""
        if mark is not None and rank == mark.rank:
            words, style = f"{'●' if mark.failed else ''}{rank} {mark.words}", "bold"
        words = f"[{words}]" if is_chosen else f" {words} "
        places.append((cell_len(text.plain), cell_len(text.plain) + cell_len(words), rank))
        text.append(words, "bold reverse" if is_chosen else style)

    chip(None, "all")
    failed = mark.rank if mark is not None and mark.failed else None
    if failed is not None:
        chip(failed, str(failed))
    others = [rank for rank in ranks if rank != failed]
    at = others.index(chosen) if chosen in others else 0
    longest = len(str(max(others, default=0))) + 2
    words = len(mark.words) + 1 if mark is not None and not mark.failed else 0
    room = max(1, (width - cell_len(text.plain) - 4 - words) // longest)
    start = max(0, min(at - room // 2, len(others) - room))
    if start:
        text.append("…")
    for rank in others[start : start + room]:
        chip(rank, str(rank))
    if start + room < len(others):
        text.append("…")
    return text, places
