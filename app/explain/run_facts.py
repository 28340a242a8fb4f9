"""The facts of a run, its lineage, proof and metrics as rows of words. Pure.

The words may contain text from a site: escape it when drawing (`safe_text`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumitui.app.explain import run_phrases, words
from lumitui.app.explain.waiting import expectations
from lumitui.app.history.listing.tags import split_tags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lumitui.app.explain.proof.binding_proof import Verdict
    from lumitui.app.explain.proof.rank_proof import RankProof
    from lumitui.app.explain.training_summary import Summary
    from lumitui.app.history.run import Run

Row = tuple[str, str]
"""A label and its words, which are never empty."""

NO_METRICS = (
    "No metrics yet. A bundled trainer writes them after its first step. For your own script, use "
    "lumitui_run.py (`lumitui docs scripts`), or `metrics:` to find numbers in the log."
)

NO_MATCH = "The script has printed nothing that matches `metrics:` yet."


@dataclass(frozen=True)
class ProofRow:
    """One rank's cells."""

    cells: tuple[str, ...]
    """One per title; the last is `ok`, `differs` or empty."""
    ok: bool
    """Whether the rank is as planned."""


@dataclass(frozen=True)
class ProofTable:
    """Planned and measured values, one row per rank."""

    titles: tuple[str, ...]
    rows: tuple[ProofRow, ...]


def state(run: Run, now: float) -> str:
    """Return the state, the scheduler's word if it differs, and the age of the last answer."""
    old, ago = words.heard(run, now), words.seen(run, now)
    when = f" when last heard from, {old}" if old else f", seen {ago}" if ago else ""
    same = run.word.replace("_", " ").casefold() == run.state
    word = f" ({run.word})" if run.word and not same else ""
    return f"{run.state}{word}{when}"


def _created(run: Run, now: float) -> str:
    """Return when the run was created, if the site does not know when it was submitted."""
    if run.created > now + words.CLOCK_ERROR:
        return f"{words.clock(run.created)} (this machine's clock was ahead)"
    return "" if run.submitted else words.clock(run.created)


def facts(run: Run, now: float) -> list[Row]:
    """Return the facts of a run that its overview lacks; omit unknown ones."""
    text, tags = split_tags(run.note)
    nodes = f" on {run.nodes_used}" if run.nodes_used else ""
    rows = (
        ("exit", _exit(run)),
        ("site", _place(run)),
        ("job", f"{run.job_id}, {run_phrases.attempt(run)}" if run.job_id else ""),
        ("size", words.layout_size(run.layout) + nodes),
        ("time", _limit(run)),
        ("created", _created(run, now)),
        # For a requeued job, Slurm knows only the time of the requeue.
        ("requeued" if run.queued_again else "submitted", words.clock(run.submitted)),
        ("after", ", ".join(run.awaited)),
        *expectations(run, now),
        ("started", words.clock(run.started)),
        ("ended", words.clock(run.ended)),
        ("last answer", words.clock(run.updated)),
        ("global batch", _batch(run.global_batch)),
        ("code", _code(run)),
        ("snapshot", run.snapshot or ""),
        ("continues from", run.resumed_from or ""),
        ("folder", run.folder),
        ("project", run.project),
        ("job file", (run.job_file or "").removeprefix(f"{run.project}/")),
        ("logs", ", ".join(f"{at}: {words.size(size)}" for at, size in run.log_sizes.items())),
        ("note", text),
        ("tags", tags),
    )
    return [(label, text) for label, text in rows if text]


def _place(run: Run) -> str:
    account = "" if run.brief.account == "none" else f", account {run.brief.account}"
    return f"{run.site}, {run.brief.partition}{account}"


def _exit(run: Run) -> str:
    if run.rc is None:
        return ""
    if words.chain_end(run):
        return f"code {run.rc}: stopped on request"
    rank = f", rank {run.failed_rank} failed first" if run.failed_rank is not None else ""
    return f"code {run.rc}{rank}"


def _limit(run: Run) -> str:
    """Return the time limit of a run that has not started; others show it in the overview."""
    if run.started is not None or run.attempts:
        return ""
    times = f"{run.brief.chain} x " if run.brief.chain > 1 else ""
    return f"not started, at most {times}{words.time_limit(run)}"


def _batch(samples: int | None) -> str:
    return f"{samples} samples per step over all ranks" if samples else ""


def _code(run: Run) -> str:
    code = run.provenance
    if code.commit is None:
        return "not in a git repository"
    dirty = " with uncommitted changes" if code.dirty else ""
    return f"{code.commit[:12]} on {code.branch or 'a detached HEAD'}{dirty}"


def lineage(run: Run, family: Sequence[Run]) -> list[str]:
    """Return a line for each run of `family`, indented below its parent; `>` marks `run`.

    `family` begins with the root; without relatives, there are no lines.
    """
    depth: dict[str, int] = {}
    lines = []
    for other in family:
        depth[other.id] = depth.get(other.parent or "", -1) + 1
        lead = f"{'>' if other.id == run.id else ' '} {'  ' * depth[other.id]}"
        size = words.count(other.layout.nodes, "node")
        lines.append(f"{lead}{other.id}  {other.state}, {size}")
    return lines if len(lines) > 1 else []


def proof_table(verdict: Verdict) -> ProofTable:
    """Return a row for each rank that reported, differing ranks first.

    Omits local ranks and planned cores if all ranks have the same plan: the verdict names it, and
    the long core list would leave no room for the other columns.
    """
    shared = len({row.planned for row in verdict.rows}) == 1 and len(verdict.rows) > 1
    # Also omitted if no rank reported a GPU, as on a node without GPUs.
    gpus, bus = any(row.gpus for row in verdict.rows), any(row.device for row in verdict.rows)
    titles: tuple[str, ...] = ("rank", "host", "found")
    if not shared:
        titles = ("rank", "local", "host", "planned", "found")
    titles += (*(("GPU",) if gpus else ()), *(("PCI",) if bus else ()), "verdict")
    rows = sorted(verdict.rows, key=lambda row: row.ok)
    right = "unbound" if verdict.kind == "unbound" else "ok"
    made = (_proof_row(row, right, shared=shared, gpus=gpus, bus=bus) for row in rows)
    return ProofTable(titles, tuple(made))


def _proof_row(row: RankProof, right: str, *, shared: bool, gpus: bool, bus: bool) -> ProofRow:
    # Without a plan, no rank can be `right`.
    verdict = "differs" if not row.ok else right if row.planned else ""
    devices: tuple[str, ...] = (_gpu(row.gpus, row.local_rank) or "?",) if gpus else ()
    devices += (row.device.removeprefix("0000:") or "?",) if bus else ()
    cells = (row.found or "?", *devices, verdict)
    if shared:
        return ProofRow((str(row.rank), row.host or "?", *cells), row.ok)
    place = (str(row.rank), str(row.local_rank), row.host or "?")
    return ProofRow((*place, row.planned or "-", *cells), row.ok)


def _gpu(gpus: str, local: int) -> str:
    """Return the GPU that a rank uses by its order, of those that it sees."""
    seen = gpus.split(",")
    return seen[local] if 0 <= local < len(seen) else gpus


def preflight(verdict: Verdict, most: int = 10) -> list[str]:
    """Return the preflight's result in one sentence, then its findings, one per line."""
    result = verdict.preflight
    if result is None:
        return []
    more = len(result.findings) - most
    lines = list(result.findings[:most]) if len(result.findings) > 1 else []
    return [result.sentence, *lines, *([f"{more} more findings"] if more > 0 else [])]


def differences(verdict: Verdict, most: int = 10) -> list[str]:
    """Return at most `most` lines, one per problem, with the ranks that have it.

    Empty for one or two ranks, which the verdict names.
    """
    having: dict[str, list[int]] = {}
    for row in verdict.rows:
        if not row.ok:
            having.setdefault(row.why, []).append(row.rank)
    if sum(map(len, having.values())) <= 2:
        return []
    lines = [f"{words.ranks_named(ranks)}: {why}" for why, ranks in having.items()]
    more = sum(len(ranks) for ranks in list(having.values())[most:])
    return lines[:most] + ([f"{more} more ranks differ, see below"] if more else [])


def metrics(
    totals: Summary, broken: int, planned: int | None = None, *, resumed: bool = False
) -> list[Row]:
    """Return a summary of a run's metrics; `broken` lines of metrics.jsonl were unreadable.

    `planned` is the global batch that the job file gives, which the row of another one names.
    `resumed`: the run counts on from its parent's steps.
    """
    if not totals.steps:
        return []
    speed = run_phrases.samples(totals.samples_per_s, totals.throughput)
    lines = f"{words.count(broken, 'line')} of metrics.jsonl cannot be read"
    before = totals.before if resumed else 0
    after = f", after {before:,} of an earlier run" if before else ""
    rows = (
        (f"{totals.unit}s", totals.steps, f"{totals.steps - before:,}{after}"),
        ("last loss", totals.last_loss, words.number(totals.last_loss)),
        ("throughput", totals.samples_per_s, speed),
        *run_phrases.compute(totals.throughput),
        ("test accuracy", totals.test_accuracy, words.number(totals.test_accuracy)),
        ("trained for", totals.seconds, _trained_for(totals.seconds)),
        ("ranks", totals.world_size, f"{totals.world_size}"),
        ("global batch", totals.global_batch, _trained_batch(totals.global_batch, planned)),
        ("left out", broken or None, lines),
    )
    return [(label, text) for label, value, text in rows if value is not None]


def _trained_batch(trained: int | None, planned: int | None) -> str:
    other = trained and planned not in (None, trained)
    return _batch(trained) + (f"; the job file's arguments give {planned}" if other else "")


def _trained_for(seconds: float | None) -> str:
    """Return the time until the last step, which a trainer counts from its own start."""
    if seconds is None or seconds < 10:
        return words.number(seconds, " s, start-up included")
    return f"{words.length(seconds)}, start-up included"


def log_metrics(series: Mapping[str, Sequence[float]]) -> list[Row]:
    """Return a row for each series of the job file's `metrics:`."""
    return [(name, _last_of(values)) for name, values in series.items()]


def _last_of(values: Sequence[float]) -> str:
    if not values:
        return "not found at the end of the log"
    return f"{words.number(values[-1])} (last of {len(values)} at the end of the log)"
