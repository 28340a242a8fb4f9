"""The list of a run's sent files, identified by its hash. Pure."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from lumitui.remote.site.errors import InputError


@dataclass(frozen=True)
class ManifestEntry:
    """One file or symbolic link."""

    path: str
    """POSIX path below the project's root."""
    size: int
    """Bytes; 0 for a link."""
    executable: bool
    sha256: str
    """Hex digest of the content; empty for a link."""
    target: str | None = None
    """A link's target, relative and inside the project; None for a file."""


@dataclass(frozen=True)
class Manifest:
    """All entries, sorted by path: one state of the code."""

    entries: tuple[ManifestEntry, ...]

    @property
    def files(self) -> Iterator[ManifestEntry]:
        """The entries that are files."""
        return (entry for entry in self.entries if entry.target is None)

    @cached_property
    def text(self) -> str:
        """The canonical form: one JSON list per line; `parse` reads it."""
        return "".join(json.dumps(list(vars(entry).values())) + "\n" for entry in self.entries)

    @cached_property
    def id(self) -> str:
        """24 hex characters that identify exactly these files."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:24]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.entries)

    def checksum_text(self) -> str:
        """Return the files in the format of `sha256sum -c`.

        A backslash in a name is doubled, and such a line begins with a backslash (GNU coreutils
        manual, "md5sum invocation").
        """
        lines = []
        for entry in self.files:
            mark = "\\" if "\\" in entry.path else ""
            name = entry.path.replace("\\", "\\\\")
            lines.append(f"{mark}{entry.sha256}  ./{name}\n")
        return "".join(lines)

    @staticmethod
    def parse(text: str) -> "Manifest":
        """Return the manifest that `text` describes; InputError unless it is of `Manifest.text`."""
        try:
            entries = tuple(ManifestEntry(*json.loads(line)) for line in text.splitlines())
        except (ValueError, TypeError) as error:
            raise InputError("A stored list of sent files cannot be read.", "") from error
        return Manifest(entries)
