"""Files that are either whole or not there: written beside their place, synced, renamed.

A job killed at its time limit in the middle of a save must not lose the previous checkpoint.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Protocol

import torch

from reporting import UsageError

Tree = dict[str, dict[str, object]]
"""Parts by name, each of tensors, numbers, text and lists: what weights_only loading accepts."""


@dataclass(frozen=True)
class Position:
    """How far a training has come, and what may not change when it continues."""

    model: str
    seed: int
    train_samples: int
    world_size: int
    step: int = 0
    """Optimizer steps done."""
    epoch: int = 0
    """The current epoch, counted from 0."""
    samples: int = 0
    """Images of that epoch already used: a number of samples, not of steps, so that a training
    with another global batch continues at the right place."""

    def check_continues(self, saved: Position) -> None:
        """Refuse to continue a training of something else.

        Raises:
            UsageError: model, seed or amount of data differ: the losses would make no sense.
        """
        for name in ("model", "seed", "train_samples"):
            if getattr(self, name) != getattr(saved, name):
                raise UsageError(
                    f"The checkpoint was made with {name.replace('_', ' ')} "
                    f"{getattr(saved, name)}, this run asks for {getattr(self, name)}. "
                    "Resume with the same arguments, or start in an empty run folder."
                )

    def as_tree(self) -> dict[str, object]:
        """The fields as plain values."""
        return asdict(self)

    @classmethod
    def from_tree(cls, tree: object) -> Position:
        """Read a position back.

        Raises:
            UsageError: a field is missing or of another type.
        """
        values = tree if isinstance(tree, dict) else {}
        names = {field.name for field in fields(cls)}
        if set(values) != names:
            raise UsageError(
                "The checkpoint is not one of this trainer's. Start in an empty run folder."
            )
        return cls(**values)


class Writer(Protocol):
    """Writes content into an open binary file."""

    def __call__(self, file: IO[bytes], /) -> object:
        """Write all of it."""


def write_whole(path: Path, write: Writer) -> None:
    """Write a file so that `path` holds the whole old or the whole new content at every moment.

    Raises:
        OSError: the disk is full or the like; `path` keeps its old content.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.part")
    try:
        with aside.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    sync(path.parent)


def sync(path: Path) -> None:
    """Force a file's content, or a folder's entries (a rename), to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def save(path: Path, tree: Tree) -> None:
    """Save a tree of tensors; see write_whole for what an interruption leaves."""
    write_whole(path, lambda file: torch.save(tree, file))


def load(path: Path, device: torch.device) -> Tree:
    """Load what save wrote, onto the device.

    Only tensors and plain values are accepted (weights_only): a checkpoint can't run code.

    Raises:
        UsageError: the file isn't a checkpoint.
    """
    try:
        tree = torch.load(path, map_location=device, weights_only=True)
    except OSError:
        raise
    except Exception as error:  # garbage makes the unpickler raise almost anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(
            f"{path} is not a checkpoint that can be read ({reason}). "
            "Move it away to start from the beginning."
        ) from error
    if not isinstance(tree, dict) or not all(isinstance(part, dict) for part in tree.values()):
        raise UsageError(f"{path} is not a checkpoint. Move it away to start from the beginning.")
    return tree
