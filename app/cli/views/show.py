"""What `show` prints of a run: gathered from the core, and as text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumitui.app.cli.output import run_data
from lumitui.app.cli.views.tables import pairs, section, table
from lumitui.app.explain import run_facts, run_overview, timeline
from lumitui.app.explain.proof.binding_proof import Verdict
from lumitui.app.explain.timeline import Attempt
from lumitui.app.runs import LumiError, State, spell_out

if TYPE_CHECKING:
    from lumitui.app.runs import Diagnosis, Run, Runs, Speedup, Summary

_WELL = (State.DONE, State.CANCELLED, State.NOT_SENT)
_SHRINKING = ("GPUs", "found", "planned", "host")
"""Columns of the proof that are cut where the terminal is narrow, the first of them first."""


@dataclass(frozen=True)
class ShownRun:
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
    comparison: tuple[Run, Speedup] | None = None
    """Its parent, and the run beside it."""
    attempts: tuple[Attempt, ...] = ()
    advice: tuple[str, ...] = ()
    """What its grid says."""


def gather(runs: Runs, run_id: str) -> ShownRun:
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
    found, log = runs.overviews.of(run.id), runs.log_figures(run.id)
    if log.warning:
        warnings.append(log.warning)
    return ShownRun(
        found.run,
        tuple(item.run for item in found.relatives),
        found.proof,
        found.figures.summary,
        log.series,
        found.figures.broken,
        tuple(why),
        tuple(warnings),
        found.comparison,
        found.attempts,
        found.advice,
    )


def page_data(page: ShownRun) -> dict[str, object]:
    """Return what `show --json` says."""
    return {
        "run": run_data(page.run),
        "job": page.run.spec.model_dump(mode="json", exclude_defaults=True),
        "command": page.run.command,
        "script": page.run.script,
        "files": page.run.files,
        "patch": page.run.provenance.patch,
        "lineage": [run_data(run) for run in page.lineage],
        "proof": page.proof,
        "metrics": page.summary,
        "log_metrics": page.series,
        "broken_metrics": page.broken_metrics,
        "why": page.why,
        "warnings": page.warnings,
    }


def page_text(page: ShownRun, now: float, columns: int) -> str:
    """Return the page that a user reads."""
    run, proof = page.run, page.proof
    first = (("run", run.id), ("name", run.name), ("state", run_facts.state(run, now)))
    rows = run_overview.rows(run, now, proof, page.summary, page.comparison)
    rows = run_overview.with_grid(rows, page.advice)
    told = [row for row in rows if row[0] != "proof"]  # it has a part of its own
    metrics = run_facts.metrics(page.summary, page.broken_metrics)
    parts = [
        pairs([*first, *told, *run_facts.facts(run, now)]),
        section("why", "\n".join(map(_cause, page.why))),
        section("timeline", _timeline(page, now)),
        section("lineage", _lines(run_facts.lineage(run, page.lineage))),
        section(f"binding: {proof.kind}", _proof(proof, columns)),
        section("metrics", pairs([*metrics, *run_facts.log_metrics(page.series)])),
    ]
    return "\n\n".join(part for part in parts if part)


def _cause(found: Diagnosis) -> str:
    evidence = [f"  {line}" for line in found.telling or (found.line,) if line]
    return _lines([f"{found.cause} {found.do}", *evidence])


def _timeline(page: ShownRun, now: float) -> str:
    told = timeline.rows(timeline.happenings(page.run, page.attempts, page.proof), now)
    return _lines([f"{moment:19}  {since:<14}  {what}" for moment, since, what in told])


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(map(spell_out, lines))


def _proof(proof: Verdict, columns: int) -> str:
    told = [*run_facts.differences(proof), *run_facts.preflight(proof)]
    sentences = [spell_out(line) for line in (proof.sentence, *told)]
    lines = [line for text in sentences for line in textwrap.wrap(text, columns - 2) or [""]]
    found = run_facts.proof_table(proof)
    if found.rows:
        shrink = [found.titles.index(title) for title in _SHRINKING if title in found.titles]
        titles = [title.upper() for title in found.titles]
        lines.append(table(titles, [row.cells for row in found.rows], columns - 2, shrink=shrink))
    return "\n".join(lines)
