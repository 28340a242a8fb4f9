"""Files of a manifest as tar and gzip; each is checked against its hash while it is sent."""

import hashlib
import os
import stat
import tarfile
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Full, Queue

from lumitui.remote.source.manifest import Entry
from lumitui.remote.source.scan import changed, opened

_CHUNK = 1 << 18
_PIECE = 1 << 20
"""Most compressed bytes that go to the link at once: smaller ones turn it round more often."""
_AHEAD = 2  # pieces


class Packed:
    """A compressed archive made while it is sent, so that memory stays bounded."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.size = 0
        """Compressed bytes so far."""

    def stream(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Return `pieces` as gzip, 256 KiB to 1 MiB at a time; the same input gives the same bytes.

        A thread reads, hashes and compresses ahead, so that the link never waits for that.
        """
        return _ahead(self._compressed(pieces))

    def _compressed(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        gzip = zlib.compressobj(1, zlib.DEFLATED, 31)  # 31: with gzip's header
        held, most = bytearray(), _CHUNK  # the first ones are small: the link waits for them
        for piece in pieces:
            held += gzip.compress(piece)
            if len(held) >= most:
                self.size, most = self.size + len(held), min(2 * most, _PIECE)
                yield bytes(held)
                held.clear()
        held += gzip.flush()
        self.size += len(held)
        yield bytes(held)


def _ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield `pieces`, which a thread takes ahead; what they raise is raised here."""
    taken: Queue[bytes | BaseException | None] = Queue(_AHEAD)
    left = threading.Event()

    def put(item: bytes | BaseException | None) -> None:
        while not left.is_set():
            with suppress(Full):
                return taken.put(item, timeout=0.1)

    def take() -> None:
        try:
            for piece in pieces:
                put(piece)
                if left.is_set():
                    return
            put(None)
        except BaseException as error:
            put(error)

    thread = threading.Thread(target=take, name="pack ahead", daemon=True)
    thread.start()
    try:
        while (item := taken.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        left.set()
        thread.join()


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
