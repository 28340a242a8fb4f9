"""The differences between two runs: gathered from the core, and as text."""

import difflib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumitui.app.cli.views.tables import section, table
from lumitui.app.explain.words import count
from lumitui.app.runs import Contrast, FileChange, LumiError, spell_out

if TYPE_CHECKING:
    from lumitui.app.runs import Runs

_READ = 5
"""Maximum number of changed files to read at the site, with two requests each."""
_SHOWN = 60
"""Maximum number of their lines in the text."""


@dataclass(frozen=True)
class Difference:
    """The differences between two runs."""

    runs: tuple[str, str]
    fields: tuple[Contrast, ...]
    """Of the job file."""
    code: tuple[Contrast, ...]
    metrics: tuple[Contrast, ...]
    script: tuple[str, ...]
    """Lines of a unified diff."""
    files: tuple[FileChange, ...] = ()
    """Of the code."""
    files_unknown: str = ""
    """Why the files are unknown; "" if they are known."""
    lines: tuple[str, ...] = ()
    """Lines of unified diffs of the first changed files."""


def compare_runs(runs: "Runs", first: str, second: str) -> Difference:
    """Return the differences between two runs; may query their site for files.

    Raises:
        InputError: the run does not exist.
    """
    comparison = runs.comparisons.of((first, second))
    (code,) = runs.comparisons.code((first, second))
    return Difference(
        (comparison.runs[0].id, comparison.runs[1].id),
        comparison.fields,
        comparison.code,
        comparison.metrics,
        comparison.scripts[0],
        code.files,
        code.unknown,
        tuple(_lines(runs, (first, second), code.files)),
    )


def _lines(runs: "Runs", pair: tuple[str, str], files: Sequence[FileChange]) -> Iterator[str]:
    """Yield the differences of the first changed files that are readable, short and text."""
    for path in [item.path for item in files if item.what == "changed"][:_READ]:
        with suppress(LumiError):
            old, new = (runs.files.preview(run_id, f"code/{path}") for run_id in pair)
            if not (old.binary or new.binary or old.cut or new.cut):
                before, after = (f"{path} of {run_id}" for run_id in pair)
                texts = (old.text.splitlines(), new.text.splitlines())
                yield from difflib.unified_diff(*texts, before, after, lineterm="", n=1)


def difference_text(difference: Difference, columns: int) -> str:
    """Return the differences as text."""
    parts = []
    for title, rows in (
        ("job file", difference.fields),
        ("code", difference.code),
        ("metrics", difference.metrics),
    ):
        cells = [(row.what, *row.values) for row in rows]
        if cells:
            heads = ("", *difference.runs)
            parts.append(section(title, table(heads, cells, columns - 2, shrink=(1, 2))))
        else:
            parts.append(section(title, "the same"))
    files = [spell_out(f"{item.what:8} {item.path}") for item in difference.files]
    if files or difference.files_unknown:
        parts.append(section("files", "\n".join(files) or spell_out(difference.files_unknown)))
    if difference.lines:
        lines = [spell_out(line, keep="\t") for line in difference.lines[:_SHOWN]]
        if more := len(difference.lines) - len(lines):
            lines.append(f"{count(more, 'more line')}: `--json` prints them.")
        parts.append(section("changed lines", "\n".join(lines)))
    if sum(item.what == "changed" for item in difference.files) > _READ:
        copies = "; ".join(f"lumitui fetch {run_id} code" for run_id in difference.runs)
        parts.append(f"Only the first {_READ} changed files are compared. To get all: {copies}")
    script = "\n".join(spell_out(line, keep="\t") for line in difference.script)
    parts.append(section("script", script or "the same"))
    return "\n\n".join(parts)
