"""The files of one checkpoint: forced to disk, and known by size and checksum."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from engine.reporting import UsageError
from saving.disk import checksum, sync
from saving.position import Position, Settings

Tree = dict[str, dict[str, object]]
"""Parts by name, each of tensors, numbers, text and lists: what weights_only loading accepts."""
MANIFEST = "manifest.json"
UNFINISHED = ".unfinished"
"""Stands in a checkpoint's folder until its manifest does."""
METADATA = ".metadata"
"""What torch.distributed.checkpoint calls its list of parts (saving/sharded.py)."""
NAME = re.compile(r"start-(\d{4,})-step-(\d{8,})")
"""Of a checkpoint's folder: the number of the start, and of the step."""


def load(path: Path, device: torch.device) -> Tree:
    """Load a tree that torch.save wrote, onto the device.

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


Files = dict[str, dict[str, object]]
"""Size in bytes and SHA-256 of each file, by its name in the folder."""


@dataclass(frozen=True)
class Saved:
    """A checkpoint: of a start of the training, after a step."""

    folder: Path
    start: int
    step: int
    files: Files = field(default_factory=dict)

    @classmethod
    def at(cls, folder: Path) -> Saved | None:
        """The checkpoint of a folder, by its name; None for any other, and for a cut save."""
        named = NAME.fullmatch(folder.name)
        if not named or not (folder / MANIFEST).is_file():
            return None
        return cls(folder, int(named[1]), int(named[2]))

    def first_start(self) -> int:
        """The start with which its training began; its own where the manifest doesn't say."""
        return int(self._content().get("first_start", self.start))

    def settings(self) -> Settings:
        """With what it was made."""
        return dict(self._content().get("settings", {}))

    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / MANIFEST).read_bytes())["content"]
        return content

    def read(self) -> Position:
        """Read the manifest: the position, and into `files` what is known of each file.

        Raises:
            UsageError: the manifest itself is damaged.
        """
        try:
            whole = json.loads((self.folder / MANIFEST).read_bytes())
            content = whole["content"]
            if whole["sha256"] != seal(content):
                raise ValueError("its own checksum is another")
            int(content.get("first_start", 0))
            self.files.update(content["files"])
            return Position.from_tree(content["position"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"{self.folder / MANIFEST} can't be read ({error}). "
                "Move the checkpoint away to use the one before it."
            ) from error

    def damage(self, part: int = 0, parts: int = 1) -> str:
        """What is wrong with the files, or with every `parts`-th of them; empty when they're whole.

        Everything is read: a bit that flipped on a disk loads as another weight otherwise.
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
                    return f"{name} has another checksum than in the manifest"
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
    """The manifest's own checksum."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
