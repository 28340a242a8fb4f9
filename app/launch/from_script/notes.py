"""What became of each part of a script: kept, derived, changed, or lost."""

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
    """A part of the script, and what became of it."""

    what: str
    """As the script has it, like `--gpu-bind=closest` or `module load PyTorch`."""
    words: str
    """In half a sentence without a full stop."""


def safe(items: Iterable[ImportNote]) -> tuple[ImportNote, ...]:
    """Return each item once, without the values of secrets."""
    return tuple(
        dict.fromkeys(ImportNote(_hidden(item.what), _hidden(item.words)) for item in items)
    )


def _hidden(text: str) -> str:
    """Return a text without the values that look like secrets."""
    for pattern in _SECRETS:
        text = pattern.sub(_without, text)
    return text


def _without(match: re.Match[str]) -> str:
    # `$TOKEN` is not a secret, and neither is the option that comes next, nor a number of tokens.
    bare = match["value"].strip("\"'")
    return match[0] if re.match(r"\$|--|[\d_.]{1,18}$", bare) else f"{match['name']}…"


@dataclass
class Notes:
    """What became of each part of a script, in the order in which it is read."""

    kept: list[ImportNote] = field(default_factory=list)
    derived: list[ImportNote] = field(default_factory=list)
    """What lumitui works out by itself, so that the job file does not have it."""
    changed: list[ImportNote] = field(default_factory=list)
    """What has another value: the one before and the one after an arrow."""
    lost: list[ImportNote] = field(default_factory=list)
    """What a job file cannot say, so that a user must look at it."""

    def keep(self, what: str, key: str) -> None:
        """Say that a part became a key of the job file."""
        self.kept.append(ImportNote(what, f"`{key}:`"))

    def derive(self, what: str, words: str) -> None:
        """Say that a part is worked out by lumitui."""
        self.derived.append(ImportNote(what, words))

    def change(self, what: str, old: str, new: str) -> None:
        """Say that a part has another value."""
        self.changed.append(ImportNote(what, f"{old} → {new}"))

    def lose(self, what: str, words: str) -> None:
        """Say that a part is not in the job file."""
        self.lost.append(ImportNote(what, words))
