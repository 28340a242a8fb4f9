"""What of a script changed against another one, line by line. Pure."""

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Kind = Literal["same", "new", "gone"]


@dataclass(frozen=True)
class ScriptLine:
    """One line, of the script or of the one before."""

    kind: Kind
    text: str


def script_changes(before: str | None, now: str) -> tuple[ScriptLine, ...]:
    """Return the lines of `now`, with those of `before` that are gone where they were.

    Without `before` every line is the same.
    """
    new = now.split("\n")
    old = new if before is None else before.split("\n")
    lines: list[ScriptLine] = []
    for kind, low, high, first, last in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind == "equal":
            lines += [ScriptLine("same", line) for line in new[first:last]]
            continue
        lines += [ScriptLine("gone", line) for line in old[low:high]]
        lines += [ScriptLine("new", line) for line in new[first:last]]
    return tuple(lines)


def count_changes(lines: tuple[ScriptLine, ...]) -> int:
    """Return how many lines changed: those that are new, and those that only went."""
    new = sum(line.kind == "new" for line in lines)
    gone = sum(line.kind == "gone" for line in lines)
    return max(new, gone)
