"""The sizes to send a run on: the one under the cursor, or several marked ones."""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from lumitui.app.runs import Rung, log_line

POINTER = "▶"


class SizeLadder(OptionList):
    """A line for each size; a refused one cannot be selected or marked."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "Mark", id="ladder.mark",
                tooltip="Mark the size for sending; you can mark several"),
        Binding("a", "mark_all", "All", id="ladder.all",
                tooltip="Mark every size, or none"),
        Binding("j", "cursor_down", "Down", show=False, id="ladder.down", tooltip="One size down"),
        Binding("k", "cursor_up", "Up", show=False, id="ladder.up", tooltip="One size up"),
        Binding("g", "first", "First", show=False, id="ladder.first", tooltip="Smallest size"),
        Binding("G", "last", "Last", show=False, id="ladder.last", tooltip="Largest size"),
    ]  # fmt: skip

    class Marked(Message):
        """The marked sizes have changed."""

    def __init__(self, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, markup=False, compact=True)
        self._rungs: Sequence[Rung] = ()
        self._titles: Sequence[str] = ("",) * 6
        self.marked: frozenset[int] = frozenset()
        """Numbers of nodes."""
        self._pointed: int | None = None
        """The number of nodes to resubmit on if no size is marked; `POINTER` shows it."""

    def show(self, rungs: Sequence[Rung], titles: Sequence[str], nodes: int | None) -> None:
        """Show `rungs` below `titles`, with the cursor at `nodes`; keep marks if possible."""
        self._rungs, self._titles = rungs, titles
        marked = self.marked & {rung.nodes for rung in rungs if not rung.refused}
        with self.prevent(OptionList.OptionHighlighted):
            self.clear_options()
            self.add_options(
                Option(text, id=str(rung.nodes), disabled=bool(rung.refused))
                for rung, text in zip(rungs, self._prompts(), strict=True)
            )
        self.point_at(nodes)
        self._mark(marked)

    def point_at(self, nodes: int | None) -> None:
        """Put the cursor on a size, or nowhere if the size is not listed."""
        self._pointed = nodes
        self._tick()
        at = next((i for i, rung in enumerate(self._rungs) if rung.nodes == nodes), None)
        with self.prevent(OptionList.OptionHighlighted):
            self.highlighted = None if at is None or self._rungs[at].refused else at
        if at is not None:  # a refused size is also shown; the plan below explains why
            self.call_after_refresh(self.scroll_to_region, Region(0, at, 1, 1), animate=False)

    @property
    def chosen(self) -> int | None:
        """The number of nodes under the cursor."""
        return None if self.highlighted is None else self._rungs[self.highlighted].nodes

    def heading(self) -> str:
        """Return the line above the sizes."""
        return f"   {self._aligned(self._titles)}"

    def action_mark(self) -> None:
        if self.chosen is not None:
            self._mark(self.marked ^ {self.chosen})

    def action_mark_all(self) -> None:
        """Mark every size; if all are marked, unmark all."""
        every = frozenset(rung.nodes for rung in self._rungs if not rung.refused)
        self._mark(frozenset() if self.marked == every else every)

    def _mark(self, marked: frozenset[int]) -> None:
        if marked == self.marked:
            return
        self.marked = marked
        self._tick()
        self.post_message(self.Marked())

    def _tick(self) -> None:
        for at, text in enumerate(self._prompts()):
            self.replace_option_prompt_at_index(at, text)

    def _prompts(self) -> list[Text]:
        pointed, prompts = None if self.marked else self._pointed, []
        for rung in self._rungs:
            box = ("[x]", "") if rung.nodes in self.marked else ("[ ]", "dim")
            if rung.nodes == pointed and not rung.refused:
                box = (f" {POINTER} ", "bold")  # differs from a mark, which moves do not change
            text = Text.assemble(box, self._aligned(rung.cells), no_wrap=True, overflow="ellipsis")
            prompts.append(text)
        return prompts

    def _aligned(self, cells: Sequence[str]) -> str:
        rows = [self._titles, *(rung.cells for rung in self._rungs)]
        widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
        line = "   ".join(map(str.rjust, cells[:-1], widths))
        return log_line(f"  {line}   {cells[-1]}".rstrip())
