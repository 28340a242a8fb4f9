"""The end of a log that may be long, or may come from a pipe."""

from typing import BinaryIO

_TAIL = 4_000_000
"""How many bytes of the end of a log are explained."""
_MOST = 1_000_000_000
"""How many bytes are read to count the lines before the end: about a second."""
_CHUNK = 4_000_000


def log_end(file: BinaryIO) -> tuple[str, int | None]:
    """Return the end of a log, and how many lines stand before it; None: it is not known.

    Of a pipe no more than a gigabyte is read.
    """
    before, left = 0, _MOST
    if file.seekable():
        size = file.seek(0, 2)
        start = max(0, size - _TAIL)
        if start > _MOST:
            file.seek(start)
            return file.read(_TAIL).decode(errors="replace"), None
        file.seek(0)
        left = size
    kept = b""
    while left > 0 and (chunk := file.read(min(_CHUNK, left))):
        left -= len(chunk)
        kept += chunk
        if len(kept) > _TAIL:
            before += kept.count(b"\n", 0, len(kept) - _TAIL)
            kept = kept[-_TAIL:]
    return kept.decode(errors="replace"), before
