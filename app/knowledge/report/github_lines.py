"""Findings as GitHub's workflow commands."""

from collections.abc import Iterator

from lumitui.app.knowledge.report.finding_text import CheckedScript
from lumitui.remote.site.safe_text import spell_out

_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}


def github_lines(checked: CheckedScript) -> Iterator[str]:
    """Yield a workflow command for each finding; GitHub shows them beside the lines."""
    for item in checked.findings:
        at = item.at
        values = {
            "file": checked.path_of(at),
            "line": str(max(at.line, 1)),
            "col": str(max(at.column, 1)),
        }
        if at.end_line > at.line:
            values["endLine"] = str(at.end_line)
        elif at.end_column > at.column:
            values["endColumn"] = str(at.end_column)
        values["title"] = item.rule
        named = ",".join(f"{key}={_property(value)}" for key, value in values.items())
        yield f"::{_LEVELS[item.severity]} {named}::{_data(f'{item.message} {item.do}')}"


def _data(text: str) -> str:
    """Escape a message: GitHub's toolkit, `escapeData`; what steers a terminal is spelled out."""
    text = spell_out(text, keep="\r\n")
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
