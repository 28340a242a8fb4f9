"""Packs images into shards, so that each is decoded only once, and text into tokens.

The same images give the same bytes, whatever the number of workers. Packing resumes after a kill: a
shard counts once it is on disk under its name and its checksum is in the journal.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from data import archives, photos, shards
from data.photos import HELD_OUT
from data.samples import BadData, Shape
from data.shards import JOURNAL, Manifest, Shard
from data.tokens import TESTS, TRAIN
from saving.files import checksum, write_whole

SHARD_BYTES = 256_000_000
"""Bytes of pixels per shard: large enough for a parallel file system, small enough to be redone."""

THREADS = 16
"""Number of threads that read the images' sizes and dates."""

Tell = Callable[[int, int], None]
"""Called with the number of packed images and the total."""


class Images(Protocol):
    """The source: a folder (data/photos.py), tars or an HDF5 file (data/archives.py)."""

    @property
    def files(self) -> Sequence[Path]:
        """The source files; a different size or date means different images."""

    @property
    def targets(self) -> Sequence[int]:
        """The class of each image."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""

    @property
    def shape(self) -> Shape:
        """The shape of one packed image."""

    def pixels(self, number: int) -> bytes:
        """Read and decode one image."""


@dataclass(frozen=True)
class Work:
    """One planned shard: the images from `start` up to, but not including, `end`."""

    path: Path
    part: str
    images: Images
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    @property
    def file(self) -> str:
        """Its file name."""
        return self.path.name


@dataclass(frozen=True)
class Packed:
    """The result of packing."""

    images: int
    new: int
    """Number packed by this call; the others existed already."""
    shards: int
    size: int
    """Bytes of all shards."""


def pack(source: Path, out: Path, size: tuple[int, int], workers: int, tell: Tell) -> Packed:
    """Pack the images in `source` into the folder `out`, which is created if missing.

    `source` is a folder with one subfolder per class (optionally below `train` and `val`), a tar, a
    folder of tars, or an HDF5 file. `size` has the channels and the side of the stored images,
    `workers` threads decode, and `tell` gets the progress.

    Raises:
        BadData: an image is damaged, or `out` contains something else.
    """
    photos.pillow()
    for read in (source, *filter(None, photos.parts(source))):
        inside = out.resolve().is_relative_to(read.resolve())
        if out.resolve() == source.resolve() or (inside and read in photos.parts(source)):
            raise BadData(
                f"{out} is the folder of the images, and shards in it would change what --data "
                "finds. Choose another output folder."
            )
    work = list(_plan(source, out, size))
    out.mkdir(parents=True, exist_ok=True)
    with closing(Journal(out, _digest(work))) as journal:
        missing = [one for one in work if not _is_whole(one.path, journal.done.get(one.file))]
        total, new = sum(map(len, work)), sum(map(len, missing))
        tell(done := total - new, total)
        for shard in _made(missing, workers):
            journal.add(shard)
            tell(done := done + shard.count, total)
        made = {one.file: journal.done[one.file] for one in work}
        if wrong := [one.path for one in missing if not _is_whole(one.path, made[one.file])]:
            raise BadData(
                f"{wrong[0]} can't be read back as it was written: the disk is faulty. Run "
                "pack.py again, or choose another folder."
            )
        manifest = Manifest(*size, work[0].images.classes, tuple(made.values()))
        write_whole(out / shards.MANIFEST, manifest.text().encode())
        for left in out.glob("*.part"):  # left by a killed packing
            left.unlink()
    written = sum(shards.size(len(one), one.images.shape) for one in work)
    return Packed(total, new, len(work), written)


def _is_whole(path: Path, shard: Shard | None) -> bool:
    try:
        return shard is not None and checksum(path) == shard.sha256
    except FileNotFoundError:
        return False


def _opened(source: Path, size: tuple[int, int]) -> tuple[Images, Images | None]:
    """Return the training images, and the test images if they are separate."""
    if source.is_file() and archives.is_hdf5(source):
        return archives.hdf5_images(source, size)
    if source.is_file() or any(source.glob("*.tar")):
        return archives.tar_images(source, size)
    learn, tests = photos.parts(source)
    images = photos.folder_images(learn, size)
    return images, photos.folder_images(tests, size, images.classes) if tests else None


def _plan(source: Path, out: Path, size: tuple[int, int]) -> Iterator[Work]:
    learn, tests = _opened(source, size)
    count = len(learn.targets)
    kept = count if tests else count - count // HELD_OUT
    test = (tests, 0, len(tests.targets)) if tests else (learn, kept, count)
    channels, side = size
    most = max(1, SHARD_BYTES // (channels * side * side))
    for part, (images, start, end) in {"train": (learn, 0, kept), "test": test}.items():
        if start == end:
            raise BadData(
                f"{source} has {count} images, too few to keep one of {HELD_OUT} for the test. "
                "Add more, or a folder `val` beside one named `train`."
            )
        for number, first in enumerate(range(start, end, most)):
            path = out / f"{part}-{number:05}.shard"
            yield Work(path, part, images, first, min(end, first + most))


def _digest(work: list[Work]) -> str:
    """Return a digest that changes with the images or their size."""
    found = hashlib.sha256()
    for one in work:
        about = (one.file, one.start, one.end, one.images.shape.input, one.images.classes)
        found.update(repr(about).encode())
    for images in {id(one.images): one.images for one in work}.values():
        files = images.files
        with ThreadPoolExecutor(THREADS) as threads:  # a parallel file system answers slowly
            for path, about_file in zip(files, threads.map(Path.stat, files), strict=True):
                facts = (str(path), about_file.st_size, about_file.st_mtime_ns)
                found.update(repr(facts).encode(errors="surrogateescape"))
    return found.hexdigest()


def _made(work: list[Work], workers: int) -> Iterator[Shard]:
    """Make shards in threads; yield each when it is complete."""
    pool = ThreadPoolExecutor(workers)
    try:
        for made in as_completed([pool.submit(make, one) for one in work]):
            yield made.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # pack.py does not wait for them


def make(work: Work) -> Shard:
    """Make one shard, which gets its name once it is complete and on disk."""
    images, path = work.images, work.path
    aside = path.with_name(path.name + ".part")
    found = hashlib.sha256()
    try:
        with aside.open("wb") as file:

            def write(content: bytes) -> None:
                found.update(content)
                file.write(content)

            write(shards.header(len(work), images.shape))
            for number in range(work.start, work.end):
                write(images.pixels(number))
            targets = images.targets[work.start : work.end]
            write(b"".join(target.to_bytes(shards.LABEL, "little") for target in targets))
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
    except OSError as error:
        raise BadData(
            f"{aside} can't be written ({error.strerror}). Free some space, or choose another "
            "folder; then run pack.py again to continue."
        ) from error
    return Shard(work.file, work.part, len(work), found.hexdigest())


class Journal:
    """A file that lists each shard once it is on disk; locked until it is closed."""

    def __init__(self, folder: Path, plan: str) -> None:
        """Read the existing shards in `folder`.

        `plan` identifies what is packed, so that shards of different plans are not mixed.

        Raises:
            BadData: the folder contains another packing, or one that is still running.
        """
        self._file = os.open(folder / JOURNAL, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self.done: dict[str, Shard] = {}
        """The complete shards, by name."""
        try:
            self._lock(folder)
            self._read(folder, plan)
        except BaseException:
            self.close()
            raise

    def _read(self, folder: Path, plan: str) -> None:
        lines = (folder / JOURNAL).read_bytes().split(b"\n")
        cut = lines.pop()  # the rest after the last newline is from a killed packing
        if lines and lines[0] != plan.encode():
            raise BadData(
                f"{folder} already contains other images, or these with another --size. Choose "
                "another "
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
        """Record a shard that is complete and on disk."""
        self._write(json.dumps(asdict(shard)))
        self.done[shard.file] = shard

    def close(self) -> None:
        """Release the folder for other processes."""
        os.close(self._file)

    def _write(self, line: str) -> None:
        os.write(self._file, line.encode() + b"\n")
        os.fsync(self._file)

    def _lock(self, folder: Path) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BadData(
                f"Another pack.py is writing to {folder}. Wait until it ends, or choose another "
                "folder."
            ) from error
        except OSError:
            pass  # some parallel file systems do not support locks


ENDINGS = (".txt", ".md", ".py")
"""Suffixes of text files."""
END = 256
"""The token after each file."""


@dataclass(frozen=True)
class Text:
    """The result of packing texts."""

    files: int
    tokens: int


def pack_text(where: Path, out: Path) -> Text:
    """Write train.bin and val.bin with their description into the folder `out`.

    `where` is a file, or a folder with files at any depth; BadData if it has no text.
    """
    found = (path for path in where.rglob("*") if path.suffix in ENDINGS and path.is_file())
    paths = [where] if where.is_file() else sorted(found)
    tokens = array("H")
    for path in paths:
        tokens.extend(path.read_bytes())
        tokens.append(END)
    kept = len(tokens) - len(tokens) // HELD_OUT
    if kept == len(tokens):
        raise BadData(
            f"{where} has no text to pack. Give a file, or a folder with files that end in "
            f"{', '.join(ENDINGS)}."
        )
    out.mkdir(parents=True, exist_ok=True)
    says = json.dumps({"dtype": "uint16", "vocabulary": END + 1, "tokenizer": "bytes"})
    for name, part in ((TESTS[0], tokens[kept:]), (TRAIN, tokens[:kept])):
        write_whole((out / name).with_suffix(".json"), says.encode() + b"\n")
        write_whole(out / name, part.tobytes())
    return Text(len(paths), len(tokens))
