"""What is done to the marked runs, or to the one under the cursor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from lumitui.app.tui.messages.common import Answer

if TYPE_CHECKING:
    from lumitui.remote.site.errors import LumiError


@dataclass(eq=False, repr=False)
class CancelManyWanted(Message):
    """Cancel several runs, after asking once."""

    run_ids: tuple[str, ...]


@dataclass(eq=False, repr=False)
class ManyCancelled(Answer, bubble=False):
    """The cancels are over."""

    wanted: tuple[str, ...]
    run_ids: tuple[str, ...]
    """Those whose jobs were cancelled."""
    failed: tuple[tuple[str, LumiError], ...] = ()
    """Those that were not, and why."""
    warnings: tuple[str, ...] = ()


@dataclass(eq=False, repr=False)
class TagsWanted(Message):
    """Add words as tags to runs, or remove those that begin with `-`."""

    run_ids: tuple[str, ...]
    words: str


@dataclass(eq=False, repr=False)
class NoteWanted(Message):
    """Save the note of a run."""

    run_id: str
    note: str


@dataclass(eq=False, repr=False)
class FetchWanted(Message):
    """Copy the results of runs to a folder of the laptop."""

    run_ids: tuple[str, ...]
    target: str
    """Of one run its own folder, of several the one that gets a folder for each."""


@dataclass(eq=False, repr=False)
class RunFetched(Answer, bubble=False):
    """The results of a run have been copied."""

    words: str
