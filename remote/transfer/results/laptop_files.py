"""The local side of a fetch: names, partial files, and targets.

A file is first written as a part, which is kept if the link is cut, and removed at the end of a
fetch. Parts are in one folder below the target, under the hash of the file's name, so that killed
fetches leave only one part per file, long names fit, and the next fetch finds the part. A part is
locked while it is written (the system releases the lock of a killed process), so nobody removes or
resumes the part of a running fetch. No file is written through a link that leads out of the target.
"""

import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import unicodedata
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lumitui.remote.site.errors import LumiError

LONGEST_NAME = 4096
"""Maximum bytes of a path (Linux's PATH_MAX), and so of a file's name on the site."""
LONGEST_PART = 255
"""Maximum bytes of one path component (NAME_MAX of ext4, XFS, Lustre, APFS and others)."""
MOST_PARTS = 128
"""Maximum number of folders above a file: a training run's results are at most five deep."""
RESERVED = ".lumitui-fetch"
"""The folder of partly fetched files, below the target of a fetch."""
_SHOWN = 60


class NameFault(ValueError):
    """Why a file with this name cannot be fetched, as the end of a sentence."""


def name_of(path: bytes) -> str:
    """Return the shortest form of a `path` below the folder that begins with `./`.

    Raises:
        NameFault: the name is too long, is not UTF-8, or leads out of the folder.
    """
    if len(path) > LONGEST_NAME:
        raise NameFault(f"its name is longer than {LONGEST_NAME:,} bytes")
    parts = [part for part in path.split(b"/") if part not in (b"", b".")]
    if not path.startswith(b"./") or b".." in parts or not parts:
        raise NameFault("its name points outside the run's folder")
    if path.endswith(b"/"):
        raise NameFault("it has the name of a folder")
    if len(parts) > MOST_PARTS:
        raise NameFault(f"it is more than {MOST_PARTS} folders deep")
    if max(map(len, parts)) > LONGEST_PART:
        raise NameFault(f"a part of its name is longer than {LONGEST_PART} bytes")
    if parts[0].lower() == RESERVED.encode():
        raise NameFault("lumitui stores partial downloads under that name")
    try:
        return b"/".join(parts).decode()
    except UnicodeDecodeError:
        raise NameFault("its name is not UTF-8") from None


def shown(path: bytes | str) -> str:
    """Return a name for a message: without `./`, and shortened in the middle if long."""
    raw = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
    text = raw.removeprefix(b"./")
    if len(text) > 4 * _SHOWN:
        text = text[:_SHOWN] + b"..." + text[-_SHOWN:]
    return text.decode("utf-8", "surrogateescape")


CHUNK = 1 << 18


class PartialFile:
    """One file being written, which belongs to this process until it is closed."""

    def __init__(self, descriptor: int, path: Path) -> None:
        """Open the part; keep the bytes of a cut fetch."""
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
        """Return the SHA-256 of the written bytes."""
        return self._sum.hexdigest()

    def restart(self) -> None:
        """Drop the written bytes."""
        self._file.seek(0)
        self._file.truncate()
        self._sum, self.size = hashlib.sha256(), 0

    def write(self, piece: bytes | memoryview) -> None:
        """Append `piece`; raises the disk's OSError."""
        self._file.write(piece)
        self._sum.update(piece)
        self.size += len(piece)

    def put(self, path: Path) -> None:
        """Rename the part to `path`; raises OSError if that name is taken."""
        self._file.flush()
        os.replace(self.path, path)
        self._file.close()

    def keep(self) -> None:
        """Keep the part for the next fetch."""
        with suppress(OSError):  # on a full disk, the last piece is lost, but the rest is usable
            self._file.close()

    def discard(self) -> None:
        """Remove the part."""
        self.path.unlink(missing_ok=True)
        self.keep()


class PartialFiles:
    """The folder of parts below one target."""

    def __init__(self, target: Path) -> None:
        self.folder = target / RESERVED

    def size(self, name: str) -> int:
        """Return the size of the part of `name`."""
        with suppress(OSError):
            return (self.folder / _key(name)).stat().st_size
        return 0

    def open(self, name: str) -> PartialFile:
        """Return the part of `name`, or a new part if another fetch is writing it."""
        own = f"{_key(name)[:-5]}-{secrets.token_hex(4)}.part"
        for number, key in enumerate((_key(name), _key(name), own, own)):
            try:
                descriptor = os.open(
                    self.folder / key, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600
                )
            except FileNotFoundError:  # another fetch may have just removed the folder
                if number == 3:
                    raise
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                continue
            # On a disk without locks, parts are neither resumed nor removed.
            if _locked(descriptor, self.folder / key) or number == 3:
                return PartialFile(descriptor, self.folder / key)
            os.close(descriptor)
        raise AssertionError("the last round returns or raises")

    def sweep(self, names: Collection[str] = ()) -> None:
        """Remove unused parts except those of `names`, and the folder if it is empty.

        Raises no OSError, because it must not end a fetch.
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
    """Lock an open file; return False if another process has it, or it is no longer at `path`."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


KEPT_FREE = 64 << 20
"""Bytes of the local disk that a fetch leaves free for the history and the system."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


class PlaceFault(Exception):
    """Why a file cannot be written here, as the end of a sentence."""


class FetchTargets:
    """The target paths of fetched files."""

    def __init__(self, target: Path) -> None:
        """Create the target folder; LumiError if that fails."""
        self.target = target
        try:
            target.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._real = Path(os.path.realpath(target))
        except OSError as error:
            raise LumiError(
                f"{target} cannot be created: {error.strerror}.", "Choose another folder with --to."
            ) from error
        self._checked = set[str]()
        self._one_case: dict[str, str] = {}

    def free(self) -> int:
        """Return the number of bytes that may still be written."""
        try:
            return max(0, shutil.disk_usage(self.target).free - KEPT_FREE)
        except OSError as error:
            raise LumiError(f"{self.target} cannot be read: {error.strerror}.") from error

    def check(self, name: str) -> None:
        """Raise PlaceFault if `name` cannot be written below the target; change nothing."""
        folder = name.rpartition("/")[0]
        if folder not in self._checked:
            for at in _folders(name):
                if not self._stands(at):
                    break
            self._checked.add(folder)
        if stat.S_ISDIR(self._mode(name)):
            raise PlaceFault("a folder with that name exists here")

    def put(self, part: PartialFile, name: str) -> Path:
        """Rename `part` to the file `name` and return its path.

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
        """Return whether a file with this content already exists."""
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
        """Return the bytes of the file `name`, or None."""
        try:
            info = (self.target / name).stat()
        except OSError:
            return None
        return info.st_size if stat.S_ISREG(info.st_mode) else None

    def copied(self, name: str, parts: PartialFiles, twin: str) -> PartialFile:
        """Return a part for `twin` with a copy of the file `name`.

        Raises:
            PlaceFault: the copy cannot be read or written.
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
        """Raise PlaceFault if the disk treats `name` as another existing file.

        A disk like macOS's ignores case and normalizes composed characters.
        """
        other = self._one_case.setdefault(_folded(name), name)
        if other != name and self._mode(name):
            first, second = (os.lstat(self.target / path) for path in (other, name))
            if os.path.samestat(first, second):
                raise PlaceFault(f"this disk cannot distinguish its name from {other}")

    def _stands(self, folder: str) -> bool:
        """Return whether the folder exists; raises PlaceFault if something else is in its place."""
        mode = self._mode(folder)
        if stat.S_ISLNK(mode):
            real = Path(os.path.realpath(self.target / folder))
            if not real.is_relative_to(self._real):
                raise PlaceFault(f"{folder} is a link here that points outside {self.target}")
            if real.is_dir():
                return True
        elif not mode or stat.S_ISDIR(mode):
            return bool(mode)
        raise PlaceFault(f"{folder} is not a folder here")

    def _mode(self, name: str) -> int:
        """Return the mode of `name`, or 0 if it does not exist."""
        try:
            return os.lstat(self.target / name).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return 0
        except OSError as error:
            raise PlaceFault(why(error)) from error


def why(error: OSError) -> str:
    """Return why a file cannot be written, as a sentence's end; LumiError if the disk is full."""
    if error.errno in _FULL:
        raise LumiError(
            f"This machine's disk is full: {error.strerror}.",
            "Free some space and fetch again: lumitui keeps complete files.",
        ) from error
    return f"it cannot be written on this machine: {error.strerror or error}"


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PlaceFault(why(error)) from error


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _folders(name: str) -> Iterator[str]:
    """Yield the folders above `name`, outermost first."""
    parts = name.split("/")
    for count in range(1, len(parts)):
        yield "/".join(parts[:count])
