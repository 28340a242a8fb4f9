"""Checkpoints that are complete or absent, and protected from earlier starts of the run.

    checkpoints/start-0002-step-00000120/state.pt        what a save wrote, or each rank's part
    checkpoints/start-0002-step-00000120/manifest.json   size and SHA-256 of each file; written last

A folder without a manifest is a save that was cut: it doesn't count. While a save is under way
the folder has the file .unfinished; without that and without a manifest, somebody took the
manifest away. No save writes into the files of another.

Each start of a training in a run folder takes the next number (the file .start-0002 in the run
folder), and the newest checkpoint is that of the highest start: a node that comes back from the
dead and goes on saving can't put its checkpoint before that of the attempt which took over. A
start that did not resume begins another training: it never removes what earlier starts saved. The
manifest says with which start its training began.
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
"""Checkpoints that stay. The older one is for the day on which the newer can't be read."""
OVERTAKEN = 87
"""Exit code of a training that found a later start of itself in its run folder."""
_TOKEN = re.compile(r"\.start-(\d{4,})")


class Overtaken(TrainingError):
    """A later start of this training writes the checkpoints now."""

    code = OVERTAKEN


class SaveFailed(TrainingError):
    """A checkpoint failed; earlier ones are unaffected."""

    def after(self, last: Saved | None) -> SaveFailed:
        """The same error, with the checkpoint that can be resumed."""
        kept = f"{last.folder.name} is whole" if last else "there is no checkpoint before it"
        return SaveFailed(f"{str(self).removesuffix('.')}; {kept}.")


class Checkpoints:
    """The checkpoints of a run folder, as rank 0 writes them. Every rank may read them."""

    def __init__(self, run_dir: Path, keep: int = KEEP) -> None:
        """Set the folder; nothing is written before `take_over`."""
        self._run_dir = run_dir
        self.folder = run_dir / "checkpoints"
        self._keep = keep
        self.settings: Settings = {}
        """Stored in each checkpoint, to report changes when a training resumes."""
        self.best: tuple[float, int] | None = None
        """The best test result so far, more is better, and its step, whose checkpoint is kept."""
        self._start = 0
        self._first = 0
        """The start with which this training began; this one, unless it resumed."""
        self._damaged: set[Path] = set()

    def newest_first(self) -> list[Saved]:
        """All checkpoints whose save was finished."""
        found = map(Saved.at, self.folder.glob("start-*"))
        return sorted((one for one in found if one), key=_age, reverse=True)

    def lost(self) -> list[str]:
        """Names of finished saves whose manifest is gone."""
        found = (path for path in self.folder.glob("start-*") if NAME.fullmatch(path.name))
        return sorted(path.name for path in found if _lacks_manifest(path))

    def take_over(self, *, resumes: bool) -> None:
        """Take the next number: saves of an earlier start of this training are now older.

        A start that `resumes` may follow one that seems to run, on a node that hangs: the earlier
        one ends when it sees that.

        Raises:
            UsageError: another training runs there, which would write the same steps; or what
                should be the folder of checkpoints is a file.
        """
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(
                f"{self.folder} is not a folder, so that checkpoints could not be written. "
                "Move it away, or set RUN_DIR to another folder."
            )
        self._run_dir.mkdir(parents=True, exist_ok=True)
        self._lock(resumes)
        while not self._start:
            number = 1 + self._latest_start()
            try:
                (self._run_dir / f".start-{number:04}").touch(exist_ok=False)
            except FileExistsError:
                continue  # another process took it in this moment
            self._start = self._first = number
        for token in self._run_dir.glob(".start-*"):
            if _number(token) < self._start:
                token.unlink(missing_ok=True)

    def _lock(self, resumes: bool) -> None:
        """Lock metrics.jsonl as long as this process lives: closed, it would lose the lock."""
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
            pass  # some parallel file systems have no locks

    def continues(self, saved: Saved | None) -> None:
        """Record that this start resumes from a checkpoint: older ones of its training may go.

        None: it was asked to resume, and only saves that were cut are there. They may go.
        """
        self._first = saved.first_start() if saved else 1

    def _latest_start(self) -> int:
        tokens = [_number(path) for path in self._run_dir.glob(".start-*")]
        return max([*tokens, *(one.start for one in self.newest_first())], default=0)

    def is_best(self, figure: float, step: int) -> bool:
        """Whether a test was better than all before; then its step's checkpoint will stay."""
        if self.best and figure <= self.best[0]:
            return False
        self.best = figure, step
        return True

    def is_followed(self) -> bool:
        """Whether a later start of this training has taken its number; checked once a second."""
        return any(_number(token) > self._start for token in self._run_dir.glob(".start-*"))

    def begin(self, step: int) -> Saved:
        """Make an empty folder for a save; nothing in it counts before `commit`.

        Raises:
            Overtaken: a later start of this training has taken over.
        """
        if self._latest_start() > self._start:
            raise Overtaken(
                f"Start {self._latest_start()} of this training works in the same run folder, and "
                f"this one is start {self._start}. It ends without saving."
            )
        folder = self.folder / f"start-{self._start:04}-step-{step:08}"
        shutil.rmtree(folder, ignore_errors=True)  # a save that failed
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
            # What a later start saves is none of ours, nor what another training has saved.
            ours = named and self._first <= int(named[1]) <= self._start
            if ours and other not in kept:
                shutil.rmtree(other, ignore_errors=True)
        # What an attempt that was killed while it resumed had divided anew (strategies/zero.py).
        shutil.rmtree(self.folder / ".universal", ignore_errors=True)

    def drop(self, saved: Saved) -> None:
        """Remove the files of a failed save: they may fill the disk."""
        if (saved.folder / MANIFEST).exists():
            return
        with suppress(OSError):
            for path in saved.folder.iterdir():
                os.truncate(path, 0)  # PyTorch may still have it open, which keeps its room
        shutil.rmtree(saved.folder, ignore_errors=True)

    def distrust(self, folder: Path) -> None:
        """Let the next save remove an unusable checkpoint."""
        self._damaged.add(folder)

    def discard(self, step: int) -> bool:
        """Remove this start's checkpoint of a step if an older one is left; whether it did."""
        kept = self._own()
        bad = [one for one in kept if (one.start, one.step) == (self._start, step)]
        if not bad or len(kept) < 2:
            return False
        shutil.rmtree(bad[0].folder, ignore_errors=True)
        return True

    def _own(self) -> list[Saved]:
        """Those of this training, the newest first, including a later start's."""
        return [one for one in self.newest_first() if one.start >= self._first]


def _lacks_manifest(folder: Path) -> bool:
    if (folder / MANIFEST).is_file() or (folder / UNFINISHED).exists():
        return False
    return folder.is_dir() and any(folder.iterdir())


def _age(one: Saved) -> tuple[int, int]:
    return one.start, one.step


def _number(token: Path) -> int:
    named = _TOKEN.fullmatch(token.name)
    return int(named[1]) if named else 0


# ------------------------------------------------------------------------ by all ranks at once


Result = TypeVar("Result")


def on_all_ranks(
    work: Callable[[], Result], folder: Path, group: dist.ProcessGroup | None = None
) -> list[Result]:
    """Do each rank's part of a save in a folder; return the results of the parts.

    The ranks agree over `group`, or over that of the training.

    Raises:
        SaveFailed: a rank couldn't do its part. Every rank raises, and none waits for it.
        TrainingError: what a rank's part raised.
    """
    outcome: Result | TrainingError
    try:
        outcome = work()
    except TrainingError as error:
        outcome = error
    except (OSError, RuntimeError) as error:  # PyTorch's writer turns a full disk into the latter
        outcome = SaveFailed(
            f"The checkpoint could not be written ({cause(error, folder)}). Look at the free space "
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
    """Do a part of a save on rank 0; return its result on every rank.

    Raises:
        TrainingError: as on_all_ranks.
    """
    return cast("Result", on_all_ranks(lambda: work() if me.rank == 0 else None, folder, group)[0])


def newest_whole(checkpoints: Checkpoints, me: ranks.Ranks) -> Saved | None:
    """The newest undamaged checkpoint, the same on every rank, or None.

    Each rank reads its share of the files. A damaged one is named, and the one before it is used.

    Raises:
        UsageError: there are checkpoints, and none is whole.
    """
    names = ranks.gather([one.folder.name for one in checkpoints.newest_first()])[0]
    for name in names:
        one = Saved.at(checkpoints.folder / name)
        if one is None:
            damage = f"rank {me.rank} does not see it: RUN_DIR has to be on a shared file system"
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
            f"None of the {len(names)} checkpoints in {checkpoints.folder} is whole. "
            "Bring one back from a copy, or move the folder away to start from the beginning."
        )
    lost = ranks.gather(checkpoints.lost())[0]
    if lost:
        raise UsageError(
            f"{checkpoints.folder / lost[-1]} has lost its {MANIFEST}, and no other checkpoint is "
            "whole. Bring it back from a copy, or move the folder away to start from the beginning."
        )
    return None
