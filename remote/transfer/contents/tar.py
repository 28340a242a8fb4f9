"""tar and gzip as streams, so that memory stays bounded."""

import stat
import tarfile
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from queue import Full, Queue

CHUNK = 1 << 18
_PIECE = 1 << 20
"""Most compressed bytes that go to the link at once: smaller ones turn it round more often."""
_AHEAD = 2  # pieces


def gzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Return `pieces` as gzip, 256 KiB to 1 MiB at a time; the same input gives the same bytes.

    A thread reads, hashes and compresses ahead, so that the link never waits for that.
    """
    return _ahead(_compressed(pieces))


def _compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    gzip = zlib.compressobj(1, zlib.DEFLATED, 31)  # 31: with gzip's header
    held, most = bytearray(), CHUNK  # the first ones are small: the link waits for them
    for piece in pieces:
        held += gzip.compress(piece)
        if len(held) >= most:
            most = min(2 * most, _PIECE)
            yield bytes(held)
            held.clear()
    yield bytes(held + gzip.flush())


def _ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield `pieces`, which a thread takes ahead; what they raise is raised here."""
    taken: Queue[bytes | BaseException | None] = Queue(_AHEAD)
    stop = threading.Event()

    def put(item: bytes | BaseException | None) -> None:
        while not stop.is_set():
            with suppress(Full):
                return taken.put(item, timeout=0.1)

    def take() -> None:
        try:
            for piece in pieces:
                put(piece)
                if stop.is_set():
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
        stop.set()
        thread.join()


def gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield `pieces` in larger ones: each turns the link round once."""
    held = bytearray()
    for piece in pieces:
        held += piece
        if len(held) >= CHUNK:
            yield bytes(held)
            held.clear()
    yield bytes(held)


END = bytes(2 * tarfile.BLOCKSIZE)
"""The end of a tar."""


def header(
    name: str,
    mtime: int,
    *,
    size: int = 0,
    mode: int = 0o600,
    kind: bytes = tarfile.REGTYPE,
    target: str = "",
) -> bytes:
    """Return what is before the content of one file, or for a folder or link by itself."""
    raw, to = (text.encode("utf-8", "surrogateescape") for text in (name, target))
    if len(raw) > 100 or len(to) > 100 or size >> 33:
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = size, stat.S_IMODE(mode), mtime
        info.type, info.linkname = kind, target
        return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    # tarfile takes 40 us for one, which a tree of 2,000 links would wait for.
    fields = b"%07o\0%07o\0%07o\0%011o\0%011o\0" % (stat.S_IMODE(mode), 0, 0, size, mtime)
    before = raw.ljust(100, b"\0") + fields
    after = (kind + to.ljust(100, b"\0") + b"ustar  \0").ljust(356, b"\0")
    total = sum(before) + sum(after) + 8 * ord(" ")
    return before + b"%06o\0 " % total + after


def file(name: str, pieces: Iterable[bytes], size: int, mode: int, mtime: int) -> Iterator[bytes]:
    """Yield one file of a tar, whose content is `pieces` of `size` bytes together."""
    yield header(name, mtime, size=size, mode=mode)
    yield from pieces
    yield bytes(-size % tarfile.BLOCKSIZE)


def link(name: str, mtime: int, target: str, *, hard: bool = False) -> bytes:
    """Return one link of a tar."""
    kind, mode = (tarfile.LNKTYPE, 0o400) if hard else (tarfile.SYMTYPE, 0o777)
    return header(name, mtime, kind=kind, mode=mode, target=target)
