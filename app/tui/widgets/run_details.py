"""A run's facts, proof, metrics and reasons of failure as the run's screen tells them. Pure."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lumitui.app.explain.binding_proof import Verdict
from lumitui.app.explain.diagnose import Diagnosis
from lumitui.app.explain.proof_rows import differences
from lumitui.app.explain.waiting import expectations, no_failure
from lumitui.app.explain.words import billed
from lumitui.app.history.run import Run
from lumitui.app.results.log_patterns import LogFigures
from lumitui.app.results.summary import Figures
from lumitui.app.tui.widgets import wording
from lumitui.app.tui.widgets.chart import sparkline
from lumitui.app.tui.widgets.log_text import visible
from lumitui.remote.cores import format_cores

KINDS = {
    "proved": "bold green",
    "differs": "bold red",
    "unbound": "yellow",
    "not measured": "yellow",
    "pending": "cyan",
}


def facts_of(run: Run, lineage: Sequence[Run], found: Verdict, now: float) -> RenderableType:
    """Return what is known of a run; `lineage` is its family, the root first."""
    state = wording.state_text(run.state)
    if run.reason not in ("", "None"):
        state.append(f"  {visible(' '.join(run.reason.split()))}", "default not bold")
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(Text("state", style="dim"), state)
    proof = Text.assemble((found.kind, KINDS[found.kind]), wording.plain(f"  {found.sentence}"))
    table.add_row(Text("proof", style="dim"), proof)
    for what, value in (*_lines(run, now), *_family(run, lineage)):
        if value:
            table.add_row(Text(what, style="dim"), wording.plain(value))
    return table


def _lines(run: Run, now: float) -> list[tuple[str, str]]:
    attempts = ", ".join(f"{number}: {size:,} B" for number, size in run.log_sizes.items())
    started = [("started", wording.clock(run.started))] if run.started else []
    ended = [("ended", wording.clock(run.ended))] if run.ended else []
    return [
        ("scheduler", f"{run.word or '-'}, job {run.job_id or 'none'}, attempt {run.attempt}"),
        ("size", wording.size_of(run.layout) + (f" on {run.nodes_used}" if run.nodes_used else "")),
        ("site", f"{run.site}, {run.spec.partition}, account {run.spec.account}"),
        ("time", _time(run, now)),
        ("submitted", wording.clock(run.submitted or run.created)),
        *expectations(run, now),
        *started,
        *ended,
        ("last news", wording.clock(run.updated)),
        ("billed", billed(run, now)),
        ("batch", f"{run.global_batch} samples a step over all ranks" if run.global_batch else ""),
        ("exit", _exit(run)),
        ("code", _code(run)),
        ("job file", run.job_file or ""),
        ("folder", run.folder),
        ("logs", attempts),
        ("note", run.note),
    ]


def _time(run: Run, now: float) -> str:
    if run.started is None:
        return f"not started, at most {run.spec.time}"
    return f"{wording.duration(run.elapsed(now))} of at most {run.spec.time}"


def _exit(run: Run) -> str:
    if run.rc is None:
        return ""
    rank = f", rank {run.failed_rank} failed first" if run.failed_rank is not None else ""
    return f"code {run.rc}{rank}"


def _code(run: Run) -> str:
    code = run.provenance
    if code.commit is None:
        words = "not in a git repository"
    else:
        dirty = " with uncommitted changes" if code.dirty else ""
        words = f"{code.commit[:12]} on {code.branch or 'a detached head'}{dirty}"
    return f"{words}; snapshot {(run.snapshot or 'none')[:16]}"


def _family(run: Run, lineage: Sequence[Run]) -> list[tuple[str, str]]:
    if len(lineage) < 2:
        return []
    lines = [
        f"{'>' if other.id == run.id else ' '} {other.id}  "
        f"{wording.count(other.layout.nodes, 'node')}  {other.state}"
        + (f"  from {other.parent}" if other.parent else "")
        for other in lineage
    ]
    from_run = [("continues", f"the checkpoint of {run.resumed_from}")] if run.resumed_from else []
    return [*from_run, ("lineage", "\n".join(lines))]


def figures(found: Figures) -> RenderableType:
    """Return what a run's metrics come to."""
    if not found.points:
        return Text("No metrics yet. They appear when the trainer writes metrics.jsonl.")
    total = found.summary
    rows: list[tuple[str, object, str]] = [
        ("steps", total.steps, ""),
        ("last loss", total.last_loss, ""),
        ("throughput", total.samples_per_s, " samples a second (median after warm-up)"),
        ("accuracy", total.test_accuracy, ""),
        ("training", total.seconds, " s"),
        ("ranks", total.world_size, ""),
        ("batch", total.global_batch, " samples a step over all ranks"),
        ("left out", found.broken or None, " lines of metrics.jsonl that cannot be read"),
    ]
    table = Table.grid(padding=(0, 2))
    for what, value, unit in rows:
        if value is not None:
            shown = f"{value:.5g}" if isinstance(value, float) else f"{value}"
            table.add_row(Text(what, style="dim"), Text(shown + unit))
    return Group(table, Text(), Text("loss", style="dim"))


def log_figures(found: LogFigures) -> RenderableType:
    """Return what the job file's `metrics:` found at the end of the log."""
    if found.warning:
        return wording.plain(found.warning)
    if not found.series:
        return Text()
    table = Table.grid(padding=(0, 2))
    for name, values in found.series.items():
        last = f"{values[-1]:.5g}" if values else "not found yet"
        table.add_row(Text(visible(name), style="dim"), Text(last), Text(sparkline(values, 40)))
    return Group(Text("from the end of the log (m searches it again)", style="dim"), table)


def verdict(found: Verdict) -> RenderableType:
    """Return what the probe says: the verdict, and planned against found a rank."""
    head = Text.assemble((found.kind, KINDS[found.kind]), wording.plain(f"  {found.sentence}"))
    if not found.rows:
        return head
    wrong = [Text(visible(line), style="bold red") for line in differences(found)]
    # A plan that is the same for all is in the sentence; its long list of cores needs the room.
    shared = len({row.planned for row in found.rows}) == 1 and len(found.rows) > 1
    names = ["rank", "local", "host", "planned", "found", "GPUs", ""]
    table = Table.grid(padding=(0, 2))
    lines = [[Text(name, style="dim") for name in names]]
    for row in found.rows:
        same = row.ok and bool(row.planned)
        lines.append(
            [
                Text(f"{row.rank:4d}"),
                Text(f"{row.local_rank:5d}"),
                Text(visible(row.host)),
                Text(row.planned or "-"),
                Text(visible(row.found) or "?", style="" if row.ok else "bold red"),
                Text(visible(_ranges(row.gpus)) or "?"),
                Text("ok" if same else "" if row.ok else "differs"),
            ]
        )
    for cells in lines:
        table.add_row(*(cell for at, cell in enumerate(cells) if not shared or at not in (1, 3)))
    return Group(head, *wrong, Text(), table)


def _ranges(gpus: str) -> str:
    """Return GPUs as ranges where they are numbers in order, else as they are."""
    parts = gpus.split(",")
    numbers = [int(part) for part in parts if part.isdecimal()]
    in_order = len(numbers) == len(parts) and numbers == sorted(set(numbers))
    return format_cores(numbers) if in_order else gpus


def why(
    run: Run, diagnoses: Sequence[Diagnosis] | None, now: float = 0.0, *, searching: bool = False
) -> RenderableType:
    """Return why a run failed, the likeliest cause first, each with its line of the log.

    Of a run that did not fail it says that. `searching`: the end of the log is being searched.
    """
    if told := no_failure(run, now):
        return wording.plain(f"{told}\n")
    if searching:
        return Text("Searching the end of the log …\n", style="dim")
    if diagnoses is None:
        return Text()
    if not diagnoses:
        told = "Nothing that looks like a cause was found.\n"
        if not run.state.is_final:
            told = f"It is {run.state}, and the end of its log tells of no failure.\n"
        return Text(told, style="dim")
    parts = []
    for found in diagnoses:
        rank = f" (rank {found.rank})" if found.rank is not None else ""
        parts.append(Text.assemble((f"{found.sentence}{rank}", "bold yellow"), f"\n  {found.do}"))
        if found.line:
            parts.append(Text(f"  {visible(found.line)}", style="dim"))
    return Group(*parts, Text())
