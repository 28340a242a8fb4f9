"""Files of a manifest as tar and gzip; each is checked against its hash while it is sent."""

import hashlib
import os
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from lumitui.remote.source.manifest import Entry
from lumitui.remote.source.scan import changed, opened

_CHUNK = 1 << 18


class Packed:
    """A compressed archive made while it is sent, so that memory stays bounded."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.size = 0
        """Compressed bytes so far."""

    def stream(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Return `pieces` as gzip, about 256 KiB at a time; the same input gives the same bytes."""
        gzip = zlib.compressobj(1, zlib.DEFLATED, 31)  # 31: with gzip's header
        held = bytearray()
        for piece in pieces:
            held += gzip.compress(piece)
            if len(held) >= _CHUNK:
                self.size += len(held)
                yield bytes(held)
                held.clear()
        held += gzip.flush()
        self.size += len(held)
        yield bytes(held)


def tar_stream(
    sent: Sequence[Entry],
    where: Callable[[str], Path],
    *,
    mtime: int,
    folder: str = "",
    sums: bytes | None = None,
) -> Iterator[bytes]:
    """Yield a tar of `sent` below `folder` ("" or "name/"); `sums` comes first, as a file.

    Raises:
        InputError: a file is no longer what its entry says.
    """
    if sums is not None:
        yield from (_header("sums", len(sums), 0o600, mtime), sums, _padding(len(sums)))
    for entry in sent:
        name = folder + entry.path
        if entry.target is not None:
            yield _header(name, 0, 0o777, mtime, entry.target)
            continue
        yield _header(name, entry.size, 0o700 if entry.executable else 0o600, mtime)
        yield from content(entry, where(entry.path))
        yield _padding(entry.size)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _header(name: str, size: int, mode: int, mtime: int, target: str | None = None) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, stat.S_IMODE(mode), mtime
    if target is not None:
        info.type, info.linkname = tarfile.SYMTYPE, target
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8")


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)


def content(entry: Entry, source: Path) -> Iterator[bytes]:
    """Yield the bytes of the file `source`, which `entry` describes.

    Raises:
        InputError: it is no longer what its entry says.
    """
    digest, left = hashlib.sha256(), entry.size
    try:
        with os.fdopen(opened(source), "rb") as file:
            while left and (piece := file.read(min(_CHUNK, left))):
                digest.update(piece)
                left -= len(piece)
                yield piece
            grown = file.read(1)
    except OSError as error:
        raise changed(entry.path) from error
    if left or grown or digest.hexdigest() != entry.sha256:
        raise changed(entry.path)
