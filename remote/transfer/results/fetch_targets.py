"""Where fetched files go on the laptop: below the target, never through a link that leads out."""

import errno
import hashlib
import os
import shutil
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lumitui.remote.site.errors import LumiError
from lumitui.remote.transfer.results.partial_files import CHUNK, PartialFile, PartialFiles

KEPT_FREE = 64 << 20
"""Bytes of the laptop's disk that a fetch leaves free, for the history and the system."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


class PlaceFault(Exception):
    """Why a file cannot be put in its place, as the end of a sentence."""


class FetchTargets:
    """The places of files below the folder that they are brought to."""

    def __init__(self, target: Path) -> None:
        """Make the folder.

        Raises:
            LumiError: it cannot be made.
        """
        self.target = target
        try:
            target.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._real = Path(os.path.realpath(target))
        except OSError as error:
            raise LumiError(
                f"{target} cannot be made: {error.strerror}.", "Choose another folder with --to."
            ) from error
        self._checked = set[str]()
        self._one_case: dict[str, str] = {}

    def free(self) -> int:
        """Return the bytes that may still be written here."""
        try:
            return max(0, shutil.disk_usage(self.target).free - KEPT_FREE)
        except OSError as error:
            raise LumiError(f"{self.target} cannot be read: {error.strerror}.") from error

    def check(self, name: str) -> None:
        """Raise PlaceFault when `name` cannot be put below the target; change nothing."""
        folder = name.rpartition("/")[0]
        if folder not in self._checked:
            for at in _folders(name):
                if not self._stands(at):
                    break
            self._checked.add(folder)
        if stat.S_ISDIR(self._mode(name)):
            raise PlaceFault("a folder of that name is here")

    def put(self, part: PartialFile, name: str) -> Path:
        """Make `part` the file `name`, and return its path.

        Raises:
            PlaceFault: something else is in its place.
            LumiError: the disk is full.
        """
        try:
            with _faults():
                for at in _folders(name):
                    if not self._stands(at):
                        (self.target / at).mkdir(mode=0o700)
                self._check_case(name)
                part.put(self.target / name)
        except BaseException:
            part.discard()
            raise
        return self.target / name

    def holds(self, name: str, size: int, digest: str) -> bool:
        """Whether a file of that content is here already."""
        path = self.target / name
        try:
            info = path.stat()
            if not stat.S_ISREG(info.st_mode) or info.st_size != size:
                return False
            with open(path, "rb") as file:
                own = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return False
        if own == digest:
            self._one_case.setdefault(_folded(name), name)
        return own == digest

    def size(self, name: str) -> int | None:
        """Return the bytes of the file `name`; None when there is none."""
        try:
            info = (self.target / name).stat()
        except OSError:
            return None
        return info.st_size if stat.S_ISREG(info.st_mode) else None

    def copied(self, name: str, parts: PartialFiles, twin: str) -> PartialFile:
        """Return a part of `twin` with the content of the file `name`.

        Raises:
            PlaceFault: it cannot be read or written.
            LumiError: the disk is full.
        """
        with _faults():
            part = parts.open(twin)
            try:
                part.restart()
                with open(self.target / name, "rb") as file:
                    while piece := file.read(CHUNK):
                        part.write(piece)
            except BaseException:
                part.discard()
                raise
        return part

    def _check_case(self, name: str) -> None:
        """Raise PlaceFault when the disk takes `name` for another file that is here already.

        A disk like macOS's ignores case and keeps one form of composed characters.
        """
        other = self._one_case.setdefault(_folded(name), name)
        if other != name and self._mode(name):
            first, second = (os.lstat(self.target / path) for path in (other, name))
            if os.path.samestat(first, second):
                raise PlaceFault(f"this disk takes its name for that of {other}")

    def _stands(self, folder: str) -> bool:
        """Whether the folder is there; PlaceFault when something else is."""
        mode = self._mode(folder)
        if stat.S_ISLNK(mode):
            real = Path(os.path.realpath(self.target / folder))
            if not real.is_relative_to(self._real):
                raise PlaceFault(f"{folder} is a link here that leads out of {self.target}")
            if real.is_dir():
                return True
        elif not mode or stat.S_ISDIR(mode):
            return bool(mode)
        raise PlaceFault(f"{folder} is not a folder here")

    def _mode(self, name: str) -> int:
        """Return the mode of what is at `name`; 0 when nothing is."""
        try:
            return os.lstat(self.target / name).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return 0
        except OSError as error:
            raise PlaceFault(why(error)) from error


def why(error: OSError) -> str:
    """Return why a file cannot be written here, as the end of a sentence.

    Raises:
        LumiError: the disk is full, so that no other file can be written either.
    """
    if error.errno in _FULL:
        raise LumiError(
            f"The disk here is full: {error.strerror}.",
            "Free space and fetch again: whole files stay.",
        ) from error
    return f"it cannot be written here: {error.strerror or error}"


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PlaceFault(why(error)) from error


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _folders(name: str) -> Iterator[str]:
    """Yield the folders above `name`, the highest first."""
    parts = name.split("/")
    for count in range(1, len(parts)):
        yield "/".join(parts[:count])
