"""The files of a run's folder: listed, previewed, fetched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message
from textual.message_pump import MessagePump

from lumitui.app.tui.messages.common import Answer

if TYPE_CHECKING:
    from pathlib import Path

    from lumitui.app.follow.results.listed_files import FileList, Preview


@dataclass(eq=False, repr=False)
class FilesWanted(Message):
    """List the files of a run's folder; the site is asked."""

    reply_to: MessagePump
    run_id: str


@dataclass(eq=False, repr=False)
class FilesFound(Answer, bubble=False):
    """The files of a run's folder; None: it failed, and the error is shown."""

    found: FileList | None


@dataclass(eq=False, repr=False)
class FileWanted(Message):
    """Read the beginning of a file of a run's folder; the site is asked."""

    reply_to: MessagePump
    run_id: str
    name: str


@dataclass(eq=False, repr=False)
class FileRead(Answer, bubble=False):
    """The beginning of a file; None: it failed, and the error is shown."""

    preview: Preview | None


@dataclass(eq=False, repr=False)
class FileFetchWanted(Message):
    """Fetch a file of a run's folder into the folder `target`."""

    reply_to: MessagePump
    run_id: str
    name: str
    target: Path


@dataclass(eq=False, repr=False)
class FileFetchEnded(Answer, bubble=False):
    """A fetch is over; without a path it failed, and the error is shown."""

    name: str
    path: Path | None
