"""The actions of a screen, from its bindings, for the help and, beside runs, for the palette."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import ClassVar, TypeVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.command import (
    Command,
    CommandInput,
    CommandList,
    CommandPalette,
    DiscoveryHit,
    Hit,
    Hits,
    Provider,
)
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widgets import LoadingIndicator
from textual.widgets.option_list import Option

from lumitui.app.runs import LumiError
from lumitui.app.tui.asking import tui
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.bars import footer

AREAS = {
    "run": "The run", "runs": "The list of runs", "page": "This screen", "go": "Screens",
    "app": "The program", "table": "The table",
}  # fmt: skip
"""Titles of areas, by the prefix of a binding's id; any other area uses its own name."""
MOST_RUNS = 200
"""Number of newest runs that the palette finds by name."""
NAMES = 18
"""Cells for a name in the palette."""
WIDE, _AROUND = 100, 8
"""Cells of the palette, including those for its frame, blanks and scrollbar."""
MOVING = "Moving"
_MOVES = frozenset({"Up", "Down", "Top", "End", "Left", "Right", "Page up", "Page down"})


@dataclass(frozen=True)
class KeyAction:
    """A command of a screen."""

    binding: Binding
    keys: tuple[str, ...]
    """The keys as displayed."""
    words: str
    node: DOMNode
    """The screen, widget or app with the action."""

    @property
    def area(self) -> str:
        """The action's area, for a heading."""
        if self.binding.description in _MOVES:
            return MOVING
        prefix = (self.binding.id or "").partition(".")[0]
        return AREAS.get(prefix, prefix.capitalize())


def actions_of(screen: Screen[object]) -> list[KeyAction]:
    """Return the available commands of `screen`, by area; movement comes last."""
    found: dict[str, KeyAction] = {}
    for active in screen.active_bindings.values():
        binding = active.binding
        if not binding.id or not active.enabled:
            continue
        before = found[binding.id].keys if binding.id in found else ()
        shown = screen.app.get_key_display(binding)
        keys = before if shown in before else (*before, shown)
        words = active.tooltip or binding.description
        found[binding.id] = KeyAction(binding, keys, words, active.node)
    others = sorted({action.area for action in found.values()} - {MOVING})
    order = [*AREAS.values(), *others, MOVING]
    return sorted(found.values(), key=lambda action: order.index(action.area))


_LATER = {AREAS["page"]: 1, MOVING: 2}  # global commands are below those of a screen or pane


def nearest_first(actions: Iterable[KeyAction]) -> list[KeyAction]:
    """Return actions in the order of the focused pane, the screen, then the app."""
    return sorted(actions, key=lambda action: (_distance(action), _LATER.get(action.area, 0)))


def _distance(action: KeyAction) -> int:
    prefix = (action.binding.id or "").partition(".")[0]
    if isinstance(action.node, App) or prefix in ("app", "go"):
        return 2
    return 1 if isinstance(action.node, Screen) else 0


@dataclass(frozen=True)
class PaletteCommand:
    """A line of the palette."""

    name: str
    keys: str
    words: str
    run: Callable[[], object]
    area: str = ""
    also: str = ""
    """Other words that find it."""

    def titled(self, name: Content, width: int) -> Content:
        """Return a line of `width` cells: `name`, the description, and the keys at the end."""
        name = name.pad_right(max(2, NAMES - name.cell_length))
        room = max(0, width - name.cell_length - len(self.keys) - 2)
        words = (styled.fit(self.words, room), "not bold dim")
        return Content.assemble(name, words, "  ", (self.keys, "$text-accent"))


Entry = TypeVar("Entry", KeyAction, PaletteCommand)


def by_area(actions: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Return the actions of each area."""
    areas: dict[str, list[Entry]] = {}
    for action in actions:
        areas.setdefault(action.area, []).append(action)
    return areas


def other_words() -> dict[str, str]:
    """Return other words for actions, by the ids of their bindings."""
    import yaml

    text = Path(__file__).with_name("palette_words.yaml").read_text(encoding="utf-8")
    words: dict[str, str] = yaml.safe_load(text)
    return words


class Actions(Provider):
    """The palette's commands: the actions of the screen below with their keys, then the app's."""

    @property
    def _width(self) -> int:
        return min(WIDE, self.app.size.width) - _AROUND

    def _commands(self) -> list[PaletteCommand]:
        found = [
            PaletteCommand(
                action.binding.description,
                " ".join(action.keys),
                action.words,
                partial(self.app.run_action, action.binding.action, action.node),
                action.area,
                self._also.get(action.binding.id or "", ""),
            )
            for action in actions_of(self.screen)
            if action.area != MOVING and action.binding.action != "command_palette"
        ]
        system = self.app.get_system_commands(self.screen)
        own = AREAS["app"]
        found += [PaletteCommand(one.title, "", one.help, one.callback, own) for one in system]
        return [command for commands in by_area(found).values() for command in commands]

    async def startup(self) -> None:
        """Read the names of runs, sites and local job files that the palette can open."""
        from lumitui.app.runs import files_here

        self._also = other_words()
        app = tui(self.screen)
        self._places = [
            PaletteCommand(path.name, "", "Open the job file", partial(app.open_job, path))
            for path in files_here(Path.cwd())[0]
        ]
        self._places += [
            PaletteCommand(name, "", "Show nodes, queue and budget of the site",
                           partial(app.open_cluster, name))
            for name in app.runs.sites.names()
        ]  # fmt: skip
        with suppress(LumiError):  # the list of runs shows the history's error
            self._places += [
                PaletteCommand(run.id, "", f"Open the run: {run.state} at {run.site}",
                               partial(app.open_run, run.id))
                for run in app.runs.history.page(limit=MOST_RUNS)
            ]  # fmt: skip

    async def discover(self) -> Hits:
        """Yield all commands, before the user types anything."""
        for command in self._commands():
            title = command.titled(Content(command.name), self._width)
            yield DiscoveryHit(title, command.run, text=command.area)

    async def search(self, query: str) -> Hits:
        """Yield commands with a name like `query`, or with all its words in their descriptions."""
        matcher = self.matcher(query)
        for command in (*self._commands(), *self._places):
            said = (command.name, command.words, command.keys, command.also)
            sentence = " ".join(said).casefold()
            score = matcher.match(command.name)
            if all(word in sentence for word in query.casefold().split()):
                score = max(score, 0.5)
            if score > 0:
                title = command.titled(matcher.highlight(command.name), self._width)
                yield Hit(score, title, command.run, text=command.name)


class PaletteInput(CommandInput):
    """The input line, whose keys the footer shows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Run", tooltip="Run the chosen command"),
        Binding("escape", "screen.escape", "Close", tooltip="Close the palette"),
    ]


class Palette(CommandPalette):
    """Textual's palette in a frame, with headings."""

    def compose(self) -> ComposeResult:
        """Yield the keys, the input line and the commands."""
        yield footer()
        with Vertical(id="--container") as frame:
            frame.border_title = "Commands"
            with Horizontal(id="--input"):
                yield PaletteInput(placeholder=self._placeholder, select_on_focus=False)
            with Vertical(id="--results"):
                yield CommandList()
                yield LoadingIndicator()

    def _refresh_command_list(
        self, command_list: CommandList, commands: list[Command], clear_current: bool
    ) -> None:
        """Show the commands; group them by area until the user types something."""
        super()._refresh_command_list(command_list, commands, clear_current)
        if commands and isinstance(commands[0].hit, DiscoveryHit):
            options: list[Option] = []
            for area, group in groupby(commands, key=lambda command: command.hit.text):
                title = Content.styled(f"\n{area}", "bold $text-accent")
                options += [Option(title, disabled=True), *group]
            command_list.clear_options().add_options(options)
            command_list.highlighted = 1
