"""Notes on each part of a script: kept, derived, changed or lost."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_VALUE = r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"';)]+)"
_NAME = r"(?:key|token|secret|password|passwd)s?"
_SECRETS = (
    re.compile(rf"(?i)(?P<name>\b\w*{_NAME}(?:_\w+)?=){_VALUE}"),
    re.compile(rf"(?i)(?P<name>--[\w-]*{_NAME}(?:=|\s+)){_VALUE}"),
    re.compile(rf"(?P<name>\blogin(?:\s+--?[\w-]+)*\s+){_VALUE}"),
    re.compile(r"(?P<name>\b)(?P<value>(?:hf_|gh[opsu]_|sk-|glpat-)[\w-]{12,}|[0-9a-f]{40})\b"),
)


@dataclass(frozen=True)
class ImportNote:
    """A part of the script, and its fate."""

    what: str
    """The part as written, like `--gpu-bind=closest` or `module load PyTorch`."""
    words: str
    """The reason, as a clause without a full stop."""


def safe(items: Iterable[ImportNote]) -> tuple[ImportNote, ...]:
    """Return each item once, without the values of secrets."""
    return tuple(
        dict.fromkeys(ImportNote(_hidden(item.what), _hidden(item.words)) for item in items)
    )


def _hidden(text: str) -> str:
    """Return a text without values that look like secrets."""
    for pattern in _SECRETS:
        text = pattern.sub(_without, text)
    return text


def _without(match: re.Match[str]) -> str:
    # `$TOKEN`, the next option and a number of tokens are not secrets.
    bare = match["value"].strip("\"'")
    return match[0] if re.match(r"\$|--|[\d_.]{1,18}$", bare) else f"{match['name']}…"


@dataclass
class Notes:
    """The fate of each part of a script, in reading order."""

    kept: list[ImportNote] = field(default_factory=list)
    derived: list[ImportNote] = field(default_factory=list)
    """Parts that lumitui derives, so the job file omits them."""
    changed: list[ImportNote] = field(default_factory=list)
    """Parts with a new value: the old one, an arrow, the new one."""
    lost: list[ImportNote] = field(default_factory=list)
    """Parts that a job file cannot express, for the user to check."""

    def keep(self, what: str, key: str) -> None:
        """Note that a part became a key of the job file."""
        self.kept.append(ImportNote(what, f"`{key}:`"))

    def derive(self, what: str, words: str) -> None:
        """Note that lumitui derives a part."""
        self.derived.append(ImportNote(what, words))

    def change(self, what: str, old: str, new: str) -> None:
        """Note that a part has a new value."""
        self.changed.append(ImportNote(what, f"{old} → {new}"))

    def lose(self, what: str, words: str) -> None:
        """Note that the job file lacks a part."""
        self.lost.append(ImportNote(what, words))
