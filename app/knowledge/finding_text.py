"""Findings as linter output and as GitHub workflow commands."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lumitui.remote.site.finding import Finding
from lumitui.remote.site.masked_text import masked, starred
from lumitui.remote.site.safe_text import spell_out
from lumitui.remote.site.source_position import Position


@dataclass(frozen=True)
class CheckedScript:
    """A script, its path and its findings."""

    path: str
    """The path that the user gave; `-` is standard input."""
    site: str | None
    """None if no site is known, so that only site-independent rules ran."""
    text: str
    findings: tuple[Finding, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts of the files that the script names, by the path it uses."""
    folder: str = ""
    """The script's folder, a prefix of the paths in `files`; "" or ends with a slash."""

    def path_of(self, at: Position) -> str:
        """Return the path of the file that contains a finding."""
        return f"{self.folder}{at.file}" if at.file else self.path

    def line_of(self, at: Position) -> str | None:
        """Return the line on which a finding begins; None if it concerns the whole job."""
        text = self.files.get(at.file) if at.file else self.text
        lines = (text or "").split("\n")
        return lines[at.line - 1].rstrip("\r") if 0 < at.line <= len(lines) else None


def count(checked: Iterator[CheckedScript] | tuple[CheckedScript, ...]) -> dict[str, int]:
    """Return the number of findings of each severity."""
    counts = {"error": 0, "warning": 0, "note": 0}
    for one in checked:
        for item in one.findings:
            counts[item.severity] += 1
    return counts


_WIDEST = 100
"""Number of characters to show of a line, around the finding."""


def findings_text(checked: CheckedScript) -> str:
    """Return all findings of a script, separated by empty lines."""
    return "\n\n".join(_finding(checked, item) for item in checked.findings)


def findings_summary(checked: tuple[CheckedScript, ...]) -> str:
    """Return the last line: the number of findings, and of those that --fix resolves."""
    counts = count(checked)
    named = [
        f"{number} {word}{'' if number == 1 else 's'}" for word, number in counts.items() if number
    ]
    scripts = "1 script" if len(checked) == 1 else f"{len(checked)} scripts"
    if not named:
        return f"Nothing found in {scripts}."
    fixable = sum(
        item.fix is not None and not item.at.file for one in checked for item in one.findings
    )
    end = f" --fix changes {fixable} of them." if fixable else ""
    return f"Found {', '.join(named)} in {scripts}.{end}"


def _finding(checked: CheckedScript, item: Finding) -> str:
    at = item.at
    place = f"{checked.path_of(at)}:{max(at.line, 1)}:{max(at.column, 1)}"
    rows = [masked(f"{place}: {item.severity} {item.rule} {item.message}")]
    line = checked.line_of(at)
    if line is not None:
        rows += _shown(line, at)
    rows.append(masked(f"{' ' * (len(str(max(at.line, 1))) + 1)} → {item.do}"))
    # Names and values from the script may contain newlines.
    return "\n".join(map(spell_out, rows))


def _shown(line: str, at: Position) -> list[str]:
    """Return the line, shortened if it is long, and the carets below it."""
    start = max(at.column - 1, 0)
    end = at.end_column - 1 if at.end_line == at.line else len(line)
    skipped = _skipped(line, start)
    whole = starred(line).replace("\t", " ")
    line = whole[: skipped + _WIDEST]
    before, marked, after = map(spell_out, (line[skipped:start], line[start:end], line[end:]))
    before = f"… {before}" if skipped else before
    after = f"{after}…" if len(whole) > len(line) else after
    number = str(at.line)
    margin = " " * len(number)
    carets = "^" * max(1, len(marked))
    return [f"{number} | {before}{marked}{after}", f"{margin} | {' ' * len(before)}{carets}"]


def _skipped(line: str, start: int) -> int:
    """Return the number of leading characters to omit, up to the beginning of a word."""
    if len(line) <= _WIDEST or start <= _WIDEST // 2:
        return 0
    cut = start - _WIDEST // 2
    blank = line.rfind(" ", max(0, cut - 30), cut + 1)
    if blank < 0:
        blank = line.find(" ", cut, start)
    return blank + 1 if blank >= 0 else cut


_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}


def github_lines(checked: CheckedScript) -> Iterator[str]:
    """Yield a workflow command for each finding; GitHub shows it beside the line."""
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
        values["title"] = f"{item.rule} ({checked.site})" if checked.site else item.rule
        texts = (f"{key}={_data(value)}" for key, value in values.items())
        named = ",".join(text.replace(":", "%3A").replace(",", "%2C") for text in texts)
        yield f"::{_LEVELS[item.severity]} {named}::{_data(masked(f'{item.message} {item.do}'))}"


def _data(text: str) -> str:
    """Escape a message like `escapeData` of GitHub's toolkit; also spell out terminal controls."""
    text = spell_out(text, keep="\r\n")
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
