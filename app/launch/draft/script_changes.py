"""The changes between two scripts, line by line. Pure."""

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Kind = Literal["same", "new", "gone"]


@dataclass(frozen=True)
class ScriptLine:
    """One line of the new or of the old script."""

    kind: Kind
    text: str


def script_changes(before: str | None, now: str) -> tuple[ScriptLine, ...]:
    """Return the lines of `now`, with the removed lines of `before` in their places.

    Without `before`, every line is "same".
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
    """Return the number of changed lines: the added or the removed ones, whichever are more."""
    new = sum(line.kind == "new" for line in lines)
    gone = sum(line.kind == "gone" for line in lines)
    return max(new, gone)
