"""Event files that TensorBoard reads, written without TensorBoard.

A file is a row of records: the length (8 bytes), a checksum of the length, the event, a checksum
of the event. An event is a protocol buffer with few fields. Sources: tensorflow/core/lib/io/
record_writer.h; tensorboard/compat/proto/event.proto and summary.proto; RFC 3720 for CRC-32C.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping
from pathlib import Path

FIRST_VERSION = b"brain.Event:2"
_LARGEST = 3.4e38
"""Of an event's float32; infinity and NaN are not within."""


def _table() -> list[int]:
    found = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        found.append(value)
    return found


_TABLE = _table()


def checksum(data: bytes) -> int:
    """The masked CRC-32C of these bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def _nested(field: int, data: bytes) -> bytes:
    return bytes((field << 3 | 2,)) + _varint(len(data)) + data


def event(wall_time: float, step: int, numbers: Mapping[str, float]) -> bytes:
    """One event: some numbers at a step."""
    values = (
        _nested(1, _nested(1, tag.encode()) + b"\x15" + struct.pack("<f", number))
        for tag, number in numbers.items()
    )
    head = b"\x09" + struct.pack("<d", wall_time) + b"\x10" + _varint(step)
    return head + _nested(5, b"".join(values))


def record(data: bytes) -> bytes:
    """An event as it lies in the file."""
    length = struct.pack("<Q", len(data))
    checks = struct.pack("<I", checksum(length)), struct.pack("<I", checksum(data))
    return length + checks[0] + data + checks[1]


class EventFile:
    """An event file that grows by whole records; a reader sees each at once."""

    def __init__(self, folder: Path) -> None:
        """Begin a new one in the folder; the name tells when, so that attempts are in order."""
        began = time.time()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"events.out.tfevents.{began:.0f}.{os.getpid()}"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._write(b"\x09" + struct.pack("<d", began) + _nested(3, FIRST_VERSION))

    def add(self, step: int, numbers: Mapping[str, float]) -> None:
        """Add some numbers at a step, as of now.

        Raises:
            OSError: they can't be written.
        """
        if numbers:
            self._write(event(time.time(), step, numbers))

    def _write(self, data: bytes) -> None:
        os.write(self._file, record(data))

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def numbers_of(line: Mapping[str, object]) -> dict[str, float]:
    """What a line of metrics.jsonl says besides its step: its finite numbers."""
    return {
        name: float(value)
        for name, value in line.items()
        if isinstance(value, (int, float))
        and not isinstance(value, bool)
        and name not in ("step", "time")
        and abs(value) <= _LARGEST
    }
