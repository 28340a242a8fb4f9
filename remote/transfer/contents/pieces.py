"""The byte streams of an item: large files, and small files with the tree as a tar."""

import hashlib
import os
import stat
import tarfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from queue import Full, Queue

from lumitui.remote.site.errors import InputError
from lumitui.remote.source.manifest import Manifest, ManifestEntry
from lumitui.remote.source.scan import FileState, changed, file_state, opened
from lumitui.remote.transfer.contents.content_store import Blob, Item, blob_name
from lumitui.remote.transfer.contents.shipment_progress import Meter

CHUNK = 1 << 18
_PIECE = 1 << 20
"""Maximum compressed bytes per write to the link; smaller writes cost more round trips."""
_AHEAD = 2  # pieces


def gzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield `pieces` as gzip, 256 KiB to 1 MiB at a time; the same input gives the same bytes.

    A thread reads, hashes and compresses ahead, so that the link never waits for it.
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
    """Yield `pieces`, read ahead by a thread; raises the thread's exceptions."""
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
    """Yield `pieces` joined to larger ones, because each costs a round trip."""
    held = bytearray()
    for piece in pieces:
        held += piece
        if len(held) >= CHUNK:
            yield bytes(held)
            held.clear()
    yield bytes(held)


END = bytes(2 * tarfile.BLOCKSIZE)


def header(
    name: str,
    mtime: int,
    *,
    size: int = 0,
    mode: int = 0o600,
    kind: bytes = tarfile.REGTYPE,
    target: str = "",
) -> bytes:
    """Return the tar header of a file, folder or link."""
    raw, to = (text.encode("utf-8", "surrogateescape") for text in (name, target))
    if len(raw) > 100 or len(to) > 100 or size >> 33:
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = size, stat.S_IMODE(mode), mtime
        info.type, info.linkname = kind, target
        return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    # tarfile takes 40 us per header, too long for a tree of 2,000 links.
    fields = b"%07o\0%07o\0%07o\0%011o\0%011o\0" % (stat.S_IMODE(mode), 0, 0, size, mtime)
    before = raw.ljust(100, b"\0") + fields
    after = (kind + to.ljust(100, b"\0") + b"ustar  \0").ljust(356, b"\0")
    total = sum(before) + sum(after) + 8 * ord(" ")
    return before + b"%06o\0 " % total + after


def file(name: str, pieces: Iterable[bytes], size: int, mode: int, mtime: int) -> Iterator[bytes]:
    """Yield one file of a tar, with `pieces` of `size` bytes in total as content."""
    yield header(name, mtime, size=size, mode=mode)
    yield from pieces
    yield bytes(-size % tarfile.BLOCKSIZE)


def link(name: str, mtime: int, target: str, *, hard: bool = False) -> bytes:
    """Return one link of a tar."""
    kind, mode = (tarfile.LNKTYPE, 0o400) if hard else (tarfile.SYMTYPE, 0o777)
    return header(name, mtime, kind=kind, mode=mode, target=target)


_SAMPLES = 8
_SAMPLE = 1 << 14


def tar_of(
    item: Item,
    work: str,
    batch: Sequence[Blob],
    meter: Meter,
    *,
    places: bool,
    base: Manifest | None = None,
    linked: bool = True,
) -> Iterator[bytes]:
    """Yield a tar of the contents `batch` below `work`, and with `places` of the item's tree.

    Without `linked`, the tree has each file's bytes, for a file system without hard links.

    The tree links to contents of `base` by their paths, which compress well; their hashes would
    not.

    Raises:
        InputError: a file has changed since it was read.
    """
    now = int(time.time())  # not the local time: sites delete old scratch files by age
    if item.sums is not None and places:
        yield from file(f"{work}/sums", [item.sums], len(item.sums), 0o400, now)

    def whole(place: str, entry: ManifestEntry) -> Iterator[bytes]:
        mode = 0o500 if entry.executable else 0o400
        return file(place, meter.pass_on(content_of(item, entry)), entry.size, mode, now)

    for blob in batch:
        yield from whole(f"{work}/new/{blob.name}", blob.entry)
    if places:
        fresh = {blob.name for blob in batch}
        yield from _tree(item, work, fresh, now, base, None if linked else whole)
    yield END


def _tree(
    item: Item,
    work: str,
    fresh: set[str],
    now: int,
    base: Manifest | None,
    whole: Callable[[str, ManifestEntry], Iterator[bytes]] | None,
) -> Iterator[bytes]:
    """Yield the folders and links of the item's tree; `whole` yields a file instead of a link."""
    made: set[str] = set()
    same = set(base.entries if base is not None else ())
    for entry in item.manifest.entries:
        for above in reversed(PurePosixPath(entry.path).parents[:-1]):
            if (folder := str(above)) not in made:
                made.add(folder)
                yield header(f"{work}/tree/{folder}/", now, kind=tarfile.DIRTYPE, mode=0o700)
        place = f"{work}/tree/{entry.path}"
        if entry.target is not None:
            yield link(place, now, entry.target)
            continue
        if whole is not None:
            yield from whole(place, entry)
            continue
        name = blob_name(entry)
        target = f"{work}/new/{name}" if name in fresh else f"blobs/{name}"
        if base is not None and entry in same:
            target = f"{base.id}/{entry.path}"
        yield link(place, now, target, hard=True)


def content_of(item: Item, entry: ManifestEntry, offset: int = 0) -> Iterator[bytes]:
    """Yield a file of `item` from `offset` on; InputError if it has changed since it was read."""
    path = entry.path
    try:
        yield from content(entry, item.sources[path], offset, item.seen.get(path))
    except InputError as error:
        raise item.changed(path) from error


def content(
    entry: ManifestEntry, source: Path, offset: int = 0, state: FileState | None = None
) -> Iterator[bytes]:
    """Yield the bytes of the file `source`, described by `entry`, from `offset` on.

    `state` is the file's stat when it was hashed; without it, the whole file is hashed again.

    Raises:
        InputError: the file differs from its entry.
    """
    digest, rest = hashlib.sha256(), entry.size - offset
    try:
        with os.fdopen(opened(source), "rb", buffering=0) as file:
            if state and file_state(os.fstat(file.fileno())) != state:
                raise changed(entry.path)
            file.seek(offset)
            while rest and (piece := file.read(min(CHUNK, rest))):
                if state is None:
                    digest.update(piece)
                rest -= len(piece)
                yield piece
            grown = file.read(1)
            now = file_state(os.fstat(file.fileno()))
    except OSError as error:
        raise changed(entry.path) from error
    same = now == state if state else offset or digest.hexdigest() == entry.sha256
    if rest or grown or not same:
        raise changed(entry.path)


def shrinks(path: Path, size: int) -> bool:
    """Return whether a sample of the file compresses by a fifth: pictures and weights do not."""
    sample = b""
    try:
        with open(path, "rb") as file:
            # Overlapping samples would repeat each other, and so compress.
            step = max(size // _SAMPLES, _SAMPLE)
            for start in range(0, size, step):
                file.seek(start)
                sample += file.read(_SAMPLE)
    except OSError:
        return False  # the next read reports it
    return len(zlib.compress(sample, 1)) < 0.8 * len(sample)


def batch_shrinks(item: Item, batch: Sequence[Blob]) -> bool:
    """Return whether most files in a sample of `batch` compress well."""
    sizes = [blob.entry.size for blob in batch]
    if sum(sizes) < 1 << 20:
        return True  # headers compress, and there is nothing else
    chosen = batch[:: max(1, len(batch) // _SAMPLES)]
    votes = [shrinks(item.sources[blob.entry.path], blob.entry.size) for blob in chosen]
    return 2 * sum(votes) > len(votes)
