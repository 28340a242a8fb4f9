"""Packs images into shards, each decoded once and not in each epoch; and text into tokens.

The same images give the same bytes, whatever the number of workers. A packing that was killed goes
on: a shard counts when it is on disk under its name and its checksum is in the journal.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import json
import os
import signal
import sys
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from data import photos, shards
from data.photos import HELD_OUT, FolderImages, Listing, listing, parts
from data.samples import BadData, Shape
from data.shards import JOURNAL, Manifest, Shard
from data.tokens import TESTS, TRAIN
from engine.exits import TrainingError
from saving.files import checksum, write_whole

SHARD_BYTES = 256_000_000
"""Of pixels in a shard: large enough for a parallel file system, small enough to be done again."""

THREADS = 16
"""That ask for sizes and dates of the images."""

Tell = Callable[[int, int], None]
"""Is told how many images are packed of how many."""


@dataclass(frozen=True)
class Work:
    """One shard to be made: the images from `start` to before `end` of a listing."""

    folder: Path
    file: str
    part: str
    files: Listing
    start: int
    end: int
    shape: Shape

    def __len__(self) -> int:
        """How many images it will have."""
        return self.end - self.start


@dataclass(frozen=True)
class Packed:
    """What was packed."""

    images: int
    new: int
    """How many of them by this call; the others were there."""
    shards: int
    size: int
    """Bytes of all shards."""


def pack(folder: Path, out: Path, shape: tuple[int, int], workers: int, tell: Tell) -> Packed:
    """Pack the images of a folder.

    Args:
        folder: has a subfolder for each class, perhaps below `train` and `val`.
        out: where to; made if it is not there.
        shape: channels and side of what is stored.
        workers: processes that decode.
        tell: is told of the progress.

    Raises:
        BadData: an image is damaged, or `out` holds something else.
    """
    photos.pillow()
    channels, side = shape
    for read in (folder, *filter(None, parts(folder))):
        inside = out.resolve().is_relative_to(read.resolve())
        if out.resolve() == folder.resolve() or (inside and read in parts(folder)):
            raise BadData(
                f"{out} is where the images are, and shards among them would change what --data "
                "finds there. Name another folder to write to."
            )
    work = list(_plan(folder, out, channels, side))
    out.mkdir(parents=True, exist_ok=True)
    with closing(Journal(out, _digest(work))) as journal:
        there = [one for one in work if _is_whole(out / one.file, journal.done.get(one.file))]
        whole = {one.file for one in there}
        missing = [one for one in work if one.file not in whole]
        total, before = sum(map(len, work)), sum(map(len, there))
        for shard in _made(missing, workers, lambda new: tell(before + new, total)):
            journal.add(shard)
        made = {one.file: journal.done[one.file] for one in work}
        wrong = [one.file for one in missing if not _is_whole(out / one.file, made[one.file])]
        if wrong:
            raise BadData(
                f"{out / wrong[0]} can't be read back as it was written: the disk is faulty. Run "
                "pack.py again, or choose another folder."
            )
        like = work[0].shape
        manifest = Manifest(channels, side, work[0].files.classes, tuple(made.values()))
        write_whole(out / shards.MANIFEST, manifest.text().encode())
        for left in out.glob("*.part"):  # by a packing that was killed
            left.unlink()
    size = sum(shards.size(len(one), like) for one in work)
    return Packed(total, total - before, len(work), size)


def _is_whole(path: Path, shard: Shard | None) -> bool:
    if shard is None:
        return False
    try:
        return checksum(path) == shard.sha256
    except FileNotFoundError:
        return False


def _plan(folder: Path, out: Path, channels: int, side: int) -> Iterator[Work]:
    learn, tests = parts(folder)
    files = listing(learn)
    shape = Shape("images", (channels, side, side), len(files.classes))
    if tests is None:
        kept = len(files) - len(files) // HELD_OUT
        ranges = [("train", files, 0, kept), ("test", files, kept, len(files))]
    else:
        others = listing(tests, files.classes)
        ranges = [("train", files, 0, len(files)), ("test", others, 0, len(others))]
    most = max(1, SHARD_BYTES // (channels * side * side))
    for part, these, start, end in ranges:
        if start == end:
            raise BadData(
                f"{folder} has {len(files)} images, too few to keep one of {HELD_OUT} for the "
                "test. Add more, or a folder `val` beside one named `train`."
            )
        for number, first in enumerate(range(start, end, most)):
            name = f"{part}-{number:05}.shard"
            yield Work(out, name, part, these, first, min(end, first + most), shape)


def _digest(work: list[Work]) -> str:
    """A text that is another one when other images, or others of a size, are packed."""
    found = hashlib.sha256()
    for one in work:
        about = (one.file, one.start, one.end, one.shape.input, one.files.classes)
        found.update(repr(about).encode())
    for files in {id(one.files): one.files for one in work}.values():
        found.update(files.names)
        with ThreadPoolExecutor(THREADS) as threads:  # a parallel file system answers late
            abouts = threads.map(lambda path: path.stat(), map(files.path, range(len(files))))
            for about_file in abouts:
                found.update(f"{about_file.st_size} {about_file.st_mtime_ns}\n".encode())
    return found.hexdigest()


def _made(work: list[Work], workers: int, tell: Callable[[int], None]) -> Iterator[Shard]:
    """Make shards in processes; yield each when it is whole."""
    if not work:
        return
    forks = get_context("fork")
    counter = forks.Value("q", 0)
    with ProcessPoolExecutor(
        min(workers, len(work)), mp_context=forks, initializer=_begin, initargs=(work, counter)
    ) as pool:
        waiting: set[Future[Shard]] = {pool.submit(_make, number) for number in range(len(work))}
        try:
            while waiting:
                ready, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                tell(counter.value)
                yield from (each.result() for each in ready)
        except BrokenProcessPool as error:
            raise TrainingError(
                "A process that packs has died, perhaps for want of memory. Run pack.py again: "
                "it goes on; with fewer --workers if it happens again."
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


_given: list[Work] = []
"""What a worker may be asked for: inherited by its fork, for the listing may be large."""
_counter: Any = None
"""Images that were packed, by all workers."""


def _begin(work: list[Work], counter: Any) -> None:
    """Begin a worker: it ends with the packing, however that ends."""
    global _counter
    _given[:], _counter = work, counter
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _make(number: int) -> Shard:
    return make(_given[number])


def _count() -> None:
    with _counter.get_lock():
        _counter.value += 1


def make(work: Work) -> Shard:
    """Make one shard: it gets its name when it is whole and on disk."""
    images = FolderImages(work.files, work.shape)
    path = work.folder / work.file
    aside = path.with_name(path.name + ".part")
    found = hashlib.sha256()
    try:
        with aside.open("wb") as file:

            def write(content: bytes) -> None:
                found.update(content)
                file.write(content)

            write(shards.header(len(work), work.shape))
            for number in range(work.start, work.end):
                write(images.pixels(number))
                _count()
            targets = work.files.targets[work.start : work.end]
            write(b"".join(target.to_bytes(shards.LABEL, "little") for target in targets))
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
    except OSError as error:
        raise BadData(
            f"{aside} can't be written ({error.strerror}). Make room, or choose another folder; "
            "then run pack.py again: it goes on."
        ) from error
    return Shard(work.file, work.part, len(work), found.hexdigest())


class Journal:
    """A file to which each shard is added when it is on disk; locked until it is closed."""

    def __init__(self, folder: Path, plan: str) -> None:
        """Read what there is.

        Args:
            folder: where the shards are.
            plan: says what is being packed: another plan's shards are not mixed with ours.

        Raises:
            BadData: the folder holds another packing, or one that is going on.
        """
        self._file = os.open(folder / JOURNAL, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self.done: dict[str, Shard] = {}
        """The shards that were whole, by their names."""
        try:
            self._lock(folder)
            self._read(folder, plan)
        except BaseException:
            self.close()
            raise

    def _read(self, folder: Path, plan: str) -> None:
        lines = (folder / JOURNAL).read_bytes().split(b"\n")
        cut = lines.pop()  # what follows the last end of line: of a packing that was killed
        if lines and lines[0] != plan.encode():
            raise BadData(
                f"{folder} holds other images already, or these of another --size. Choose another "
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
        """Note a shard that is whole and on disk."""
        self._write(json.dumps(asdict(shard)))
        self.done[shard.file] = shard

    def close(self) -> None:
        """Let others pack into the folder."""
        os.close(self._file)

    def _write(self, line: str) -> None:
        os.write(self._file, line.encode() + b"\n")
        os.fsync(self._file)

    def _lock(self, folder: Path) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BadData(
                f"Another pack.py is writing to {folder}. Wait for it, or choose another folder."
            ) from error
        except OSError:
            pass  # some parallel file systems have no locks


ENDINGS = (".txt", ".md", ".py")
"""How names of texts end."""
END = 256
"""The token after each file."""


@dataclass(frozen=True)
class Text:
    """What was made of texts."""

    files: int
    tokens: int


def pack_text(where: Path, out: Path) -> Text:
    """Write train.bin and val.bin with what says how to read them.

    Args:
        where: a file, or a folder with files below it.
        out: the folder to write to.

    Raises:
        BadData: there is no text.
    """
    paths = [where] if where.is_file() else sorted(_texts(where))
    tokens = array("H")
    for path in paths:
        tokens.extend(path.read_bytes())
        tokens.append(END)
    kept = len(tokens) - len(tokens) // HELD_OUT
    if kept == len(tokens):
        raise BadData(
            f"{where} has no text to pack. Name a file, or a folder with files that end in "
            f"{', '.join(ENDINGS)}."
        )
    out.mkdir(parents=True, exist_ok=True)
    says = json.dumps({"dtype": "uint16", "vocabulary": END + 1, "tokenizer": "bytes"})
    for name, part in ((TESTS[0], tokens[kept:]), (TRAIN, tokens[:kept])):
        write_whole((out / name).with_suffix(".json"), says.encode() + b"\n")
        write_whole(out / name, part.tobytes())
    return Text(len(paths), len(tokens))


def _texts(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.suffix in ENDINGS and path.is_file()]
