"""The ranks of a log in one row: one or all of them are chosen; the first that failed is marked."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.message import Message
from textual.widgets import Static


class RankChips(Static):
    """`ranks [all] ●9 0 1 2 …`; the mouse chooses."""

    class Chosen(Message):
        """A rank was clicked on, or all of them."""

        def __init__(self, rank: int | None) -> None:
            """None: all."""
            super().__init__()
            self.rank = rank

    def __init__(self) -> None:
        """Show no ranks; the row is hidden as long as there are fewer than two."""
        super().__init__(id="ranks", markup=False)
        self._shown: tuple[object, ...] = ()
        self._places: list[tuple[int, int, int | None]] = []

    def show(self, ranks: Sequence[int], chosen: int | None, failed: int | None) -> None:
        """Show `ranks`, in order; `failed` failed first."""
        width = self.size.width or self.app.size.width
        if self._shown == (ranks, chosen, failed, width):
            return
        self._shown = (ranks, chosen, failed, width)
        self.display = len(ranks) > 1
        text, self._places = chips(ranks, chosen, failed, width)
        self.update(text)

    def on_click(self, event: events.Click) -> None:
        """Choose what is under the mouse."""
        for first, last, rank in self._places:
            if first <= event.x < last:
                self.post_message(self.Chosen(rank))


def chips(
    ranks: Sequence[int], chosen: int | None, failed: int | None, width: int
) -> tuple[Text, list[tuple[int, int, int | None]]]:
    """Return the row, at most `width` cells, and which cells choose which rank (None: all).

    The rank that failed first comes first. Of many ranks those around the chosen one are shown.
    """
    text, places = Text("ranks "), list[tuple[int, int, int | None]]()

    def chip(rank: int | None, words: str) -> None:
        is_chosen = rank == chosen
        words = f"[{words}]" if is_chosen else f" {words} "
        style = "bold reverse" if is_chosen else "bold" if rank == failed else ""
        places.append((cell_len(text.plain), cell_len(text.plain) + cell_len(words), rank))
        text.append(words, style)

    chip(None, "all")
    if failed is not None:
        chip(failed, f"●{failed} failed first")
    others = [rank for rank in ranks if rank != failed]
    at = others.index(chosen) if chosen in others else 0
    longest = len(str(max(others, default=0))) + 2
    room = max(1, (width - cell_len(text.plain) - 4) // longest)
    start = max(0, min(at - room // 2, len(others) - room))
    if start:
        text.append("…")
    for rank in others[start : start + room]:
        chip(rank, str(rank))
    if start + room < len(others):
        text.append("…")
    return text, places


def neighbour(ranks: Sequence[int], chosen: int | None, step: int) -> int | None:
    """Return what is chosen `step` places on; before the first rank is `all`."""
    order: list[int | None] = [None, *ranks]
    at = order.index(chosen) if chosen in order else 0
    return order[(at + step) % len(order)]
