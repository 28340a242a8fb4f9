"""The bytes of an item on their way: of large files, and of small ones and the tree as a tar."""

import hashlib
import os
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from lumitui.remote.site.errors import InputError
from lumitui.remote.source.manifest import Manifest, ManifestEntry
from lumitui.remote.source.scan import FileState, changed, file_state, opened
from lumitui.remote.transfer.contents.content_store import Blob, Item, blob_name
from lumitui.remote.transfer.contents.shipment_progress import Meter
from lumitui.remote.transfer.contents.tar import CHUNK, END, file, header, link

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
    """Yield a tar of the contents `batch` below `work`; with `places` also of the item's tree.

    Without `linked` the tree has each file's bytes, for a file system without hard links.

    The tree links to contents of the `base` by their paths there, which repeat: their hashes would
    not shrink.

    Raises:
        InputError: a file has changed since it was read.
    """
    now = int(time.time())  # not the local time: sites purge scratch files by age
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
    """Yield the folders, hard links and links of the item's tree; `whole` gives a file instead."""
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
    """Yield the bytes of a file of `item` from `offset` on.

    Raises:
        InputError: it has changed since it was read.
    """
    path = entry.path
    try:
        yield from content(entry, item.sources[path], offset, item.seen.get(path))
    except InputError as error:
        raise item.changed(path) from error


def content(
    entry: ManifestEntry, source: Path, offset: int = 0, state: FileState | None = None
) -> Iterator[bytes]:
    """Yield the bytes of the file `source`, which `entry` describes, from `offset` on.

    `state` is what stat said when it was hashed; without it a whole file is hashed once more.

    Raises:
        InputError: it is no longer what its entry says.
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
