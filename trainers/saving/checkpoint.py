"""Checkpoints that are complete or absent, and protected from earlier starts of the run.

    checkpoints/start-0002-step-00000120/state.pt        what a save wrote, or each rank's part
    checkpoints/start-0002-step-00000120/manifest.json   size and SHA-256 of each file; written last

A folder without a manifest is an interrupted save and does not count. During a save, the folder has
the file .unfinished; without it and without a manifest, the manifest was removed. No save writes
into another's files.

Each start of a training run in a run folder takes the next number (the file .start-0002), and the
newest checkpoint is that of the highest start: so a node that recovers and continues to save cannot
supersede the attempt that took over. A start that does not resume begins another training run: it
never removes earlier checkpoints. The manifest contains the number of the start with which its
training run began.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar, cast

import torch.distributed as dist

from engine import ranks
from engine.exits import TrainingError, UsageError
from monitor.metrics import METRICS, attempt
from saving.files import (
    MANIFEST,
    NAME,
    UNFINISHED,
    Position,
    Saved,
    Settings,
    cause,
    seal,
    sync,
    write_whole,
)

KEEP = 2
"""Number of checkpoints to keep; the older one is used if the newer is unreadable."""
OVERTAKEN = 87
"""Exit code of a training run that found a later start in its run folder."""
_TOKEN = re.compile(r"\.start-(\d{4,})")


class Overtaken(TrainingError):
    """A later start of this training has taken over the checkpoints."""

    code = OVERTAKEN


class SaveFailed(TrainingError):
    """A checkpoint failed; earlier ones are unaffected."""

    def after(self, last: Saved | None) -> SaveFailed:
        """Return the same error with the checkpoint to resume from."""
        kept = f"{last.folder.name} is complete" if last else "there is no checkpoint before it"
        return SaveFailed(f"{str(self).removesuffix('.')}; {kept}.")


class Checkpoints:
    """The checkpoints of a run folder, written by rank 0 and readable by every rank."""

    def __init__(self, run_dir: Path, keep: int = KEEP) -> None:
        self._run_dir = run_dir
        self.folder = run_dir / "checkpoints"
        self._keep = keep
        self.settings: Settings = {}
        """Stored in each checkpoint, to report changes when a training run resumes."""
        self.best: tuple[float, int] | None = None
        """The best test result so far (higher is better) and its step, whose checkpoint is kept."""
        self._start = 0
        self._first = 0
        """The start with which this training began; this one, unless it resumed."""
        self._damaged: set[Path] = set()

    def newest_first(self) -> list[Saved]:
        """Return all complete checkpoints, newest first."""
        found = map(Saved.at, self.folder.glob("start-*"))
        whole = (one for one in found if one)
        return sorted(whole, key=lambda one: (one.start, one.step), reverse=True)

    def lost(self) -> list[str]:
        """Return the names of complete saves whose manifest is missing."""
        found = (path for path in self.folder.glob("start-*") if NAME.fullmatch(path.name))
        return sorted(path.name for path in found if _lacks_manifest(path))

    def take_over(self, *, resumes: bool) -> None:
        """Take the next start number, which supersedes the saves of earlier starts.

        A start that `resumes` may follow one that seems to run on a hung node: the earlier one ends
        when it notices.

        Raises:
            UsageError: another training runs in the folder; or `checkpoints` is not a folder.
        """
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(
                f"{self.folder} is not a folder, so checkpoints cannot be written there. "
                "Move it away, or set RUN_DIR to another folder."
            )
        self._run_dir.mkdir(parents=True, exist_ok=True)
        self._lock(resumes)
        while not self._start:
            number = 1 + self._latest_start()
            try:
                (self._run_dir / f".start-{number:04}").touch(exist_ok=False)
            except FileExistsError:
                continue  # another process has just taken it
            self._start = self._first = number
        for token in self._run_dir.glob(".start-*"):
            if _number(token) < self._start:
                token.unlink(missing_ok=True)

    def _lock(self, resumes: bool) -> None:
        """Lock metrics.jsonl for the life of this process; the file must stay open."""
        kind = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._locked = os.open(self._run_dir / METRICS, kind, 0o644)
        try:
            fcntl.flock(self._locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if not resumes:
                raise UsageError(
                    f"Another training is running in {self._run_dir}. Set RUN_DIR to another "
                    f"folder, or stop it first: touch {self._run_dir / 'stop'}."
                ) from error
        except OSError:
            pass  # some parallel file systems do not support locks

    def continues(self, saved: Saved | None) -> None:
        """Record that this start resumes from a checkpoint; older ones of its training may go.

        None: there are only interrupted saves to resume from, which may go.
        """
        self._first = saved.first_start() if saved else 1

    def _latest_start(self) -> int:
        tokens = [_number(path) for path in self._run_dir.glob(".start-*")]
        return max([*tokens, *(one.start for one in self.newest_first())], default=0)

    def is_best(self, figure: float, step: int) -> bool:
        """Return whether a test result is the best so far; if so, its checkpoint will be kept."""
        if self.best and figure <= self.best[0]:
            return False
        self.best = figure, step
        return True

    def is_followed(self) -> bool:
        """Return whether a later start of this training exists; checked once a second."""
        return any(_number(token) > self._start for token in self._run_dir.glob(".start-*"))

    def begin(self, step: int) -> Saved:
        """Create an empty folder for a save; its files do not count before `commit`.

        Raises:
            Overtaken: a later start of this training has taken over.
        """
        if self._latest_start() > self._start:
            raise Overtaken(
                f"Start {self._latest_start()} of this training works in the same run folder, and "
                f"this one is start {self._start}. It ends without saving."
            )
        folder = self.folder / f"start-{self._start:04}-step-{step:08}"
        shutil.rmtree(folder, ignore_errors=True)  # from a failed save
        folder.mkdir(parents=True)
        (folder / UNFINISHED).touch()
        sync(folder)
        return Saved(folder, self._start, step)

    def commit(self, saved: Saved, at: Position) -> None:
        """Complete a save: write its manifest, then remove old checkpoints."""
        content = {
            "position": asdict(at),
            "files": saved.files,
            "attempt": attempt(),
            "first_start": self._first,
            "settings": dict(self.settings),
            "best": self.best,
        }
        whole = json.dumps({"content": content, "sha256": seal(content)}, indent=1).encode()
        write_whole(saved.folder / MANIFEST, whole)
        sync(self.folder)
        (saved.folder / UNFINISHED).unlink(missing_ok=True)
        usable = [one for one in self._own() if one.folder not in self._damaged]
        best = [one for one in usable if self.best and one.step == self.best[1]]
        kept = [one.folder for one in (*usable[: self._keep], *best[:1])]
        for other in self.folder.glob("start-*"):
            named = NAME.fullmatch(other.name)
            # Never remove what a later start or another training run has saved.
            ours = named and self._first <= int(named[1]) <= self._start
            if ours and other not in kept:
                shutil.rmtree(other, ignore_errors=True)
        # Repartitioned by an attempt that was killed while it resumed (strategies/zero.py).
        shutil.rmtree(self.folder / ".universal", ignore_errors=True)

    def drop(self, saved: Saved) -> None:
        """Remove the files of a failed save, which may fill the disk."""
        if (saved.folder / MANIFEST).exists():
            return
        with suppress(OSError):
            for path in saved.folder.iterdir():
                os.truncate(path, 0)  # PyTorch may still have it open, which keeps its disk space
        shutil.rmtree(saved.folder, ignore_errors=True)

    def distrust(self, folder: Path) -> None:
        """Mark a checkpoint as unusable, so that the next save removes it."""
        self._damaged.add(folder)

    def discard(self, step: int) -> bool:
        """Remove this start's checkpoint of a step, if an older one is left; return whether."""
        kept = self._own()
        bad = [one for one in kept if (one.start, one.step) == (self._start, step)]
        if not bad or len(kept) < 2:
            return False
        shutil.rmtree(bad[0].folder, ignore_errors=True)
        return True

    def _own(self) -> list[Saved]:
        return [one for one in self.newest_first() if one.start >= self._first]


def _lacks_manifest(folder: Path) -> bool:
    if (folder / MANIFEST).is_file() or (folder / UNFINISHED).exists():
        return False
    return folder.is_dir() and any(folder.iterdir())


def _number(token: Path) -> int:
    named = _TOKEN.fullmatch(token.name)
    return int(named[1]) if named else 0


# ------------------------------------------------------------------------ by all ranks at once


Result = TypeVar("Result")


def on_all_ranks(
    work: Callable[[], Result], folder: Path, group: dist.ProcessGroup | None = None
) -> list[Result]:
    """Run each rank's part of a save in a folder; return the results of all parts.

    The ranks agree over `group`, or the training's group.

    Raises:
        SaveFailed: a rank's part failed; raised on every rank.
        TrainingError: raised by a rank's part.
    """
    outcome: Result | TrainingError
    try:
        outcome = work()
    except TrainingError as error:
        outcome = error
    except (OSError, RuntimeError) as error:  # PyTorch's writer raises RuntimeError on a full disk
        outcome = SaveFailed(
            f"The checkpoint could not be written ({cause(error, folder)}). Check the free space "
            "and the quota."
        )
    done = []
    for result in ranks.gather(outcome, group):
        if isinstance(result, TrainingError):
            raise result
        done.append(result)
    return done


def on_first_rank(
    me: ranks.Ranks,
    work: Callable[[], Result],
    folder: Path,
    group: dist.ProcessGroup | None = None,
) -> Result:
    """Run a part of a save on rank 0; return its result on every rank; see `on_all_ranks`."""
    return cast("Result", on_all_ranks(lambda: work() if me.rank == 0 else None, folder, group)[0])


def newest_whole(checkpoints: Checkpoints, me: ranks.Ranks) -> Saved | None:
    """Return the newest undamaged checkpoint, the same on every rank, or None.

    Each rank reads its share of the files. A damaged checkpoint is reported, and the previous one
    is used.

    Raises:
        UsageError: there are checkpoints, but none is intact.
    """
    names = ranks.gather([one.folder.name for one in checkpoints.newest_first()])[0]
    for name in names:
        one = Saved.at(checkpoints.folder / name)
        if one is None:
            damage = f"rank {me.rank} does not see it: RUN_DIR must be on a shared file system"
        else:
            damage = one.damage(me.rank, me.world_size)
        damages = [found for found in ranks.gather(damage) if found]
        if one and not damages:
            return one
        checkpoints.distrust(checkpoints.folder / name)
        if me.rank == 0:
            print(f"checkpoints/{name} is damaged: {damages[0]}", file=sys.stderr, flush=True)
    if names:
        raise UsageError(
            f"None of the {len(names)} checkpoints in {checkpoints.folder} is complete. Restore "
            "one from a copy, or move the folder away to start from the beginning."
        )
    lost = ranks.gather(checkpoints.lost())[0]
    if lost:
        raise UsageError(
            f"{checkpoints.folder / lost[-1]} has lost its {MANIFEST}, and no other checkpoint "
            "is complete. Restore it from a copy, or move the folder away to start from the "
            "beginning."
        )
    return None
