"""The differences between two runs: gathered from the core, and as text."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumitui.app.cli.views.tables import section, table
from lumitui.app.runs import Contrast, FileChange, spell_out

if TYPE_CHECKING:
    from lumitui.app.runs import Runs


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


def compare_runs(runs: "Runs", first: str, second: str) -> Difference:
    """Return the differences between two runs; may query their site for lists of files.

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
    )


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
        elif title != "metrics":
            parts.append(section(title, "the same"))
    files = [spell_out(f"{item.what:8} {item.path}") for item in difference.files]
    if files or difference.files_unknown:
        parts.append(section("files", "\n".join(files) or spell_out(difference.files_unknown)))
    script = "\n".join(spell_out(line, keep="\t") for line in difference.script)
    parts.append(section("script", script or "the same"))
    return "\n\n".join(parts)
