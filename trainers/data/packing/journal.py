"""What is packed so far: a line for each shard that is whole, so that a killed packing goes on."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from data.formats.shards import JOURNAL, Shard
from data.samples import BadData


class Journal:
    """A file to which each shard is added when it is on disk; locked until it is closed."""

    def __init__(self, folder: Path, plan: str) -> None:
        """Read what there is.

        Args:
            folder: where the shards are.
            plan: says what is being packed: another plan's shards are not mixed with ours.

        Raises:
            BadData: the folder holds another packing, or one that is going on.
        """
        self._file = os.open(folder / JOURNAL, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self.done: dict[str, Shard] = {}
        """The shards that were whole, by their names."""
        try:
            self._lock(folder)
            self._read(folder, plan)
        except BaseException:
            self.close()
            raise

    def _read(self, folder: Path, plan: str) -> None:
        lines = (folder / JOURNAL).read_bytes().split(b"\n")
        cut = lines.pop()  # what follows the last end of line: of a packing that was killed
        if lines and lines[0] != plan.encode():
            raise BadData(
                f"{folder} holds other images already, or these of another --size. Choose another "
                "folder, or remove that one."
            )
        for line in lines[1:]:
            with suppress(ValueError, TypeError):
                shard = Shard(**json.loads(line))
                self.done[shard.file] = shard
        os.truncate(self._file, os.lseek(self._file, -len(cut), os.SEEK_END))
        if not lines:
            self._write(plan)

    def add(self, shard: Shard) -> None:
        """Note a shard that is whole and on disk."""
        self._write(json.dumps(asdict(shard)))
        self.done[shard.file] = shard

    def close(self) -> None:
        """Let others pack into the folder."""
        os.close(self._file)

    def _write(self, line: str) -> None:
        os.write(self._file, line.encode() + b"\n")
        os.fsync(self._file)

    def _lock(self, folder: Path) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BadData(
                f"Another pack.py is writing to {folder}. Wait for it, or choose another folder."
            ) from error
        except OSError:
            pass  # some parallel file systems have no locks
