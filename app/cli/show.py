"""What `show` and `diff` tell of runs: gathered from the core, and as text."""

import difflib
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumitui.app.cli import tables
from lumitui.app.cli.output import clean
from lumitui.app.cli.tables import number, pairs, section, table, when
from lumitui.app.explain.binding_proof import Verdict, differences
from lumitui.app.explain.diagnose import Diagnosis
from lumitui.app.explain.waiting import billed_words, outlook
from lumitui.app.history.run import Run
from lumitui.app.results.summary import Summary, summarize
from lumitui.remote import walltime
from lumitui.remote.errors import LumiError
from lumitui.remote.scheduler.protocol import State

if TYPE_CHECKING:
    from lumitui.app.runs import Runs

_WELL = (State.DONE, State.CANCELLED, State.NOT_SENT)


@dataclass(frozen=True)
class Page:
    """All that is known of a run."""

    run: Run
    lineage: tuple[Run, ...]
    proof: Verdict
    summary: Summary
    series: Mapping[str, Sequence[float]]
    """What the job file's `metrics:` found at the end of the log."""
    broken_metrics: int
    why: tuple[Diagnosis, ...]
    warnings: tuple[str, ...]


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


def gather(runs: "Runs", run_id: str) -> Page:
    """Return what is known of a run; a site that cannot be reached is a warning.

    Raises:
        InputError: no such run.
    """
    run = runs.history.get(run_id)
    warnings: list[str] = []
    if not run.state.is_final:
        warnings += runs.refresh(run.site).warnings
        run = runs.history.get(run.id)
    why: list[Diagnosis] = []
    if run.state.is_final and run.state not in _WELL:
        try:
            why = runs.why(run.id)
        except LumiError as error:
            warnings.append(f"the log cannot be read now: {error}")
    figures, log = runs.figures(run.id), runs.log_figures(run.id)
    if log.warning:
        warnings.append(log.warning)
    return Page(
        run,
        tuple(runs.history.lineage(run.id)),
        runs.proof(run),
        figures.summary,
        log.series,
        figures.broken,
        tuple(why),
        tuple(warnings),
    )


def page_data(page: Page) -> dict[str, object]:
    """Return what `show --json` says."""
    return {
        "run": tables.run_data(page.run),
        "job": page.run.spec.model_dump(mode="json", exclude_defaults=True),
        "command": page.run.command,
        "script": page.run.script,
        "patch": page.run.provenance.patch,
        "lineage": [tables.run_data(run) for run in page.lineage],
        "proof": page.proof,
        "metrics": page.summary,
        "log_metrics": page.series,
        "broken_metrics": page.broken_metrics,
        "why": page.why,
        "warnings": page.warnings,
    }


def page_text(page: Page, now: float, columns: int) -> str:
    """Return the page a person reads."""
    run, proof = page.run, page.proof
    parts = [
        pairs(_facts(run, now)),
        section("why", "\n".join(_reason(item) for item in page.why)),
        section("lineage", _lineage(page)),
        section(f"binding: {proof.kind}", _proof(proof, columns)),
        section("metrics", _metrics(page)),
    ]
    return "\n\n".join(part for part in parts if part)


def _facts(run: Run, now: float) -> list[tuple[str, object]]:
    code = run.provenance
    commit = f"{code.commit[:12]} ({code.branch or 'no branch'})" if code.commit else ""
    dirty = " with uncommitted changes" if code.dirty else ""
    elapsed = walltime.text_of(int(run.elapsed(now)))
    failed = f", rank {run.failed_rank} first" if run.failed_rank is not None else ""
    return [
        ("run", run.id),
        ("name", run.name),
        ("state", f"{run.state}{f' ({run.word})' if run.word else ''}"),
        ("reason", "" if run.reason == "None" else run.reason),
        ("exit code", "" if run.rc is None else f"{run.rc}{failed}"),
        ("site", f"{run.site}, {run.spec.partition}"),
        ("job", run.job_id),
        ("size", tables.layout_words(run.layout)),
        ("nodes", run.nodes_used),
        ("elapsed", f"{elapsed} of {run.spec.time}" if run.started else ""),
        ("created", when(run.created)),
        ("submitted", when(run.submitted)),
        ("started", when(run.started)),
        *(outlook(run, now) if not run.state.is_final else [("ended", when(run.ended))]),
        ("last news", when(run.updated) if run.submitted else ""),
        ("attempt", run.attempt),
        ("billed", billed_words(run, now)),
        ("global batch", run.global_batch),
        ("commit", f"{commit}{dirty}" if commit else ""),
        ("snapshot", run.snapshot),
        ("continues from", run.resumed_from),
        ("folder", run.folder),
        ("project", run.project),
        ("job file", run.job_file),
        ("note", run.note),
    ]  # fmt: skip


def _reason(item: Diagnosis) -> str:
    rank = f" (rank {item.rank})" if item.rank is not None else ""
    line = f"\n  {item.line}" if item.line else ""
    return clean(f"{item.sentence}{rank} {item.do}{line}", keep="\n")


def _lineage(page: Page) -> str:
    if len(page.lineage) < 2:
        return ""
    depth: dict[str, int] = {}
    lines = []
    for run in page.lineage:
        depth[run.id] = depth.get(run.parent or "", -1) + 1
        here = " <" if run.id == page.run.id else ""
        nodes = f"{run.layout.nodes} node{'s'[: run.layout.nodes > 1]}"
        lines.append(f"{'  ' * depth[run.id]}{clean(run.id)}  {run.state}, {nodes}{here}")
    return "\n".join(lines)


def _proof(proof: Verdict, columns: int) -> str:
    told = [clean(proof.sentence), *map(clean, differences(proof))]
    lines = [line for text in told for line in textwrap.wrap(text, columns - 2) or [""]]
    return "\n".join(lines) + _proof_table(proof, columns)


def _proof_table(proof: Verdict, columns: int) -> str:
    if not proof.rows:
        return ""
    rows = [
        (
            item.rank,
            item.local_rank,
            item.host,
            item.planned or "-",
            item.found,
            item.gpus or "-",
            "ok" if item.ok else "differs",
        )
        for item in proof.rows
    ]
    titles = ("RANK", "LOCAL", "HOST", "PLANNED", "FOUND", "GPUS", "")
    return "\n" + table(titles, rows, columns - 2, shrink=(6, 5, 4, 3, 2))


def _metrics(page: Page) -> str:
    found = page.summary
    logged: list[tuple[str, object]] = [
        (name, f"{number(values[-1])} (last of {len(values)} in the log's end)" if values else "")
        for name, values in page.series.items()
    ]
    if not found.steps:
        return pairs(logged) if any(words for _, words in logged) else ""
    broken = f"{page.broken_metrics} lines of metrics.jsonl" if page.broken_metrics else ""
    return pairs(
        [
            ("steps", found.steps),
            ("loss", number(found.last_loss)),
            ("samples/s", number(found.samples_per_s)),
            ("test accuracy", number(found.test_accuracy)),
            ("trained for", number(found.seconds, " s")),
            ("unreadable", broken),
            *logged,
        ]
    )


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
        FieldDifference(what, number(a), number(b))
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
    script = "\n".join(clean(line, keep="\t") for line in found.script)
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
