"""Edits a user's profile with a node's measurements; comments stay."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lumitui.app.job import edit
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.writer import marked
from lumitui.remote.site.reading.yaml_document import Document
from lumitui.remote.site.sites import Sites
from lumitui.remote.survey.profile.node_facts import NodeFacts


@dataclass(frozen=True)
class Edited:
    """A profile's text before and after."""

    path: Path
    """The user's own file."""
    before: str
    """"" if there is no file yet."""
    after: str

    @property
    def diff(self) -> str:
        """The change in the format of `diff -u`; "" if there is none."""
        rows = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(), "now", "proposed", lineterm=""
        )
        return "\n".join(rows)


def edited(measured: NodeFacts, site: Site, folders: Sequence[Path]) -> Edited:
    """Return the user's profile of `site` with the measured values.

    `folders` are the folders of profiles, the user's own first. If the profile is in another
    folder, the user gets a new one that extends it.

    Raises:
        InputError: only the user can edit the file in its form, or the measurements contradict it.
    """
    path = folders[0] / f"{site.name}.yaml"
    try:
        before = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        before = ""
    text = before or f"extends: {site.name}\n"
    verified = {".".join(place) for place in measured.confirmed}
    doubtful = tuple(key for key in site.unverified if key not in verified)
    if not measured.changes and doubtful == site.unverified:
        return Edited(path, before, before)
    for change in measured.changes:
        text = edit.set_key(text, change.place, change.value)
    if doubtful != site.unverified:
        # An empty list overrides the inherited one.
        text = edit.set_key(text, ("unverified",), doubtful)
    text = marked(_with_sources(text, measured, site.unverified))
    _check(text, path, folders)
    return Edited(path, before, text)


def _with_sources(text: str, measured: NodeFacts, guessed: Sequence[str]) -> str:
    """Return `text` with a source comment above each measured line, replacing an older one.

    Measured lines are the changed ones, and the `guessed` ones that the node confirmed.
    """
    document = Document(text, "the profile")
    rows = text.split("\n")
    day = datetime.now(UTC).date()
    confirmed = [one for one in measured.said if ".".join(one.place) in guessed]
    at = {document.line(one.place): one for one in (*confirmed, *measured.changes)
          if one.value is not None}  # fmt: skip
    for line, change in sorted(at.items(), reverse=True):
        row = rows[line - 1]
        if change in confirmed and not row.lstrip().startswith(f"{change.place[-1]}:"):
            continue  # it is inherited
        indent = row[: len(row) - len(row.lstrip())]
        start = _first_of_comment(rows, line - 1)
        old = _comment_of(rows, line - 1, indent)
        if old and line < len(rows) and _shares(rows[line], indent) and line + 1 not in at:
            rows[line:line] = old  # the next line had the same comment
        rows[start : line - 1] = [f"{indent}# source: {measured.host}, {day}: {_plain(change.why)}"]
    gone = [f"{'  ' * (len(one.place) - 1)}# missing: {one.place[-1]}:" for one in measured.changes]
    return "\n".join(_without(rows, gone))


def _comment_of(rows: Sequence[str], line: int, indent: str) -> list[str]:
    """Return the comment with the source of a line's value; lines may share one."""
    while line and _shares(rows[line - 1], indent):
        line -= 1
    return list(rows[_first_of_comment(rows, line) : line])


def _shares(row: str, indent: str) -> bool:
    """Return whether a row is a key with a value at `indent`, which shares the comment above."""
    return re.match(rf"{indent}[^\s#-][^\n]*: \S", row) is not None


def _first_of_comment(rows: Sequence[str], line: int) -> int:
    """Return the first line of the source comment above a line; without one, the line itself."""
    start = line
    while start and rows[start - 1].lstrip().startswith("#"):
        start -= 1
    for at in range(start, line):
        if re.match(r"\s*# (source|guess): ", rows[at]):
            return at
    return line


def _without(rows: Sequence[str], beginnings: Sequence[str]) -> Iterator[str]:
    """Yield the rows, leaving out comments that call a key missing although it now exists."""
    dropping = False
    for row in rows:
        words = row.strip()
        if any(row.startswith(beginning) for beginning in beginnings):
            dropping = True
            continue
        if dropping and words.startswith("#") and not re.match(r"# \w+: ", words):
            continue
        dropping = False
        yield row


def _plain(words: str) -> str:
    return re.sub(r"[^\x20-\x7e]", "?", words)


def _check(text: str, path: Path, folders: Sequence[Path]) -> None:
    """Check that the changed text is a valid profile; InputError with the reason if not."""
    try:
        Sites(folders, {path: text}).load(path.stem)
    except InputError as error:
        raise InputError(
            f"The measured values contradict the profile: {error.message}",
            "Edit the profile manually; the report is in the run's folder.",
        ) from error
