"""What differs between two runs: gathered from the core, and as text."""

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumitui.app.cli.tables import section, table
from lumitui.app.explain.safe_text import spell_out
from lumitui.app.results.summary import summarize

if TYPE_CHECKING:
    from lumitui.app.runs import Runs


@dataclass(frozen=True)
class FieldDifference:
    """One key in which two runs differ."""

    what: str
    first: str
    second: str


@dataclass(frozen=True)
class Difference:
    """What differs between two runs."""

    runs: tuple[str, str]
    fields: tuple[FieldDifference, ...]
    """Of the job file."""
    code: tuple[FieldDifference, ...]
    metrics: tuple[FieldDifference, ...]
    script: tuple[str, ...]
    """Lines of a unified diff."""


def compare_runs(runs: "Runs", first: str, second: str) -> Difference:
    """Return what differs between two runs.

    Raises:
        InputError: no such run.
    """
    one, two = runs.history.get(first), runs.history.get(second)
    old, new = (run.spec.model_dump(mode="json") for run in (one, two))
    fields = [_different(key, old[key], new[key]) for key in old]
    code = [
        _different("commit", one.provenance.commit, two.provenance.commit),
        _different("branch", one.provenance.branch, two.provenance.branch),
        _different("uncommitted changes", one.provenance.dirty, two.provenance.dirty),
        _different("snapshot", one.snapshot, two.snapshot),
    ]
    sums = [summarize(runs.history.metrics.of(run.id)) for run in (one, two)]
    measured = [
        FieldDifference(what, _figure(a), _figure(b))
        for what, a, b in (
            ("steps", sums[0].steps, sums[1].steps),
            ("loss", sums[0].last_loss, sums[1].last_loss),
            ("samples/s", sums[0].samples_per_s, sums[1].samples_per_s),
            ("test accuracy", sums[0].test_accuracy, sums[1].test_accuracy),
            ("seconds", sums[0].seconds, sums[1].seconds),
        )
    ]
    script = difflib.unified_diff(
        one.script.splitlines(), two.script.splitlines(), one.id, two.id, lineterm="", n=1
    )
    return Difference(
        (one.id, two.id),
        tuple(item for item in fields if item),
        tuple(item for item in code if item),
        tuple(measured) if any(total.steps for total in sums) else (),
        tuple(script),
    )


def difference_text(found: Difference, columns: int) -> str:
    """Return the differences as a person reads them."""
    parts = []
    for title, rows in (
        ("job file", found.fields),
        ("code", found.code),
        ("metrics", found.metrics),
    ):
        cells = [(row.what, row.first, row.second) for row in rows]
        body = table(("", *found.runs), cells, columns - 2, shrink=(1, 2)) if cells else "the same"
        if title != "metrics" or cells:
            parts.append(section(title, body))
    script = "\n".join(spell_out(line, keep="\t") for line in found.script)
    parts.append(section("script", script or "the same"))
    return "\n\n".join(parts)


def _different(what: str, first: object, second: object) -> FieldDifference | None:
    if first == second:
        return None
    return FieldDifference(what, _word(first), _word(second))


def _word(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "-"
    return "-" if value in (None, "", {}) else str(value)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
