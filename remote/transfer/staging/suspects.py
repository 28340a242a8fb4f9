"""What must not be staged without a word of the user: files that look like secrets."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lumitui.remote.source.guard import covering, head_of
from lumitui.remote.source.scan import opened
from lumitui.remote.source.secret_names import secret_name


@dataclass(frozen=True)
class Allowed:
    """The files of an item that the user wants to be sent, whatever they look like."""

    words: Sequence[str] = ()
    """Patterns as `ship_secrets:` has them: from the item, or from the folder that it is in."""
    heeded: set[str] = field(default_factory=set)
    """Those that name a file which looks like a secret, or which others may not read."""

    def names(self, root: Path, path: str) -> bool:
        """Whether a pattern names the file at `path` of the item at `root`."""
        own = root.name if path == "." else f"{root.name}/{path}"
        word = covering(self.words, path) or covering(self.words, own)
        if word is not None:
            self.heeded.add(word)
        return word is not None


def looks_like(root: Path, path: str) -> str:
    """Return which secret the file at `path` of the folder `root` seems to be; "": none.

    The names of the folders count that the item is in: all of `~/.ssh` is one.

    Raises:
        OSError: its contents decide, and cannot be read.
    """
    rule = secret_name("/".join([*root.parts[-2:], path]))
    if rule is None or (
        rule.holds and not rule.holds(head_of(opened(Path(os.path.realpath(root / path)))))
    ):
        return ""
    return rule.what


def private(root: Path, files: dict[str, os.stat_result]) -> list[str]:
    """Return what other people of this machine may not read: the folder as ".", or files."""
    if root.is_dir() and not root.stat().st_mode & 0o004:
        return ["."]
    return [path for path, info in files.items() if not info.st_mode & 0o004]
