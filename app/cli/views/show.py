"""Output of `show` for a run: collected from the core, and formatted as text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumitui.app.cli.output import run_data
from lumitui.app.cli.views.tables import pairs, section, table
from lumitui.app.explain import run_facts, run_overview, timeline
from lumitui.app.explain.proof.binding_proof import Verdict
from lumitui.app.runs import LumiError, State, spell_out

if TYPE_CHECKING:
    from lumitui.app.runs import Diagnosis, Run, RunOverview, Runs

_WELL = (State.DONE, State.CANCELLED, State.NOT_SENT)
_SHRINKING = ("GPU", "found", "planned", "host")
"""Columns of the proof that are cut on a narrow terminal, in this order."""


@dataclass(frozen=True)
class ShownRun:
    """Everything known about a run."""

    overview: RunOverview
    series: Mapping[str, Sequence[float]]
    """The values of the job file's `metrics:` at the end of the log."""
    why: Sequence[Diagnosis]
    warnings: Sequence[str]

    @property
    def lineage(self) -> tuple[Run, ...]:
        """The run with its relatives."""
        return tuple(item.run for item in self.overview.relatives)


def gather(runs: Runs, run_id: str, *, refreshed: bool = False) -> ShownRun:
    """Return everything known about a run, with a warning if its site is unreachable.

    `refreshed`: the state is current, so the site is not queried for it.

    Raises:
        InputError: the run does not exist.
    """
    run = runs.history.get(run_id)
    warnings: list[str] = []
    if not run.state.is_final and not refreshed:
        warnings += runs.refresh(run.site).warnings
        run = runs.history.get(run.id)
    why: list[Diagnosis] = []
    if run.state.is_final and run.state not in _WELL:
        try:
            why = runs.why(run.id)
        except LumiError as error:
            warnings.append(f"cannot read the log: {error}")
    series = dict[str, Sequence[float]]()
    if run.has_metrics:
        log = runs.log_figures(run.id)
        series, warnings = dict(log.series), [*warnings, *filter(None, [log.warning])]
    return ShownRun(runs.overviews.of(run.id), series, why, warnings)


def page_data(page: ShownRun) -> dict[str, object]:
    """Return the `--json` output of `show`."""
    run = page.overview.run
    return {
        "run": run_data(run),
        "job": run.spec.model_dump(mode="json", exclude_defaults=True),
        "command": run.command,
        "script": run.script,
        "files": run.files,
        "patch": run.provenance.patch,
        "lineage": [run_data(one) for one in page.lineage],
        "proof": page.overview.proof,
        "metrics": page.overview.figures.summary,
        "log_metrics": page.series,
        "broken_metrics": page.overview.figures.broken,
        "why": page.why,
        "warnings": page.warnings,
    }


def page_text(page: ShownRun, now: float, columns: int) -> str:
    """Return the page as text."""
    overview, run, proof = page.overview, page.overview.run, page.overview.proof
    summary = overview.figures.summary
    first = (("run", run.id), ("name", run.name), ("state", run_facts.state(run, now)))
    rows = run_overview.rows(run, now, proof, summary, overview.comparison)
    rows = run_overview.with_outlook(rows, run, overview.planned, overview.advice)
    rows = [row for row in rows if row[0] != "proof"]  # the value has its own section
    metrics = run_facts.metrics(
        summary, overview.figures.broken, run.global_batch, resumed=run.resumed_from is not None
    )
    parts = [
        pairs([*first, *rows, *run_facts.facts(run, now)]),
        section("why", "\n".join(map(_cause, page.why))),
        section("timeline", _timeline(overview, now)),
        section("lineage", _lines(run_facts.lineage(run, page.lineage))),
        section(f"binding: {proof.kind}", proof_text(proof, columns)),
        section("metrics", pairs([*metrics, *run_facts.log_metrics(page.series)])),
    ]
    return "\n\n".join(part for part in parts if part)


def _cause(diagnosis: Diagnosis) -> str:
    evidence = [f"  {line}" for line in diagnosis.telling or (diagnosis.line,) if line]
    return _lines([f"{diagnosis.cause} {diagnosis.do}", *evidence])


def _timeline(overview: RunOverview, now: float) -> str:
    happenings = timeline.happenings(overview.run, overview.attempts, overview.proof)
    rows = timeline.rows(happenings, now)
    return _lines([f"{moment:19}  {since:<14}  {what}" for moment, since, what in rows])


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(map(spell_out, lines))


def proof_text(proof: Verdict, columns: int) -> str:
    """Return the verdict in sentences, and a row for each rank."""
    facts = [*run_facts.differences(proof), *run_facts.preflight(proof)]
    sentences = [spell_out(line) for line in (proof.sentence, *facts)]
    lines = [line for text in sentences for line in textwrap.wrap(text, columns - 2) or [""]]
    ranks = run_facts.proof_table(proof)
    if ranks.rows:
        shrink = [ranks.titles.index(title) for title in _SHRINKING if title in ranks.titles]
        titles = [title.upper() for title in ranks.titles]
        lines.append(table(titles, [row.cells for row in ranks.rows], columns - 2, shrink=shrink))
    return "\n".join(lines)
