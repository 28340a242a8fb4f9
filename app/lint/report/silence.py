"""`# lumitui: ignore=RULE`: findings that the script's author knows of."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lumitui.app.lint.catalogue import UNUSED_IGNORE
from lumitui.app.lint.model.position import Position
from lumitui.app.lint.rule import Finding, ordered

_COMMENT = re.compile(r"#\s*lumitui:\s*ignore=(?P<rules>[\w*-]+(?:\s*,\s*[\w*-]+)*)\s*$")


@dataclass(frozen=True)
class _Ignore:
    rule: str
    lines: range
    """The lines whose findings it silences."""
    whole: bool
    """Whether it stands on a line of its own, and silences findings about the whole job, too."""
    at: Position


def heard(findings: Sequence[Finding], text: str) -> list[Finding]:
    """Return the findings that no comment silences, and a note for each comment without one."""
    ignores = list(_ignores(text))
    used: set[int] = set()
    kept = []
    for item in findings:
        hits = {number for number, each in enumerate(ignores) if _silences(each, item)}
        used |= hits
        if not hits:
            kept.append(item)
    unused = [each for number, each in enumerate(ignores) if number not in used]
    return ordered([*kept, *map(_note, unused)])


def _silences(ignore: _Ignore, item: Finding) -> bool:
    if ignore.rule != item.rule or item.at.file:
        return False
    if item.at.line == 0:
        return ignore.whole
    lines = range(item.at.line, max(item.at.line, item.at.end_line) + 1)
    return lines.start < ignore.lines.stop and ignore.lines.start < lines.stop


def _ignores(text: str) -> list[_Ignore]:
    found = []
    lines = text.replace("\r\n", "\n").split("\n")
    for number, line in enumerate(lines, 1):
        match = _COMMENT.search(line)
        if match is None:
            continue
        alone = not line[: match.start()].strip()
        at = Position(number, match.start() + 1, number, match.end() + 1)
        covered = _following(lines, number) if alone else range(number, number + 1)
        for rule in re.split(r"\s*,\s*", match["rules"]):
            found.append(_Ignore(rule, covered, alone, at))
    return found


def _following(lines: Sequence[str], number: int) -> range:
    """Return the command below a line, to its last line; such comments between are passed over."""
    start = number + 1
    while start <= len(lines) and _COMMENT.search(lines[start - 1]):
        start += 1
    end = start
    while end <= len(lines) and lines[end - 1].endswith("\\"):
        end += 1
    return range(start, end + 1)


def _note(ignore: _Ignore) -> Finding:
    return Finding(
        UNUSED_IGNORE.id, UNUSED_IGNORE.severity, f"The rule {ignore.rule} finds nothing here.",
        "Remove the comment.", UNUSED_IGNORE.source, ignore.at,
    )  # fmt: skip
