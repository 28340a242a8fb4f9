"""Checks of a script and the files it names, fixes, and silencing comments.

`# lumitui: ignore=RULE` silences findings that the script's author accepts.
"""

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from lumitui.app.knowledge.any_site import is_known
from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.bash.other_statements import referenced_files
from lumitui.app.knowledge.finding_text import CheckedScript
from lumitui.app.knowledge.rule import UNUSED_IGNORE, ordered
from lumitui.app.knowledge.rule_table import findings
from lumitui.app.knowledge.rules.phrases import nearest
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.masked_text import masked
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import Position

_COMMENT = re.compile(r"#\s*lumitui:\s*ignore=(?P<rules>[\w*-]+(?:\s*,\s*[\w*-]+)*)\s*$")
_MEANT = re.compile(r"#\s*lumitui\s*:?\s*(?:ignore|disable|noqa)\b.*$")
"""An invalid silencing comment."""


@dataclass(frozen=True)
class _Ignore:
    rule: str
    lines: range
    """The lines whose findings it silences."""
    whole: bool
    """Whether it is on its own line, and also silences findings about the whole job."""
    at: Position


def heard(
    findings: Sequence[Finding], text: str, known: Callable[[], Iterable[str]] = tuple
) -> list[Finding]:
    """Return the findings that no comment silences, and a note for each comment without effect.

    `known` returns the names of all rules; without it, no rule name is reported as unknown.
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
    return any(
        at.line < ignore.lines.stop and ignore.lines.start <= max(at.line, at.end_line)
        for at in (item.at, *item.also)
        if not at.file
    )


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
    """Return the lines of the command below a line, skipping such comments in between."""
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
        message = f"{ignore.rule} is not a rule, so the comment silences nothing."
        do = f"Write {meant}." if meant else "`lumitui rules` lists the names."
    return _unused(message, do, ignore.at)


def _unread(text: str) -> Iterable[Finding]:
    """Yield a note for each silencing comment without a valid rule."""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        match = _MEANT.search(line)
        if match is not None and not _COMMENT.search(line):
            at = Position(number, match.start() + 1, number, match.end() + 1)
            message = "The comment does not name a rule, so it silences nothing."
            yield _unused(message, "Write # lumitui: ignore=RULE, with the rule's name.", at)


def _unused(message: str, do: str, at: Position) -> Finding:
    topic = UNUSED_IGNORE
    return Finding(topic.id, topic.severity, message, do, topic.source, at)


def fixed(text: str, findings: Iterable[Finding]) -> tuple[str, int]:
    """Return `text` with the edits of these findings, and their number.

    An edit that overlaps an earlier one waits for the next round.
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
    """Return the change as a unified diff, with secrets masked; "" if there is none."""
    rows = map(masked, difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), name, name
    ))  # fmt: skip
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


_MOST_FILES = 60
_DEPTH = 3
"""Maximum depth of files that name other files."""
_ROUNDS = 10
"""Maximum number of checks of a fixed script, since one change can enable another."""
Ask = Callable[[ScriptJob, Site], Sequence[Finding]]
"""Returns the cluster's answers about a job."""
ReadFile = Callable[[str], str | None]
"""Returns the text of a file that a script names; None if it is missing or must not be read."""


@dataclass(frozen=True)
class Checking:
    """How a script is checked."""

    site: Site
    read: ReadFile
    known: Callable[[], Iterable[str]]
    """Returns the names of all rules, which are valid in `# lumitui: ignore=`."""
    ask: Ask = lambda job, site: ()
    select: Collection[str] = ()
    """Only these rules; empty means all."""
    ignore: Collection[str] = ()

    def check(self, path: str, text: str, folder: str = "") -> CheckedScript:
        """Return the findings in the script `text`."""
        files: dict[str, str] = {}
        job = read_script(text, site=self.site)
        for _ in range(_DEPTH):
            more = self._beside(job, files)
            if not more:
                break
            files |= more
            job = read_script(text, site=self.site, files=files)
        every = [*findings(job, self.site), *self.ask(job, self.site)]
        chosen = tuple(
            item for item in heard(every, text, self.known)
            if item.rule in (self.select or [item.rule]) and item.rule not in self.ignore
        )  # fmt: skip
        name = self.site.name if is_known(self.site) else None
        return CheckedScript(path, name, text, chosen, files, folder)

    def fix(self, one: CheckedScript) -> CheckedScript:
        """Apply the automatic fixes for the script's findings, check it again, and return it."""
        for _ in range(_ROUNDS):
            text, count = fixed(one.text, one.findings)
            if not count or text == one.text:
                break
            one = self.check(one.path, text, one.folder)
        return one

    def _beside(self, job: ScriptJob, held: Collection[str]) -> dict[str, str]:
        texts: dict[str, str] = {}
        for name in referenced_files(job):
            if name in held or len(held) + len(texts) >= _MOST_FILES:
                continue
            text = self.read(name)
            if text is not None:
                texts[name] = text
        return texts
