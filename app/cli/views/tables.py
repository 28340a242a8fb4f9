"""Tables and pages of text for the command line. Pure: values in, lines out."""

import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from lumitui.app.explain import row_words, words
from lumitui.app.runs import GPU_TITLES, gpu_rows, gpu_summary, spell_out

if TYPE_CHECKING:
    from lumitui.app.runs import (
        ClusterOverview,
        FileFacts,
        Finding,
        PlanChange,
        Pruned,
        RemovedItems,
        Run,
        RunGpus,
        Site,
        Stock,
    )

NARROWEST = 8
"""Columns below which no column shrinks."""


def width(text: str) -> int:
    """Return how many terminal columns `text` takes; emoji and CJK take two."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def cut(text: str, columns: int, *, keep_end: bool = False) -> str:
    """Return `text` in at most `columns`, with `…` in place of the rest.

    `keep_end` keeps the last seven characters, in which ids of the same name differ.
    """
    if width(text) <= columns:
        return text
    tail = text[-7:] if keep_end and columns > 9 else ""
    room, end = columns - 1 - width(tail), 0
    for char in text[: len(text) - len(tail)]:
        room -= width(char)
        if room < 0:
            break
        end += 1
    return f"{text[:end]}…{tail}"


def table(
    titles: Sequence[str],
    rows: Iterable[Sequence[object]],
    columns: int,
    *,
    shrink: Sequence[int] = (),
    ids: int | None = None,
) -> str:
    """Return `rows` below `titles` as aligned text, at most `columns` wide.

    Columns in `shrink` are cut in that order; `ids` is the column with run ids.
    """
    cells = [[spell_out(str(cell)) for cell in row] for row in rows]
    lines = [titles, *cells]
    widths = [max(width(row[index]) for row in lines) for index in range(len(titles))]
    for index in shrink:
        over = sum(widths) + 2 * (len(widths) - 1) - columns
        if over > 0:
            least = max(NARROWEST, width(titles[index]))
            widths[index] = max(min(least, widths[index]), widths[index] - over)
    return "\n".join(_line(row, widths, ids) for row in lines)


def _line(row: Sequence[str], widths: Sequence[int], ids: int | None) -> str:
    parts = []
    for index, cell in enumerate(row):
        shown = cut(cell, widths[index], keep_end=index == ids)
        parts.append(shown + " " * (widths[index] - width(shown)))
    return "  ".join(parts).rstrip()


def pairs(rows: Iterable[tuple[str, object]]) -> str:
    """Return lines of names and aligned values, without values that are None or ''."""
    kept = [(name, spell_out(str(value))) for name, value in rows if value not in (None, "")]
    widest = max((len(name) for name, _ in kept), default=0)
    return "\n".join(f"{name:<{widest}}  {value}" for name, value in kept)


def section(title: str, body: str) -> str:
    """Return `body` indented below `title`; '' if it is empty."""
    if not body.strip():
        return ""
    return f"{title}\n" + "\n".join(f"  {line}".rstrip() for line in body.splitlines())


def run_table(runs: Sequence["Run"], now: float, columns: int, stale: Collection[str] = ()) -> str:
    """Return the table of `status`: the current activity of each run.

    Nobody reported the runs `stale` (ids), so they are shown as of the last poll.
    """
    rows = []
    for run in runs:
        old = run.id in stale and not run.state.is_final
        elapsed = words.clock_of_limit(run, now)
        news = [words.recent_clock(run.updated, now) if old else "now"] if stale else []
        facts = (run.job_id or "-", elapsed, run.site, row_words.short_reason(run))
        rows.append((run.id, run.state.value, *news, run.layout.nodes, *facts))
    titles = ["RUN", "STATE", "NODES", "JOB", "ELAPSED/LIMIT", "SITE", "REASON"]
    shrink = [6, 5, 0, 6, 4, 3]
    if stale:
        titles.insert(2, "AS OF")
        shrink = [index and index + 1 for index in shrink]
    return table(titles, rows, columns, shrink=shrink, ids=0)


def history_table(runs: Sequence["Run"], columns: int) -> str:
    """Return the table of `history`, '' without runs.

    The table has FROM only if it fits, and the cost and NOTE only if a run has them; in a narrow
    terminal, notes come before the cost.
    """
    if not runs:
        return ""
    units = {run.price.unit for run in runs if run.billed(run.updated)}
    cost = "GPU-H" if units == {"GPU-hours"} else "COST"
    titles = ("RUN", "CREATED", "STATE", "JOB", "NODES", cost, "SITE", "NOTE", "FROM")
    rows = [
        (run.id, words.clock(run.created)[:16], run.state.value, run.job_id or "-",
         run.layout.nodes, row_words.cost([run], run.updated), run.site, run.note,
         run.parent or "-")
        for run in runs
    ]  # fmt: skip
    shown = [(title, *cells) for title, *cells in zip(titles, *rows, strict=True) if any(cells)]
    has_note = any(run.note for run in runs)
    for omitted in ((), ("FROM",), ("FROM", cost) if has_note else ("FROM",)):
        names, *lines = zip(*(one for one in shown if one[0] not in omitted), strict=True)
        whole = table(names, lines, columns, ids=0)
        if max(map(width, whole.splitlines())) <= columns:
            return whole
    shrink = [names.index(name) for name in ("NOTE", "SITE", "RUN") if name in names]
    return table(names, lines, columns, shrink=shrink, ids=0)


def file_words(facts: "FileFacts", runs: int) -> str:
    """Return the history file's path and state in one line."""
    parts = [words.count(runs, "run"), words.size(facts.size), f"schema {facts.schema}"]
    if facts.damage:
        parts.append(f"damaged: {facts.damage}")
    elif facts.lost_texts:
        parts.append(f"{words.count(facts.lost_texts, 'text')} lost")
    elif facts.damage is not None:
        parts.append("sound")
    return f"{facts.path}: {', '.join(parts)}"


def change_table(changes: Sequence["PlanChange"], columns: int) -> str:
    """Return the before/after table of a resubmission; `=` marks unchanged values."""
    rows = [(item.what, item.before, item.after if item.differs else "=") for item in changes]
    return table(("", "BEFORE", "AFTER"), rows, columns, shrink=(1, 2))


def site_table(sites: Sequence["Site"], columns: int) -> str:
    """Return the table of `sites`, one site per line, closed sites last."""
    today = date.today()
    rows = []
    for site in sorted(sites, key=lambda site: site.is_closed(today)):
        partitions = ", ".join(site.partitions)
        if site.is_closed(today):
            instead = f"; use {site.replaced_by}" if site.replaced_by else ""
            partitions = f"closed on {site.retired}{instead}"
        node = f"{site.node.gpus} x {site.node.gpu.partition(' (')[0]}"
        rows.append((site.name, site.title, node, partitions))
    titles = ("SITE", "TITLE", "GPUS PER NODE", "PARTITIONS")
    return table(titles, rows, columns, shrink=(3, 2, 1))


def site_page(site: "Site", path: Path, columns: int) -> str:
    """Return a site's profile as text, at most 80 columns wide."""
    from lumitui.app.explain.site_page import WIDE, page

    text = page(site, date.today(), min(columns, WIDE))
    return spell_out(f"{text}\n\nProfile: {path}", keep="\n")


def check_text(checks: Sequence["Finding"]) -> str:
    """Return the checks of a site, one per line, with the fix below; `ok` for a passed check."""
    lines = []
    for item in checks:
        word = "ok" if item.severity == "note" else item.severity
        lines.append(spell_out(f"{word:<7}  {item.rule}: {item.message}"))
        lines += [f"         {spell_out(item.do)}"] if item.do else []
    return "\n".join(lines)


def overview_text(overview: "ClusterOverview", now: float, columns: int) -> str:
    """Return all parts of a site's overview, each below its heading."""
    from lumitui.app.runs import overview_parts

    parts = []
    for part in overview_parts(overview, now):
        body = spell_out(part.sentence)
        if part.rows and any(part.titles):
            titles = [title.upper() for title in part.titles]
            last = len(titles) - 1
            body = table(titles, part.rows, columns, shrink=(last, last - 1, 0))
        elif part.rows:
            body = "\n".join(spell_out(row[0]) for row in part.rows)
        parts.append(f"{part.heading}\n{body}")
    return "\n\n".join(parts)


def gpus_text(readings: "RunGpus", columns: int) -> str:
    """Return a run's GPUs: their sums and the idle ones, then one per line."""
    titles = [title.upper() for title in GPU_TITLES]
    gpus, idle_watts = readings.gpus, readings.idle_watts
    rows = table(titles, gpu_rows(gpus, idle_watts), columns)
    return "\n".join([*gpu_summary(gpus, idle_watts), "", rows])


def pruned_text(freed: Mapping[str, "Pruned"], *, dry: bool) -> str:
    """Return what was removed, one folder per line; for a dry run, what would be."""
    gone = "would remove" if dry else "removed"
    return "\n".join(
        f"{spell_out(root)}: {gone} {words.count(len(item.snapshots), 'snapshot')}, "
        f"{words.count(item.files, 'file')}, {words.size(item.bytes)}"
        for root, item in freed.items()
    )


def stock_text(stocks: "Sequence[Stock]", columns: int) -> str:
    """Return the staged items of each store, one per line."""
    parts = []
    for each in stocks:
        if each.items or each.loose.files:
            parts.append(spell_out(each.folder))
        rows = [
            (
                item.name,
                words.size(item.bytes),
                words.count(item.files, "file"),
                words.clock(item.last_used or None)[:10],
                item.id,
                "in use" if item.in_use else "",
            )
            for item in each.items
        ]
        if rows:
            titles = ("NAME", "SIZE", "FILES", "LAST USED", "ID", "")
            parts.append(table(titles, rows, columns, shrink=(0,)))
        if each.loose.files:
            loose = f"{words.count(each.loose.files, 'file')}, {words.size(each.loose.bytes)}"
            parts.append(f"unfinished uploads: {loose}")
    return "\n".join(parts)


def removed_text(freed: "Sequence[RemovedItems]", *, dry: bool) -> str:
    """Return the removed items of each store; for a dry run, those it would remove."""
    verb, gone = ("would free", "would remove") if dry else ("freed", "removed")
    lines = []
    for each in freed:
        parts = [words.count(len(each.ids), "item")] if each.ids or not each.loose.files else []
        if each.loose.files:
            parts.append(f"{words.count(each.loose.files, 'file')} of unfinished uploads")
        size = words.size(each.bytes + each.loose.bytes)
        lines.append(f"{spell_out(each.folder)}: {' and '.join(parts)}, {verb} {size}")
        lines += [
            f"  {gone} {item.name} ({item.id}), {words.size(item.bytes)}" for item in each.items
        ]
        lines += [
            f"  kept {item.name} ({item.id}), still needed by {', '.join(item.used_by)}"
            for item in each.kept
        ]
    return "\n".join(lines)
