"""Notes on each part of a script: kept, derived, changed or lost."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from lumitui.remote.site.masked_text import masked


@dataclass(frozen=True)
class ImportNote:
    """A part of the script, and its fate."""

    what: str
    """The part as written, like `--gpu-bind=closest` or `module load PyTorch`."""
    words: str
    """The reason, as a clause without a full stop."""


def safe(items: Iterable[ImportNote]) -> tuple[ImportNote, ...]:
    """Return each item once, without the values of secrets."""
    return tuple(dict.fromkeys(ImportNote(masked(item.what), masked(item.words)) for item in items))


@dataclass
class Notes:
    """The fate of each part of a script, in reading order."""

    kept: list[ImportNote] = field(default_factory=list)
    derived: list[ImportNote] = field(default_factory=list)
    """Parts that lumitui derives, so the job file omits them."""
    changed: list[ImportNote] = field(default_factory=list)
    """Parts with a new value: the old one, an arrow, the new one."""
    lost: list[ImportNote] = field(default_factory=list)
    """Parts that a job file cannot express, for the user to check."""

    def keep(self, what: str, key: str) -> None:
        """Note that a part became a key of the job file."""
        self.kept.append(ImportNote(what, f"`{key}:`"))

    def derive(self, what: str, words: str) -> None:
        """Note that lumitui derives a part."""
        self.derived.append(ImportNote(what, words))

    def change(self, what: str, old: str, new: str) -> None:
        """Note that a part has a new value."""
        self.changed.append(ImportNote(what, f"{old} → {new}"))

    def lose(self, what: str, words: str) -> None:
        """Note that the job file lacks a part."""
        self.lost.append(ImportNote(what, words))
