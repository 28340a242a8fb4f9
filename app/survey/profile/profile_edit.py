"""What a node said, put into the text of a user's profile: values change, comments stay."""

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
    """"" where there is none yet."""
    after: str

    @property
    def diff(self) -> str:
        """The change, as `diff -u` shows it; "": none."""
        rows = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(), "now", "proposed", lineterm=""
        )
        return "\n".join(rows)


def edited(measured: NodeFacts, site: Site, folders: Sequence[Path]) -> Edited:
    """Return the user's profile of `site` with what was measured.

    `folders` are those of profiles, the user's own first. Where the profile is in another one,
    a new one extends it.

    Raises:
        InputError: the file is written in a way that only a user can change, or what was
            measured contradicts the rest of it.
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
        # An empty list counts: nothing that was inherited stays.
        text = edit.set_key(text, ("unverified",), doubtful)
    text = marked(_with_sources(text, measured, site.unverified))
    _check(text, path, folders)
    return Edited(path, before, text)


def _with_sources(text: str, measured: NodeFacts, guessed: Sequence[str]) -> str:
    """Return `text` with a comment above each measured line, in the place of an older one.

    That is each changed one, and each of `guessed` that the node said, too.
    """
    document = Document(text, "the profile")
    rows = text.split("\n")
    day = datetime.now(UTC).date()
    confirmed = [one for one in measured.said if ".".join(one.place) in guessed]
    at = {document.line(one.place): one for one in (*confirmed, *measured.changes) if one.value}
    for line, change in sorted(at.items(), reverse=True):
        row = rows[line - 1]
        if change in confirmed and not row.lstrip().startswith(f"{change.place[-1]}:"):
            continue  # it is inherited
        indent = row[: len(row) - len(row.lstrip())]
        start = _first_of_comment(rows, line - 1)
        old = _comment_of(rows, line - 1)
        if old and line < len(rows) and _shares(rows[line], indent) and line + 1 not in at:
            rows[line:line] = old  # the next line had the same comment
        rows[start : line - 1] = [f"{indent}# source: {measured.host}, {day}: {_plain(change.why)}"]
    gone = [f"# missing: {one.place[-1]}:" for one in measured.changes]
    return "\n".join(_without(rows, gone))


def _comment_of(rows: Sequence[str], line: int) -> list[str]:
    """Return the comment that says where a line's value comes from; lines may share one."""
    row = rows[line]
    indent = row[: len(row) - len(row.lstrip())]
    at = line
    while at and _shares(rows[at - 1], indent):
        at -= 1
    return list(rows[_first_of_comment(rows, at) : at])


def _shares(row: str, indent: str) -> bool:
    """Return whether a row is a key at `indent` with its value, and so under the comment above."""
    return re.match(rf"{indent}[^\s#-][^\n]*: \S", row) is not None


def _first_of_comment(rows: Sequence[str], line: int) -> int:
    """Return where the comment above a line begins, if it said where its old value came from."""
    start = line
    while start and rows[start - 1].lstrip().startswith("#"):
        start -= 1
    for at in range(start, line):
        if re.match(r"\s*# (source|guess): ", rows[at]):
            return at
    return line


def _without(rows: Sequence[str], beginnings: Sequence[str]) -> Iterator[str]:
    """Yield the rows but those of comments that say a key is missing which is there now."""
    dropping = False
    for row in rows:
        words = row.strip()
        if any(words.startswith(beginning) for beginning in beginnings):
            dropping = True
            continue
        if dropping and words.startswith("#") and not re.match(r"# \w+: ", words):
            continue
        dropping = False
        yield row


def _plain(words: str) -> str:
    return re.sub(r"[^\x20-\x7e]", "?", words)


def _check(text: str, path: Path, folders: Sequence[Path]) -> None:
    """Raise where the changed text of the profile in `path` is not a profile any more.

    Raises:
        InputError: it is none; the message says what is wrong.
    """
    try:
        Sites(folders, {path: text}).load(path.stem)
    except InputError as error:
        raise InputError(
            f"The measured values do not fit the profile: {error.message}",
            "Change the profile manually; the report is in the run's folder.",
        ) from error
