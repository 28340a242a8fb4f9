"""One save after another, while training waits or continues.

In the background, a save has three parts. First, every rank copies the changing state. Then each
rank writes and verifies its files in a thread. Finally, rank 0 commits the save. The ranks agree
over a separate process group, so that messages cannot mix with the training's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from engine import ranks
from saving.checkpoint import Checkpoints, SaveFailed, on_all_ranks, on_first_rank
from saving.files import Position, Saved, describe

LONGEST = timedelta(hours=2)
"""Maximum seconds for one rank to write while the others wait. The training's group would time out
after 10 minutes, which a whole model on a slow disk may take. gloo detects a dead rank immediately.
"""
Result = TypeVar("Result")
Write: TypeAlias = Callable[[], list[str]]
"""Writes a rank's part of a save; returns the names of its files in the save's folder."""
Stage: TypeAlias = Callable[[Path, bool], Write]
"""Captures this rank's state for a save in a folder, as a copy if training continues."""


@dataclass(frozen=True)
class Ended:
    """A completed or failed save."""

    step: int
    seconds: float
    """Seconds from its start to its manifest."""
    blocked: float
    """Seconds that the training waited for it."""
    saved: Saved | None = None
    error: SaveFailed | None = None

    @property
    def path(self) -> str:
        """Its path in the run folder."""
        return f"checkpoints/{self.saved.folder.name}" if self.saved else ""

    @property
    def size(self) -> int:
        """Bytes of all files of all ranks."""
        files = self.saved.files if self.saved else {}
        return sum(int(str(known["bytes"])) for known in files.values())


class Saver:
    """Makes the checkpoints of a training run. All ranks call all methods but `ended`, in order."""

    def __init__(self, me: ranks.Ranks, checkpoints: Checkpoints, *, background: bool) -> None:
        """Create a process group for saves, which is a collective."""
        self._me = me
        self._checkpoints = checkpoints
        self.background = background
        """Whether training continues while a checkpoint is written."""
        self._group = dist.new_group(backend="gloo", timeout=LONGEST)
        self.began = time.monotonic()
        """When the last save (or the training) began."""
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._ended: list[Ended] = []
        self.last: Saved | None = None
        """The newest complete checkpoint, the same on every rank unless a save is running."""

    def begin(self, at: Position, stage: Stage) -> None:
        """Start a save; afterwards the weights may change. Waits for a running save.

        A failure is reported by `ended` and loses only this checkpoint.

        Raises:
            TrainingError: something other than the save failed; raised on every rank.
        """
        self.wait()
        self.began = began = time.monotonic()
        try:
            place, write = self._stage(at, stage)
        except SaveFailed as error:
            self._tell(at, began, error=error)
            return
        blocked = time.monotonic() - began if self.background else None

        def work() -> None:
            try:
                self._finish(place, at, write)
                self._tell(at, began, blocked, saved=place)
            except SaveFailed as error:
                self._tell(at, began, blocked, error=error)
            except Exception as error:  # `wait` raises it again
                self._error = error

        if self.background:
            self._thread = threading.Thread(target=work, name="save", daemon=True)
            self._thread.start()
        else:  # not in a thread: its current GPU would be another
            work()
            self.wait()

    def save(self, at: Position, stage: Stage) -> Saved:
        """Save, and return once it is complete. Waits for a running save.

        If only the position has changed since the last save (a whole epoch), writes only the
        manifest.

        Raises:
            TrainingError: the save failed; raised on every rank.
        """
        self.wait()
        if self.last and self.last.step == at.step:
            last = self.last
            # Its parts remain those of the ranks that wrote them, whichever ranks resume from them.
            self._first(
                lambda: self._checkpoints.commit(
                    last, replace(at, world_size=last.read().world_size)
                )
            )
            return last
        began = time.monotonic()
        place, write = self._stage(at, stage)
        self._finish(place, at, write)
        self._tell(at, began, saved=place)
        return place

    def wait(self) -> None:
        """Wait for the running save; TrainingError if something other than the save failed."""
        if self._thread:
            self._thread.join()
            self._thread = None
        if self._error:
            raise self._error

    def ended(self) -> list[Ended]:
        """Return the saves that ended since the last call, without waiting."""
        told, self._ended = self._ended, []
        return told

    def _tell(
        self,
        at: Position,
        began: float,
        blocked: float | None = None,
        *,
        saved: Saved | None = None,
        error: SaveFailed | None = None,
    ) -> None:
        seconds = time.monotonic() - began
        waited = seconds if blocked is None else blocked
        self._ended.append(Ended(at.step, seconds, waited, saved, error))

    def _stage(self, at: Position, stage: Stage) -> tuple[Saved, Write]:
        place = self._first(lambda: self._checkpoints.begin(at.step))
        staged: list[Write] = []
        with self._dropped_if_it_fails(place, None):
            on_all_ranks(lambda: staged.append(stage(place.folder, self.background)), place.folder)
        return place, staged[0]

    def _finish(self, place: Saved, at: Position, write: Write) -> None:
        folder, group = place.folder, self._group
        with self._dropped_if_it_fails(place, group):
            for files in on_all_ranks(lambda: describe(folder, write()), folder, group):
                place.files.update(files)
            on_first_rank(self._me, lambda: self._checkpoints.commit(place, at), folder, group)
        self.last = place

    def _first(self, work: Callable[[], Result]) -> Result:
        """Do rank 0's work in the folder of all checkpoints."""
        try:
            return on_first_rank(self._me, work, self._checkpoints.folder)
        except SaveFailed as error:
            raise error.after(self.last) from error

    @contextmanager
    def _dropped_if_it_fails(self, place: Saved, group: dist.ProcessGroup | None) -> Iterator[None]:
        """Free the disk space of a failed save, and report the remaining checkpoint."""
        try:
            yield
        except SaveFailed as error:
            on_first_rank(self._me, lambda: self._checkpoints.drop(place), place.folder, group)
            raise error.after(self.last) from error


if TYPE_CHECKING:  # importing it takes almost a second, and only fsdp needs it
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor


class Staging:
    """Memory for the copies, reused by each save: new memory takes longer than the copy.

    Pinned if the state is on a GPU, so that all copies run concurrently.
    """

    def __init__(self) -> None:
        """Start without memory; the first copy allocates it."""
        self._kept: dict[str, Tensor] = {}
        self._meshes: dict[tuple[int, ...], DeviceMesh] = {}

    def copied(self, state: object, name: str = "") -> object:
        """Return a tree of dictionaries, lists and tuples with every tensor copied to main memory.

        Two names of one tensor (tied weights) are also one tensor in the copy. Parts of distributed
        tensors stay such, because loading needs their place among the ranks. The result of an
        earlier call with the same `name` must no longer be in use.
        """
        done: dict[object, Tensor] = {}
        copy = self._of(state, name, done)
        if any(kept.is_pinned() for kept in done.values()):
            torch.cuda.synchronize()
        return copy

    def _of(self, value: object, name: str, done: dict[object, Tensor]) -> object:
        if isinstance(value, Tensor):
            whole = not hasattr(value, "to_local")
            return self._tensor(value, name, done) if whole else self._part(value, name, done)
        if isinstance(value, dict):
            return {key: self._of(one, f"{name}/{key}", done) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            parts = [self._of(one, f"{name}/{number}", done) for number, one in enumerate(value)]
            return parts if isinstance(value, list) else tuple(parts)
        return value

    def _tensor(self, one: Tensor, name: str, done: dict[object, Tensor]) -> Tensor:
        where = (one.device, one.data_ptr(), one.dtype, one.shape, one.stride())
        if where in done and one.numel():
            return done[where]
        kept = self._kept.get(name)
        if kept is None or kept.shape != one.shape or kept.dtype != one.dtype:
            kept = torch.empty_like(one, device="cpu", pin_memory=one.is_cuda)
            self._kept[name] = kept
        with torch.no_grad():
            kept.copy_(one, non_blocking=True)
        done[where] = kept
        return kept

    def _part(self, split: Tensor, name: str, done: dict[object, Tensor]) -> DTensor:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor

        one = cast("DTensor", split)
        shape = tuple(one.device_mesh.shape)
        if shape not in self._meshes:
            self._meshes[shape] = init_device_mesh("cpu", shape)
        return DTensor.from_local(
            self._tensor(one.to_local(), name, done),
            self._meshes[shape],
            one.placements,
            run_check=False,
            shape=one.shape,
            stride=one.stride(),
        )
