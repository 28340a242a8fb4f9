"""`# lumitui: ignore=RULE`: findings that the script's author knows of."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lumitui.app.knowledge.rule import ordered
from lumitui.app.knowledge.rule_catalogue import UNUSED_IGNORE
from lumitui.app.knowledge.rules.phrases import nearest
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.source_position import Position

_COMMENT = re.compile(r"#\s*lumitui:\s*ignore=(?P<rules>[\w*-]+(?:\s*,\s*[\w*-]+)*)\s*$")
_MEANT = re.compile(r"#\s*lumitui\s*:?\s*(?:ignore|disable|noqa)\b.*$")
"""A comment that was meant as one and is none."""


@dataclass(frozen=True)
class _Ignore:
    rule: str
    lines: range
    """The lines whose findings it silences."""
    whole: bool
    """Whether it is on a line of its own, and silences findings about the whole job, too."""
    at: Position


def heard(
    findings: Sequence[Finding], text: str, known: Callable[[], Iterable[str]] = tuple
) -> list[Finding]:
    """Return the findings that no comment silences, and a note for each comment without one.

    `known` returns the names of all rules; without it no name is called unknown.
    """
    ignores = list(_ignores(text))
    used: set[int] = set()
    kept = []
    for item in findings:
        hits = {number for number, each in enumerate(ignores) if _silences(each, item)}
        used |= hits
        if not hits:
            kept.append(item)
    unused = [each for number, each in enumerate(ignores) if number not in used]
    names = list(known()) if unused else []
    return ordered([*kept, *(_note(each, names) for each in unused), *_unread(text)])


def _silences(ignore: _Ignore, item: Finding) -> bool:
    if ignore.rule != item.rule or item.at.file:
        return False
    if item.at.line == 0:
        return ignore.whole
    lines = range(item.at.line, max(item.at.line, item.at.end_line) + 1)
    return lines.start < ignore.lines.stop and ignore.lines.start < lines.stop


def _ignores(text: str) -> list[_Ignore]:
    ignores = []
    lines = text.replace("\r\n", "\n").split("\n")
    for number, line in enumerate(lines, 1):
        match = _COMMENT.search(line)
        if match is None:
            continue
        alone = not line[: match.start()].strip()
        at = Position(number, match.start() + 1, number, match.end() + 1)
        covered = _following(lines, number) if alone else range(number, number + 1)
        for rule in re.split(r"\s*,\s*", match["rules"]):
            ignores.append(_Ignore(rule, covered, alone, at))
    return ignores


def _following(lines: Sequence[str], number: int) -> range:
    """Return the command below a line, to its last line; such comments between are passed over."""
    start = number + 1
    while start <= len(lines) and _COMMENT.search(lines[start - 1]):
        start += 1
    end = start
    while end <= len(lines) and lines[end - 1].endswith("\\"):
        end += 1
    return range(start, end + 1)


def _note(ignore: _Ignore, known: Sequence[str]) -> Finding:
    message, do = f"The rule {ignore.rule} finds nothing here.", "Remove the comment."
    if known and ignore.rule not in known:
        meant = nearest(ignore.rule, known)
        message = f"There is no rule {ignore.rule}, so the comment silences nothing."
        do = f"Write {meant}." if meant else "`lumitui rules` lists their names."
    return _unused(message, do, ignore.at)


def _unread(text: str) -> Iterable[Finding]:
    """Yield a note for each comment that was meant to silence a rule and names none."""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        match = _MEANT.search(line)
        if match is not None and not _COMMENT.search(line):
            at = Position(number, match.start() + 1, number, match.end() + 1)
            message = "The comment names no rule as it is written, so it silences nothing."
            yield _unused(message, "Write # lumitui: ignore=RULE, with the rule's name.", at)


def _unused(message: str, do: str, at: Position) -> Finding:
    topic = UNUSED_IGNORE
    return Finding(topic.id, topic.severity, message, do, topic.source, at)
