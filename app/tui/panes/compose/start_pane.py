"""The starting points of a job file: a local file, a run's job file, an example."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar, Literal

from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from lumitui.app.explain import words
from lumitui.app.runs import NODE_PROBE, Run, examples, files_here
from lumitui.app.tui.widgets.styled import plain

Beginning = Literal["file", "script", "example", "run"]
"""A starting point of a draft."""
_FEW = 5  # number of newest runs that precede the examples; the others follow them
_QUIT = "q"  # the only letter that keeps its binding on the list
_PATH = "./~_-"  # characters besides letters that may begin a path; digits open other screens
_RUN, _EXAMPLE, _SCRIPT = "run:", "example:", "script:"


class StartList(OptionList):
    """The starting points, in groups; letters go to the path instead."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "Begin", id="start.open", tooltip="Begin with this")
    ]

    def __init__(self, write: Callable[[str], None]) -> None:
        """Start empty; `write` receives typed text immediately and in order."""
        super().__init__(id="files", classes="frame", compact=True, markup=False)
        self.border_title = "Start from"
        self._write = write
        self.opening = False
        """Whether a starting point is loading: keys are then meant for the result."""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Return whether the key begins a path, so that the screen's bindings ignore it."""
        if self.opening or character is None or len(character) != 1:
            return False
        return character != _QUIT and (character.isalpha() or character in _PATH)

    def on_key(self, event: events.Key) -> None:
        """Write the first letter of a path into the path field."""
        if self.check_consume_key(event.key, event.character):
            event.stop().prevent_default()
            self._write(event.character or "")

    def on_paste(self, event: events.Paste) -> None:
        """Write a pasted path into the path field."""
        if event.text.strip() and not self.opening:
            event.stop().prevent_default()
            self._write(event.text.strip().splitlines()[0])

    def offer(self, folder: Path, runs: list[Run]) -> None:
        """Offer the scripts and job files of `folder`, the job files of `runs`, the examples."""
        self.clear_options()
        self.add_options(self._beginnings(*files_here(folder), runs))
        first = (at for at, option in enumerate(self.options) if not option.disabled)
        self.highlighted = next(first, None)

    def _beginnings(
        self, files: list[Path], scripts: list[Path], runs: list[Run]
    ) -> Iterator[Option]:
        if scripts:
            yield Option(plain("Your scripts here", "bold"), disabled=True)
        for path in scripts:
            what = "a job that runs it" if path.suffix == ".py" else "imported as a job file"
            yield Option(plain(f"  {path.name:<19} {what}"), id=f"{_SCRIPT}{path}")
        if files:
            yield Option(plain("A job file here", "bold"), disabled=True)
        for path in files:
            yield Option(plain(f"  {path.name}"), id=str(path))
        own = [run for run in runs if run.name != NODE_PROBE]
        yield from _previous("A previous run, with other settings", own[:_FEW])
        group = ""
        for example in examples.examples().values():
            if example.group != group:
                group = example.group
                yield Option(plain(f"An example: {group}", "bold"), disabled=True)
            line = f"  {example.name:<20}{example.summary}"
            yield Option(plain(line), id=f"{_EXAMPLE}{example.name}")
        yield from _previous("An older run, with other settings", own[_FEW:])


def _previous(title: str, runs: list[Run]) -> Iterator[Option]:
    if runs:
        yield Option(plain(title, "bold"), disabled=True)
    for run in runs:
        about = f"{run.state}, {words.layout_size(run.layout)} at {run.site}"
        yield Option(plain(f"  {run.id}  {about}"), id=f"{_RUN}{run.id}")


def beginning(option: str) -> tuple[Beginning, str]:
    """Return the starting point of an option."""
    kinds: dict[str, Beginning] = {_RUN: "run", _EXAMPLE: "example", _SCRIPT: "script"}
    for prefix, kind in kinds.items():
        if option.startswith(prefix):
            return kind, option.removeprefix(prefix)
    return "file", option
