"""What was read of logs, kept on the laptop: read again without a link, bounded, oldest go first.

Each attempt's parts are files named by the byte at which they begin. A log only grows, so a part
is right for ever; two programs that write the same part write the same bytes in the same place.
"""

import contextlib
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PART = 262_144
"""Bytes after which a new part is begun."""
MOST_OF_RUN = 32 << 20
"""Bytes that are kept of one run."""
MOST = 512 << 20
"""Bytes that are kept of all runs."""
_BETWEEN = 1 << 20
"""Bytes that are written between two looks at the limits."""
_RUN = re.compile(r"[A-Za-z0-9][\w.-]{0,200}")
_NAME = re.compile(r"(\d{1,6})-(\d{1,18})\.part")


class LogPart(NamedTuple):
    """A file with a part of a log."""

    attempt: int
    start: int
    size: int
    written: float
    """Epoch seconds."""
    path: Path


class KeptLogs:
    """The parts of all logs below one folder. Threads may share it."""

    def __init__(
        self, folder: Path, *, run_bytes: int = MOST_OF_RUN, all_bytes: int = MOST
    ) -> None:
        """Keep parts below `folder`, at most so many bytes of each run and of all."""
        self._folder, self._run_bytes, self._all_bytes = folder, run_bytes, all_bytes
        self._lock = threading.Lock()
        self._unswept = _BETWEEN

    def keep(self, run_id: str, attempt: int, start: int, data: bytes) -> None:
        """Keep bytes of a log; a disk that is full or read-only keeps none, which loses nothing."""
        if not data or not _RUN.fullmatch(run_id):
            return
        with self._lock, contextlib.suppress(OSError):
            folder = self._folder / run_id
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            open_part = next(
                (
                    part
                    for part in self._parts(folder)
                    if part.attempt == attempt
                    and part.start <= start <= part.start + part.size
                    and start - part.start < PART
                ),
                None,
            )
            begin = open_part.start if open_part else start
            path = folder / f"{attempt}-{begin}.part"
            flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            file = os.open(path, flags, 0o600)
            try:
                os.pwrite(file, data, start - begin)
            finally:
                os.close(file)
            self._unswept += len(data)
            if self._unswept > _BETWEEN:
                self._unswept = 0
                self._sweep()

    def read(self, run_id: str, attempt: int, start: int, length: int) -> bytes:
        """Return what is kept from byte `start` on, at most `length` bytes without a gap."""
        data = b""
        with contextlib.suppress(OSError):
            parts = sorted(self.parts(run_id, attempt), key=lambda part: part.start)
            for part in parts:
                at = start + len(data)
                if part.start <= at < part.start + part.size and len(data) < length:
                    with part.path.open("rb") as file:
                        file.seek(at - part.start)
                        data += file.read(length - len(data))
        return data

    def parts(self, run_id: str, attempt: int | None = None) -> list[LogPart]:
        """Return the parts that are kept of a run's logs; None: of all attempts."""
        if not _RUN.fullmatch(run_id):
            return []
        parts = self._parts(self._folder / run_id)
        return [part for part in parts if attempt in (None, part.attempt)]

    def last(self, run_id: str, attempt: int, length: int) -> tuple[int, bytes, float] | None:
        """Return where the last bytes that are kept begin, the bytes, and when they were read."""
        parts = self.parts(run_id, attempt)
        if not parts:
            return None
        end = max(part.start + part.size for part in parts)
        first = end
        for part in sorted(parts, key=lambda part: -part.start):  # backwards, as far as they join
            if part.start + part.size >= first:
                first = min(first, part.start)
        start = max(first, end - length)
        return start, self.read(run_id, attempt, start, length), max(p.written for p in parts)

    @staticmethod
    def _parts(folder: Path) -> Iterator[LogPart]:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if match := _NAME.fullmatch(entry.name):
                    stat = entry.stat(follow_symlinks=False)
                    yield LogPart(
                        int(match[1]), int(match[2]), stat.st_size, stat.st_mtime, Path(entry.path)
                    )

    def _sweep(self) -> None:
        """Remove the oldest parts beyond the limits."""
        rest: list[LogPart] = []
        for folder in self._folder.iterdir():
            rest += _within(list(self._parts(folder)), self._run_bytes)
        _within(rest, self._all_bytes)
        for folder in self._folder.iterdir():
            with contextlib.suppress(OSError):  # it has parts
                folder.rmdir()


def _within(parts: list[LogPart], most: int) -> list[LogPart]:
    """Return the newest of `parts` that have at most `most` bytes; remove the others."""
    kept, size = [], 0
    for part in sorted(parts, key=lambda part: -part.written):
        size += part.size
        if size <= most:
            kept.append(part)
        else:
            part.path.unlink(missing_ok=True)
    return kept
