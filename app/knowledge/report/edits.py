"""The mechanical changes of findings, put into the text."""

import difflib
from collections.abc import Iterable

from lumitui.remote.site.finding import Finding
from lumitui.remote.site.source_position import Position


def fixed(text: str, findings: Iterable[Finding]) -> tuple[str, int]:
    """Return `text` with the edits of these findings, and how many were made.

    An edit that overlaps one before it waits for the next round.
    """
    fixes = [item.fix for item in findings if item.fix]
    edits = [fix for fix in fixes if fix.at.line and not fix.at.file]
    starts = _starts(text)
    spans = sorted({(*_span(edit.at, starts, len(text)), str(edit.value)) for edit in edits})
    chosen: list[tuple[int, int, str]] = []
    for start, end, new in spans:
        if not chosen or (start >= chosen[-1][1] and (start, end) != chosen[-1][:2]):
            chosen.append((start, end, new))
    for start, end, new in reversed(chosen):
        text = text[:start] + new + text[end:]
    return text, len(chosen)


def edits_diff(before: str, after: str, name: str) -> str:
    """Return the change as a unified diff; "": there is none."""
    rows = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), name, name
    )
    return "".join(row if row.endswith("\n") else f"{row}\n" for row in rows)


def _starts(text: str) -> list[int]:
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _span(at: Position, starts: list[int], size: int) -> tuple[int, int]:
    def offset(line: int, column: int) -> int:
        line = min(max(line, 1), len(starts))
        return min(starts[line - 1] + max(column, 1) - 1, size)

    start = offset(at.line, at.column)
    return start, max(start, offset(at.end_line or at.line, at.end_column or at.column))
