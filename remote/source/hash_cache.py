"""Results of earlier scans of a project's files: hashes, and positions of possible keys.

An entry is valid while stat shows no change: a file is not read again if its size, inode and times
are the same. As in git, a file written shortly before it was read is not trusted, because it may
have been written again within the same clock tick ("racily clean"). The cache only saves time: it
is ignored if it is damaged or another user could have written it.
"""

import contextlib
import json
import os
import re
import secrets
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from lumitui.remote.site.secret_shapes import RULES_ID, KeyMark, is_shape

_RACY_NS = 2_000_000_000
"""Clock tick in seconds: FAT has the coarsest, 2 s; ext4 and APFS use the kernel's, 4 ms."""
_VERSION = 2
_SHA256 = re.compile(r"[0-9a-f]{64}")

_State = list[int]


@dataclass(frozen=True)
class FileContent:
    """The contents of a file."""

    sha256: str
    marks: tuple[KeyMark, ...] = ()
    """The positions of possible keys."""


class Hashes:
    """The cached contents of one project's files."""

    def __init__(self, path: Path, root: Path) -> None:
        """Read the cache at `path`, if it is for the files below `root`."""
        self._path, self._root = path, str(root)
        self._began = time.time_ns()
        self._known = _read(path, self._root)
        self._kept: dict[str, tuple[_State, FileContent]] = {}

    def known(self, path: str, info: os.stat_result) -> FileContent | None:
        """Return the contents of the file at `path`; None if it has changed or is unknown."""
        entry = self._known.get(path)
        if entry is None or entry[0] != _state(info):
            return None
        self._kept[path] = entry
        return entry[1]

    def keep(self, path: str, info: os.stat_result, contents: FileContent) -> None:
        """Store the contents of a file whose stat was `info` before and after reading it."""
        if max(info.st_mtime_ns, info.st_ctime_ns) < self._began - _RACY_NS:
            self._kept[path] = (_state(info), contents)

    def save(self) -> None:
        """Write the scan's results, unless the cache already has them."""
        if self._kept == self._known:
            return
        files = {path: _row(state, kept) for path, (state, kept) in self._kept.items()}
        content = {"version": _VERSION, "shapes": RULES_ID, "root": self._root, "files": files}
        aside = self._path.with_name(f"{self._path.name}.{secrets.token_hex(4)}")
        # A cache that cannot be written costs only time.
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(file, "w", encoding="utf-8") as out:
                    json.dump(content, out)
                aside.replace(self._path)
            finally:
                aside.unlink(missing_ok=True)


def _state(info: os.stat_result) -> _State:
    return [info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns]


def _row(state: _State, content: FileContent) -> list[object]:
    return [*state, content.sha256, *([mark.shape, mark.line] for mark in content.marks)]


def _read(path: Path, root: str) -> dict[str, tuple[_State, FileContent]]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o077:
                return {}
            content = json.loads(file.read())
        if (content["version"], content["root"]) != (_VERSION, root):
            return {}
        if content["shapes"] != RULES_ID:  # another version searched for other shapes
            return {}
        return {
            name: (row[:5], FileContent(row[5], tuple(KeyMark(*mark) for mark in row[6:])))
            for name, row in content["files"].items()
            if _is_row(row)
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _is_row(row: object) -> bool:
    return (
        isinstance(row, list)
        and len(row) >= 6
        and all(type(number) is int for number in row[:5])
        and isinstance(row[5], str)
        and _SHA256.fullmatch(row[5]) is not None
        and all(map(_is_mark, row[6:]))
    )


def _is_mark(mark: object) -> bool:
    return (
        isinstance(mark, list)
        and len(mark) == 2
        and isinstance(mark[0], str)
        and is_shape(mark[0])
        and type(mark[1]) is int
    )
