"""Files that are read at any place, by this process and those forked from it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import FileIO
from pathlib import Path
from threading import Lock

from data.samples import BadData

MOST = 256
"""Files that are open at a time; a process may have 1024."""


class OpenFiles:
    """Reads parts of many files by their numbers.

    With pread, not with a memory map: a file that was cut short, or a disk that fails, is an error
    with the file's name, where a map kills the process. On cached files both are as fast, and a
    parallel file system gets one request a sample instead of one a page.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Know the files; each is opened when it is read first."""
        self.paths = list(paths)
        self._open: dict[int, FileIO] = {}
        self._opening = Lock()

    def read_into(self, number: int, offset: int, into: memoryview) -> None:
        """Fill `into` from this offset on.

        Raises:
            BadData: the file can't be read, or ends before.
        """
        path = self.paths[number]
        try:
            file = self._file(number)
            while into:
                got = os.preadv(file.fileno(), [into], offset)
                if not got:
                    raise BadData(f"{path} is cut short: it ends at byte {offset}. Copy it again.")
                into, offset = into[got:], offset + got
        except OSError as error:
            raise BadData(
                f"{path} can't be read ({error.strerror}). Copy it again, or pack it again."
            ) from error

    def read(self, number: int, offset: int, length: int) -> bytearray:
        """Read that many bytes from this offset on.

        Raises:
            BadData: the file can't be read, or ends before.
        """
        found = bytearray(length)
        self.read_into(number, offset, memoryview(found))
        return found

    def size(self, number: int) -> int:
        """How many bytes a file has.

        Raises:
            BadData: there is no such file.
        """
        try:
            return self.paths[number].stat().st_size
        except OSError as error:
            raise BadData(
                f"{self.paths[number]} can't be read ({error.strerror}). Copy it again."
            ) from error

    def _file(self, number: int) -> FileIO:
        # A file's position is never used, so threads and forked processes may share it. One that
        # another thread still reads is closed when that has its bytes: it holds on to the file.
        with self._opening:
            if number not in self._open:
                if len(self._open) >= MOST:
                    del self._open[next(iter(self._open))]
                self._open[number] = FileIO(self.paths[number])
            return self._open[number]
