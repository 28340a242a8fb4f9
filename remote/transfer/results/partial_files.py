"""Files on their way: written under another name, kept when the link is cut, swept when it is over.

A part lies in one folder below the target, under the hash of the file's name: twelve killed fetches
of a file leave one part, the longest name makes none that is too long, and the next fetch finds it.
Each is locked while it is written (the system frees the lock of a killed process), so nobody
sweeps or continues the part of a fetch that runs.
"""

import fcntl
import hashlib
import os
import secrets
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from lumitui.remote.transfer.results.laptop_names import RESERVED

CHUNK = 1 << 18


class PartialFile:
    """One file that is being written; it belongs to this process until it is closed."""

    def __init__(self, descriptor: int, path: Path) -> None:
        """Take what is there already: the beginning of the file, if a fetch was cut."""
        self._file = os.fdopen(descriptor, "r+b")
        self.path = path
        self._sum = hashlib.sha256()
        self.size = 0
        """Bytes written so far."""
        while piece := self._file.read(CHUNK):
            self._sum.update(piece)
            self.size += len(piece)

    @property
    def digest(self) -> str:
        """SHA-256 of what is written so far."""
        return self._sum.hexdigest()

    def restart(self) -> None:
        """Drop what is written."""
        self._file.seek(0)
        self._file.truncate()
        self._sum, self.size = hashlib.sha256(), 0

    def write(self, piece: bytes | memoryview) -> None:
        """Append `piece`; OSError as the disk says."""
        self._file.write(piece)
        self._sum.update(piece)
        self.size += len(piece)

    def put(self, path: Path) -> None:
        """Make it the file at `path`; OSError when something else has that name."""
        self._file.flush()
        os.replace(self.path, path)
        self._file.close()

    def keep(self) -> None:
        """Leave it for the next fetch."""
        with suppress(OSError):  # the disk is full: the last piece is lost, the rest serves
            self._file.close()

    def discard(self) -> None:
        """Remove it."""
        self.path.unlink(missing_ok=True)
        self.keep()


class PartialFiles:
    """The folder of parts below one target."""

    def __init__(self, target: Path) -> None:
        """Make nothing yet."""
        self.folder = target / RESERVED

    def size(self, name: str) -> int:
        """Return the bytes of the part of `name`."""
        with suppress(OSError):
            return (self.folder / _key(name)).stat().st_size
        return 0

    def open(self, name: str) -> PartialFile:
        """Return the part of `name`; a new one when another fetch is writing that one.

        Raises:
            OSError: the disk refuses.
        """
        own = f"{_key(name)[:-5]}-{secrets.token_hex(4)}.part"
        for number, key in enumerate((_key(name), _key(name), own, own)):
            try:
                descriptor = os.open(
                    self.folder / key, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600
                )
            except FileNotFoundError:  # or another fetch has just ended and removed the folder
                if number == 3:
                    raise
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                continue
            # On a disk without locks nothing is continued, and nothing swept.
            if _locked(descriptor, self.folder / key) or number == 3:
                return PartialFile(descriptor, self.folder / key)
            os.close(descriptor)
        raise AssertionError("the last round returns or raises")

    def sweep(self, names: Collection[str] = ()) -> None:
        """Remove parts that nobody writes, but those of `names`; and the folder when it is empty.

        An OSError is not a reason to stop a fetch, so none is raised.
        """
        keys = {_key(name) for name in names}
        with suppress(OSError):
            for path in list(self.folder.glob("*.part")):
                if path.name not in keys:
                    _remove(path)
            self.folder.rmdir()


def _remove(path: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            if _locked(descriptor, path):
                path.unlink()
        finally:
            os.close(descriptor)


def _key(name: str) -> str:
    return f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.part"


def _locked(descriptor: int, path: Path) -> bool:
    """Lock an open file; False when another has it, or when it is no longer the one at `path`."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False
