"""The bytes of an item on their way: of large files, and of small ones and the tree as a tar."""

import os
import posixpath
import tarfile
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from lumitui.remote.site.errors import InputError
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.source.scan import opened
from lumitui.remote.transfer.contents.content_store import Blob, Item, blob_name, changed
from lumitui.remote.transfer.contents.shipment_progress import Meter
from lumitui.remote.transfer.contents.tar import END, content, file, header, link

_CHUNK = 1 << 18
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
) -> Iterator[bytes]:
    """Yield a tar of the contents `batch` below `work`; with `places` also of the item's tree.

    The tree links to contents of the `base` by their paths there, which repeat: their hashes would
    not shrink.

    Raises:
        InputError: a file has changed since it was read.
    """
    now = int(time.time())  # not the local time: sites purge scratch files by age
    if item.sums is not None and places:
        yield from file(f"{work}/sums", [item.sums], len(item.sums), 0o400, now)
    for blob in batch:
        entry = blob.entry
        mode = 0o500 if entry.executable else 0o400
        pieces = meter.pass_on(_content(item, blob))
        yield from file(f"{work}/new/{blob.name}", pieces, entry.size, mode, now)
    if places:
        yield from _tree(item, work, {blob.name for blob in batch}, now, base)
    yield END


def _content(item: Item, blob: Blob) -> Iterator[bytes]:
    if not item.unchanged(blob.entry.path):
        raise changed(item.name, blob.entry.path)
    try:
        yield from content(blob.entry, item.sources[blob.entry.path])
    except InputError as error:
        raise changed(item.name, blob.entry.path) if item.seen else error from error


def _tree(
    item: Item, work: str, fresh: set[str], now: int, base: Manifest | None
) -> Iterator[bytes]:
    """Yield the folders, hard links and links of the item's tree."""
    made: set[str] = set()
    same = set(base.entries if base is not None else ())
    for entry in item.manifest.entries:
        for folder in _parents(entry.path):
            if folder not in made:
                made.add(folder)
                yield header(f"{work}/tree/{folder}/", now, kind=tarfile.DIRTYPE, mode=0o700)
        place = f"{work}/tree/{entry.path}"
        if entry.target is not None:
            yield link(place, now, entry.target)
            continue
        name = blob_name(entry)
        target = f"{work}/new/{name}" if name in fresh else f"blobs/{name}"
        if base is not None and entry in same:
            target = f"{base.id}/{entry.path}"
        yield link(place, now, target, hard=True)


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
