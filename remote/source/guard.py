"""Files to exclude because they look like secrets, and files to send anyway."""

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from lumitui.remote.site.secret_shapes import KeyMark, shape_of
from lumitui.remote.source.ignore import Patterns
from lumitui.remote.source.secret_names import HEAD_BYTES, NameRule, has_settings, secret_name


@dataclass(frozen=True)
class Suspect:
    """A file that looks like a secret."""

    path: str
    by: Literal["name", "contents"]
    what: str
    """What it looks like, as the end of a sentence."""
    line: int | None
    """Line of the apparent secret, from 1; None if the name decides."""
    source: str


class ScanGuard:
    """Decides on the files of one scan and records the decisions."""

    def __init__(self, ship: Sequence[str] = ()) -> None:
        """Use `ship`, the patterns of files to send although they look like secrets.

        A pattern is a path from the project's root; `*` matches any part of a name, `**` any
        folders, and a folder's name everything in it.
        """
        self.kept_back: list[Suspect] = []
        self.shipped: list[Suspect] = []
        """Suspected secrets that are sent anyway, because a pattern matches them."""
        self._ship = tuple(ship)
        self._used: set[str] = set()

    @property
    def unused(self) -> tuple[str, ...]:
        """The patterns that match no suspect."""
        return tuple(word for word in self._ship if word not in self._used)

    def names_secret(self, path: str, where: Callable[[], int], also: Iterable[str] = ()) -> bool:
        """Return whether the name of the file at `path`, or one in `also`, excludes it.

        `where` opens it.

        Raises:
            OSError: the contents decide, but cannot be read.
        """
        for name in (path, *also):
            rule = secret_name(name)
            if rule is not None and (rule.holds is None or rule.holds(head_of(where()))):
                what = rule.what if name == path else f"{rule.what}, because it is a link to {name}"
                return self._decide(Suspect(path, "name", what, None, rule.source))
        return False

    def link_rule(self, path: str) -> NameRule | None:
        """Return the rule by which a link's name shows that its target is a secret."""
        rule = secret_name(path)
        return rule if rule is not None and rule.holds is None else None

    def target_is_secret(self, link: str, target: str, path: str, rule: NameRule) -> bool:
        """Return whether a `link` with a secret's name excludes the file at `path`."""
        if path != target and not path.startswith(target + "/"):
            return False
        what = f"{rule.what}, according to the link {link}"
        return self._decide(Suspect(path, "name", what, None, rule.source))

    def holds_secret(self, path: str, marks: Iterable[KeyMark], also: Sequence[str] = ()) -> bool:
        """Return whether the contents of the file at `path` exclude it; see `names_secret`."""
        for mark in marks:
            shape = shape_of(mark)
            if shape.settings_only and not any(map(has_settings, (path, *also))):
                continue
            return self._decide(Suspect(path, "contents", shape.what, mark.line, shape.source))
        return False

    def _decide(self, suspect: Suspect) -> bool:
        word = covering(self._ship, suspect.path)
        if word is None:
            self.kept_back.append(suspect)
            return True
        self._used.add(word)
        if suspect.path not in {other.path for other in self.shipped}:
            self.shipped.append(suspect)
        return False


def covering(words: Iterable[str], path: str) -> str | None:
    """Return the first pattern that matches the file at `path`; see `ScanGuard`."""
    for word in words:
        if path == posixpath.normpath(word) or _covers(_anchored(word), path):
            return word
    return None


@lru_cache(maxsize=1000)
def _anchored(pattern: str) -> Patterns:
    line = re.sub(r"^(\./)*", "", pattern)
    return Patterns([b"/" + os.fsencode(line)])


def _covers(patterns: Patterns, path: str) -> bool:
    """Return whether a pattern matches the file or a folder above it."""
    seen = os.fsencode(path)
    if patterns.ignored(seen, folder=False):
        return True
    at = seen.find(b"/")
    while at != -1:
        if patterns.ignored(seen[:at], folder=True):
            return True
        at = seen.find(b"/", at + 1)
    return False


def head_of(descriptor: int) -> bytes:
    """Return the start of an open file, which decides for some names; closes the file."""
    with os.fdopen(descriptor, "rb") as file:
        return file.read(HEAD_BYTES)
