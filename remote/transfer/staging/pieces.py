"""The bytes of an item on their way: of large files, and of small ones and the tree as a tar."""

import os
import posixpath
import stat
import tarfile
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from lumitui.remote.site.errors import InputError
from lumitui.remote.source.scan import opened
from lumitui.remote.transfer.snapshots.tar import content
from lumitui.remote.transfer.staging.shipment_progress import Meter
from lumitui.remote.transfer.staging.staged_contents import Item, changed
from lumitui.remote.transfer.staging.staging_store import Blob, blob_name

_CHUNK = 1 << 18
_SAMPLES = 8
_SAMPLE = 1 << 14


def tar_of(
    item: Item, work: str, batch: Sequence[Blob], meter: Meter, *, places: bool
) -> Iterator[bytes]:
    """Yield a tar of the contents `batch` below `work`; with `places` also of the item's tree.

    Raises:
        InputError: a file has changed since it was read.
    """
    now = int(time.time())  # not the local time: sites purge scratch files by age
    for blob in batch:
        entry = blob.entry
        mode = 0o500 if entry.executable else 0o400
        yield _header(f"{work}/new/{blob.name}", now, size=entry.size, mode=mode)
        yield from meter.pass_on(_content(item, blob))
        yield bytes(-entry.size % tarfile.BLOCKSIZE)
    if places:
        yield from _tree(item, work, {blob.name for blob in batch}, now)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _content(item: Item, blob: Blob) -> Iterator[bytes]:
    if not item.unchanged(blob.entry.path):
        raise changed(item.name, blob.entry.path)
    try:
        yield from content(blob.entry, item.sources[blob.entry.path])
    except InputError as error:
        raise changed(item.name, blob.entry.path) from error


def _tree(item: Item, work: str, fresh: set[str], now: int) -> Iterator[bytes]:
    """Yield the folders, hard links and links of the item's tree."""
    made: set[str] = set()
    for entry in item.manifest.entries:
        for folder in _parents(entry.path):
            if folder not in made:
                made.add(folder)
                yield _header(f"{work}/tree/{folder}/", now, kind=tarfile.DIRTYPE, mode=0o700)
        place = f"{work}/tree/{entry.path}"
        if entry.target is not None:
            yield _header(place, now, kind=tarfile.SYMTYPE, target=entry.target, mode=0o777)
            continue
        name = blob_name(entry)
        target = f"{work}/new/{name}" if name in fresh else f"blobs/{name}"
        yield _header(place, now, kind=tarfile.LNKTYPE, target=target)


def rest_of(item: Item, name: str, path: Path, offset: int, size: int) -> Iterator[bytes]:
    """Yield the bytes of a file from `offset` to `size`.

    Raises:
        InputError: it has changed since it was read.
    """
    try:
        with os.fdopen(opened(path), "rb", buffering=0) as file:
            if not item.is_same(name, os.fstat(file.fileno())):
                raise changed(item.name, name)
            file.seek(offset)
            left = size - offset
            while left and (piece := file.read(min(_CHUNK, left))):
                left -= len(piece)
                yield piece
    except OSError as error:
        raise changed(item.name, name) from error
    if left or not item.unchanged(name):
        raise changed(item.name, name)


def gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield `pieces` in larger ones: each turns the link round once."""
    held = bytearray()
    for piece in pieces:
        held += piece
        if len(held) >= _CHUNK:
            yield bytes(held)
            held.clear()
    yield bytes(held)


def shrinks(path: Path, size: int) -> bool:
    """Whether a sample of the file shrinks by a fifth: pictures and weights do not."""
    sample = b""
    try:
        with open(path, "rb") as file:
            # Samples that overlap would repeat each other, and so shrink.
            step = max(size // _SAMPLES, _SAMPLE)
            for start in range(0, size, step):
                file.seek(start)
                sample += file.read(_SAMPLE)
    except OSError:
        return False  # the next read of it says so
    return len(zlib.compress(sample, 1)) < 0.8 * len(sample)


def batch_shrinks(item: Item, batch: Sequence[Blob]) -> bool:
    """Whether most files of a sample of `batch` shrink."""
    sizes = [blob.entry.size for blob in batch]
    if sum(sizes) < 1 << 20:
        return True  # headers shrink, and there is nothing else
    chosen = batch[:: max(1, len(batch) // _SAMPLES)]
    votes = [shrinks(item.sources[blob.entry.path], blob.entry.size) for blob in chosen]
    return 2 * sum(votes) > len(votes)


def _parents(path: str) -> list[str]:
    parts = posixpath.dirname(path).split("/") if "/" in path else []
    return ["/".join(parts[: number + 1]) for number in range(len(parts))]


def _header(
    name: str,
    mtime: int,
    *,
    size: int = 0,
    mode: int = 0o400,
    kind: bytes = tarfile.REGTYPE,
    target: str = "",
) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, stat.S_IMODE(mode), mtime
    info.type, info.linkname = kind, target
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
