"""The fields of a job file, a line each, with their errors below them."""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rich.segment import Segment
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from lumitui.app.explain import words
from lumitui.app.runs import Field, Finding, Fix, job_form
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.launch_text import SEVERITY

NO_FIX = "Nothing here needs fixing."
PRESS_F = "Press f to apply this fix."
REST = "rest"
"""The fold of fields at their defaults, except `COMMON`."""
COMMON = frozenset((
    "name", "site", "account", "partition", "nodes", "gpus_per_node", "time",
    "trainer", "script", "args",
))  # fmt: skip
"""Fields shown even at their defaults: most edits concern them."""
SOUGHT = {"grid": "sweep", "chain": "longer run"}
"""Fields that people look for: the first to be shown if there is room; else the fold names them."""
_LABEL = 15  # cells: `gpus_per_node`
_INDENT = "  "  # indentation below a heading: room for a field's sign
_NAMES = {"container.image": "image", "container.generation": "generation"}


@dataclass(frozen=True)
class _Row:
    """A field, an error, a fold (by its key) or a heading."""

    field: Field | None
    problem: Finding | None
    lines: tuple[Text, ...]
    fold: str = ""

    @property
    def is_field(self) -> bool:
        return self.problem is None and not self.fold and self.field is not None

    @property
    def is_heading(self) -> bool:
        """Whether the row is a heading, which the cursor skips."""
        return self.problem is None and not self.fold and self.field is None


class FieldList(ScrollView, can_focus=True):
    """The form, with a cursor on its fields and problems."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"field-list--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "act", "Change", id="form.change",
                tooltip="Change the field under the cursor"),
        Binding("right,plus,equals_sign", "step(1)", "More", show=False, id="form.more",
                key_display="+", tooltip="Set the next number or choice"),
        Binding("left,minus", "step(-1)", "Less", show=False, id="form.less", key_display="-",
                tooltip="Set the previous number or choice"),
        Binding("f", "fix", "Fix", show=False, id="form.fix",
                tooltip="Apply the fix under the cursor, that of its field, or the first"),
        Binding("ctrl+f", "fix_all", "Fix all", show=False, id="form.fix_all",
                tooltip="Apply all displayed fixes"),
        Binding("delete,backspace", "unset", "Clear", show=False, id="form.clear",
                tooltip="Remove the field from the job file"),
        Binding("j,down", "move(1)", "Down", show=False, id="form.down", tooltip="One line down"),
        Binding("k,up", "move(-1)", "Up", show=False, id="form.up", tooltip="One line up"),
        Binding("g,home", "move(-1000)", "Top", show=False, id="form.top",
                tooltip="Go to the top"),
        Binding("G,end", "move(1000)", "End", show=False, id="form.end", tooltip="Go to the end"),
    ]  # fmt: skip

    @dataclass
    class Wanted(Message):
        """The user wants to type the value of a field, or choose it."""

        field: Field

    @dataclass
    class Stepped(Message):
        """The user wants the next or previous value of a field."""

        field: Field
        step: int

    @dataclass
    class Cleared(Message):
        """The user removes a field."""

        field: Field

    @dataclass
    class FixWanted(Message):
        """The user applies a fix."""

        fix: Fix

    @dataclass
    class LineWanted(Message):
        """The user wants to edit the text at an error that belongs to no field."""

        line: int

    class AllFixesWanted(Message):
        """The user applies all fixes, and those that they make necessary."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._fields: Sequence[Field] = ()
        self._loose: Sequence[Finding] = ()
        self._rows: list[_Row] = []
        self._lines: list[tuple[int, int]] = []
        """The row of each line, and the line's number in its row."""
        self._at = 0
        self._first = True
        self._unfolded: set[str] = set()
        self._shown: set[str] = set()
        """Fields above the fold; a cleared field stays there, under the cursor."""
        self._filler: set[str] = set()
        """Further fields above the fold, which fill `_room` lines: no edit moves a field."""
        self._room = self._fixes = 0

    # -- display

    def show(self, fields: Sequence[Field], loose: Sequence[Finding]) -> None:
        """Show a form; the cursor stays at its field, or starts at the first error."""
        key = self._key()
        self._fields, self._loose = fields, loose
        self._lay_out()
        if self._first:
            self._first = False
            self._to_error()
        else:
            rows = ((at, row.field) for at, row in enumerate(self._rows) if row.is_field)
            self._at = next((at for at, own in rows if own and own.key == key), self._at)
            self.action_move(0)

    def _to_error(self) -> None:
        self._at = next((at for at, row in enumerate(self._rows) if _is_error(row)), 0)
        self.action_move(0)

    def start_again(self) -> None:
        """Start at the first error of the next form, which shows another job file."""
        self._first = True
        self._unfolded, self._shown, self._room = set(), set(), 0

    def _key(self) -> str:
        row = self._row()
        return row.field.key if row and row.field else ""

    def _row(self) -> _Row | None:
        return self._rows[self._at] if self._at < len(self._rows) else None

    def on_resize(self, event: events.Resize) -> None:
        """Rewrap the errors; the first layout also happens here."""
        here = self._row()
        self._lay_out()
        if here is None:
            self._to_error()
            return
        own = here.field, here.problem, here.fold
        rows = [(row.field, row.problem, row.fold) for row in self._rows]
        self._at = rows.index(own) if own in rows else self._at
        self.action_move(0)

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        if not width:
            return  # not on the screen yet: the first resize lays it out
        rows = self._rows_of(width)
        bar = 0 if self.show_vertical_scrollbar else self.scrollbar_size_vertical
        if bar and sum(len(row.lines) for row in rows) > self.scrollable_content_region.height:
            rows = self._rows_of(width - bar)  # a new scrollbar causes no resize
        self._rows = rows
        self._lines = [(at, line) for at, row in enumerate(rows) for line in range(len(row.lines))]
        self._at = min(self._at, max(0, len(rows) - 1))
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()
        fixes = sum(row.problem is not None and row.problem.fix is not None for row in rows)
        if fixes != self._fixes:
            self._fixes = fixes
            self._rename_key("f", f"Fix ({fixes})", show=fixes > 0)
            self._rename_key("ctrl+f", "Fix all", show=fixes > 1)
            self.refresh_bindings()

    def _rename_key(self, key: str, words: str, *, show: bool = True) -> None:
        """Change a key in the footer, which counts the fixes: some may be out of sight."""
        bindings = self._bindings.key_to_bindings
        bindings[key] = [replace(one, description=words, show=show) for one in bindings[key]]

    def _rows_of(self, width: int) -> list[_Row]:
        is_open = REST in self._unfolded
        self._shown |= {
            field.key for field in self._fields
            if field.key in COMMON or ((field.problems or field.value) and not is_open)
        }  # fmt: skip
        rest = [field.key for field in self._fields if field.key not in self._shown]
        rest.sort(key=lambda key: key not in SOUGHT)

        def shown(more: Collection[str]) -> list[_Row]:
            loose = [self._problem_row(None, problem, width) for problem in self._loose]
            return loose + self._group_rows(self._shown.union(more), width)

        def height(more: int) -> int:
            return sum(len(row.lines) for row in shown(rest[:more])) + 2 * (more < len(rest))

        room = self.scrollable_content_region.height
        if self._fields and room != self._room:
            more = max(0, bisect_right(range(len(rest) + 1), room, key=height) - 1)
            self._room, self._filler = room, set(rest[:more])
        rows, rest = shown(self._filler), [key for key in rest if key not in self._filler]
        if rest:
            names = ", ".join([*(SOUGHT[key] for key in rest if key in SOUGHT), "…"])
            said = f"{_INDENT}{len(rest)} more: {names} {'▾' if is_open else '▸'}"
            rows += [_Row(None, None, (Text(),)), _Row(None, None, (Text(said, "dim"),), REST)]
        if is_open:
            rows += self._group_rows(rest, width)
        return rows

    def _group_rows(self, keys: Collection[str], width: int) -> list[_Row]:
        """Return the fields `keys` below the headings of their groups."""
        rows: list[_Row] = []
        group = above = ""
        for field in self._fields:
            group = job_form.GROUPS.get(field.key, group)
            if field.key not in keys:
                continue
            if group != above:
                above = group
                blank = [Text()] if rows else []
                rows.append(_Row(None, None, (*blank, Text(group, "bold magenta"))))
            line = self._field_line(field)
            line.truncate(max(8, width), overflow="ellipsis")
            rows.append(_Row(field, None, (line,)))
            notes = [item for item in field.problems if item.severity == "note" and not item.fix]
            few = len(notes) == 1  # a fold would hide it for nothing
            shown = [item for item in field.problems if few or item not in notes]
            if len(notes) > 1:
                open_now = field.key in self._unfolded
                said = f"    {words.count(len(notes), 'note')} {'▾' if open_now else '▸'}"
                rows.append(_Row(field, None, (Text(said, SEVERITY["note"]),), fold=field.key))
                shown += notes if open_now else []
            rows += [self._problem_row(field, item, width) for item in shown]
        return rows

    def _field_line(self, field: Field) -> Text:
        errors = {item.severity for item in field.problems}
        sign = "✖" if "error" in errors else "!" if "warning" in errors else " "
        name = _NAMES.get(field.key, field.key)
        default = Text(f"({field.default or 'missing'})", "dim")
        value = styled.plain(field.value) if field.value else default
        style = "bold red" if sign == "✖" else "yellow" if sign == "!" else "dim"
        return Text.assemble((f"{sign} ", style), (f"{name:<{_LABEL}}", style), value)

    def _problem_row(self, field: Field | None, problem: Finding, width: int) -> _Row:
        text = styled.plain(f"{problem.severity}: ", SEVERITY[problem.severity])
        text.append_text(styled.plain(problem.words))
        if problem.fix:
            text.append(" (f)", "bold")
        if field is None and problem.at.line:
            text = Text.assemble(f"line {problem.at.line}: ", text)
        parts = text.wrap(self.app.console, max(8, width - 5))
        return _Row(field, problem, tuple(Text("    ") + part for part in parts))

    def render_line(self, y: int) -> Strip:
        if (y := y + self.scroll_offset.y) >= len(self._lines):
            return Strip.blank(self.size.width, self.rich_style)
        at, line = self._lines[y]
        return self._strip(self._rows[at], line, here=at == self._at)

    def _strip(self, row: _Row, at: int, *, here: bool) -> Strip:
        shown = here and self.has_focus
        name = "field-list--cursor"
        base = self.get_component_rich_style(name) if shown else self.rich_style
        line = row.lines[at]
        own = base + self.app.console.get_style(line.style)  # Rich forgets it without spans
        if shown and at == 0:  # the cursor, also without colours
            line = Text.assemble(line[:1], "▶", line[2:])
        if shown and row.is_field and row.field and row.field.steps:
            line = line.copy().append("  - +", "dim")
        parts = [part for part in line.render(self.app.console) if part.text]
        segments = [Segment(part.text, own + part.style if part.style else own) for part in parts]
        return Strip(segments).crop_extend(0, self.size.width, base)

    # -- keys

    def action_move(self, step: int) -> None:
        last = max(0, len(self._rows) - 1)
        self._at = min(max(0, self._at + step), last)
        # The cursor skips headings; it cannot go above the first field.
        way = -1 if step < 0 and any(not row.is_heading for row in self._rows[: self._at]) else 1
        while 0 <= self._at + way <= last and self._rows[self._at].is_heading:
            self._at += way
        self._reveal()

    def _reveal(self, *, below: bool = False) -> None:
        """Scroll to the cursor's row, with as many rows `below` as fit."""
        above = sum(at < self._at for at, _ in self._lines)
        height = sum(at == self._at or (below and at > self._at) for at, _ in self._lines)
        height = min(height, self.scrollable_content_region.height)
        self.scroll_to_region(Region(0, above, 1, height), animate=False, force=True)
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the mouse; a second click changes the field."""
        if (y := event.y + self.scroll_offset.y) < len(self._lines):
            at = self._lines[y][0]
            again, self._at = at == self._at and event.chain > 1, at
            self._reveal()
            if again:
                self.action_act()

    def action_act(self) -> None:
        """Change the field under the cursor; only `f` applies a fix."""
        row = self._row()
        if row is None:
            return
        if row.fold:
            self._unfolded ^= {row.fold}
            self._lay_out()
            self._at = next(at for at, new in enumerate(self._rows) if new.fold == row.fold)
            self._reveal(below=row.fold in self._unfolded)
        elif row.field is not None:
            self.post_message(self.Wanted(row.field))
        elif row.problem is not None and row.problem.fix:
            self.notify(PRESS_F)
        elif row.problem is not None and row.problem.at.line:
            self.post_message(self.LineWanted(row.problem.at.line))

    def action_fix(self) -> None:
        """Apply the first fix of the cursor's field, else of any field; or open the field."""
        key = self._key()
        wrong = [row for row in self._rows if row.problem and row.problem.severity != "note"]
        fixes = [row for row in self._rows if row.problem is not None and row.problem.fix]
        at = [row for row in fixes if row is self._row()]
        rows = sorted((*fixes, *wrong), key=lambda row: row not in wrong)  # offers of notes: last
        here = [row for row in rows if row.field is not None and row.field.key == key]
        for row in (*at, *here, *rows):
            if row.problem is not None and row.problem.fix:
                self.post_message(self.FixWanted(row.problem.fix))
                return
            if row.field is not None:
                self.post_message(self.Wanted(row.field))
                return
        self.notify(NO_FIX)

    def open_wrong(self) -> None:
        """Open the first field with an error without a fix."""
        for row in self._rows:
            if _is_error(row) and row.field is not None and row.problem and not row.problem.fix:
                self.post_message(self.Wanted(row.field))
                return

    def action_fix_all(self) -> None:
        if self._fixes:
            self.post_message(self.AllFixesWanted())
        else:
            self.notify(NO_FIX)

    def action_step(self, step: int) -> None:
        row = self._row()
        if row is not None and row.field is not None:
            self.post_message(self.Stepped(row.field, step))

    def action_unset(self) -> None:
        row = self._row()
        if row is not None and row.field is not None:
            self.post_message(self.Cleared(row.field))


def _is_error(row: _Row) -> bool:
    return row.problem is not None and row.problem.severity == "error"
