"""The files of one checkpoint: forced to disk, with sizes and checksums."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from engine.exits import UsageError

Tree = dict[str, dict[str, object]]
"""Parts by name, of tensors, numbers, text and lists, as loadable with weights_only."""
MANIFEST = "manifest.json"
UNFINISHED = ".unfinished"
"""File that marks a checkpoint's folder until its manifest exists."""
METADATA = ".metadata"
"""torch.distributed.checkpoint's list of parts (saving/sharded.py)."""
NAME = re.compile(r"start-(\d{4,})-step-(\d{8,})")
"""Name of a checkpoint's folder: numbers of start and step."""


def of_this_trainer(folder: Path, name: str) -> Path:
    """Return the path of the file in a checkpoint; UsageError if another trainer made it."""
    if not (folder / name).is_file():
        raise UsageError(
            f"{folder} has no {name}: another trainer made it. Resume with that one, or "
            "start in an empty run folder."
        )
    return folder / name


def load(path: Path, device: torch.device) -> Tree:
    """Load a tree written by torch.save onto the device.

    Accepts only tensors and plain values (weights_only), so that a checkpoint cannot run code.

    Raises:
        UsageError: the file is not a checkpoint.
    """
    try:
        tree = torch.load(path, map_location=device, weights_only=True)
    except OSError:
        raise
    except Exception as error:  # on garbage, the unpickler may raise almost any error
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(
            f"{path} is not a readable checkpoint ({reason}). "
            "Move it away to start from the beginning."
        ) from error
    if not isinstance(tree, dict) or not all(isinstance(part, dict) for part in tree.values()):
        raise UsageError(f"{path} is not a checkpoint. Move it away to start from the beginning.")
    return tree


Files = dict[str, dict[str, object]]
"""Size in bytes and SHA-256 of each file, by file name."""


@dataclass(frozen=True)
class Saved:
    """A checkpoint, identified by start and step."""

    folder: Path
    start: int
    step: int
    files: Files = field(default_factory=dict)

    @classmethod
    def at(cls, folder: Path) -> Saved | None:
        """Return the checkpoint in a folder; None for other folders and interrupted saves."""
        named = NAME.fullmatch(folder.name)
        if not named or not (folder / MANIFEST).is_file():
            return None
        return cls(folder, int(named[1]), int(named[2]))

    def first_start(self) -> int:
        """The start with which its training began; its own if the manifest lacks it."""
        return int(self._content().get("first_start", self.start))

    def best(self) -> tuple[float, int] | None:
        """The best test result at that time, and its step; None if none is kept."""
        found = self._content().get("best")
        return (float(found[0]), int(found[1])) if found else None

    def settings(self) -> Settings:
        """The settings of the training."""
        return dict(self._content().get("settings", {}))

    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / MANIFEST).read_bytes())["content"]
        return content

    def read(self) -> Position:
        """Read the manifest and fill `files`; return the position; UsageError if damaged."""
        try:
            whole = json.loads((self.folder / MANIFEST).read_bytes())
            content = whole["content"]
            if whole["sha256"] != seal(content):
                raise ValueError("its own checksum does not match")
            int(content.get("first_start", 0))
            self.files.update(content["files"])
            return Position(**content["position"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"{self.folder / MANIFEST} can't be read ({error}). "
                "Move the checkpoint away to use the one before it."
            ) from error

    def damage(self, part: int = 0, parts: int = 1) -> str:
        """Return the damage of the files, or of every `parts`-th file; empty if intact.

        Reads everything: otherwise a flipped bit on disk would load as another weight.
        """
        try:
            self.read()
        except UsageError as error:
            return str(error).partition(". ")[0]
        for name in sorted(self.files)[part::parts]:
            path, known = self.folder / name, self.files[name]
            try:
                size = path.stat().st_size
                if size != known["bytes"]:
                    return f"{name} has {size} bytes instead of {known['bytes']}"
                if checksum(path) != known["sha256"]:
                    return f"{name} has a different checksum than the manifest"
            except OSError as error:
                return f"{name} can't be read ({error.strerror})"
        return ""


def describe(folder: Path, names: list[str]) -> Files:
    """Force files to disk; return the size and checksum of each, for the manifest."""
    known: Files = {}
    for name in names:
        path = folder / name
        sync(path)
        known[name] = {"bytes": path.stat().st_size, "sha256": checksum(path)}
    return known


def seal(content: object) -> str:
    """Return the manifest's own checksum."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: `path` always has the complete old or new content.

    Raises:
        OSError: the file cannot be written; `path` keeps its old content.
    """
    aside = path.with_name(f".{path.name}.part")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    sync(path.parent)


PROBE = 2**20
"""Bytes to write to test whether a disk has space."""


def cause(error: Exception, folder: Path) -> str:
    """Return why a folder is not writable, in the system's words if possible.

    PyTorch's writer reports only `iostream error` or similar for a full disk or quota. So this
    writes a few bytes in Python, to get the system's error.
    """
    if not isinstance(error, OSError) or not error.strerror:
        probe = folder / ".probe"
        try:
            with probe.open("wb") as file:
                file.write(bytes(PROBE))
                file.flush()
                os.fsync(file.fileno())
        except OSError as found:
            error = OSError(found.errno, found.strerror)  # do not leave the test file behind
        with suppress(OSError):
            probe.unlink(missing_ok=True)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f": {error.filename}" if error.filename else "")
    return (str(error).splitlines() or [type(error).__name__])[0]


def sync(path: Path) -> None:
    """Force a file's content, or a folder's entries (a rename), to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file, as printed by `sha256sum`."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(2**20):  # file_digest needs Python 3.11
            found.update(chunk)
    return found.hexdigest()


Settings = Mapping[str, object]
"""Settings that may change on resume, but are reported: numbers and texts."""


def changes(before: Settings, now: Settings) -> str:
    """Return the differences between a checkpoint's settings and the current ones, in words."""
    both = [name for name in now if name in before and before[name] != now[name]]
    return ", ".join(f"{name} from {before[name]} to {now[name]}" for name in both)


@dataclass(frozen=True)
class Position:
    """A training run's progress, and the settings that must not change on resume."""

    model: str
    optimizer: str
    seed: int
    train_samples: int
    world_size: int
    step: int = 0
    """Optimizer steps done."""
    epoch: int = 0
    """The current epoch, counted from 0."""
    samples: int = 0
    """Number of the epoch's used samples; not in steps, so that a training run with a different
    global batch resumes at the right place."""

    def check_continues(self, saved: Position) -> None:
        """Raise UsageError if this would resume another training: losses would be meaningless."""
        for name in ("model", "optimizer", "seed", "train_samples"):
            if getattr(self, name) != getattr(saved, name):
                raise UsageError(
                    f"The checkpoint was made with {name.replace('_', ' ')} "
                    f"{getattr(saved, name)}, but this run uses {getattr(self, name)}. "
                    "Resume with the same arguments, or start in an empty run folder."
                )
