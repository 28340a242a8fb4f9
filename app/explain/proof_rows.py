"""A run's proof as lines and as the rows of a table. Pure."""

from dataclasses import dataclass

from lumitui.app.explain.binding_proof import Verdict
from lumitui.app.explain.rank_proof import RankProof
from lumitui.app.explain.words import ranks_named
from lumitui.remote.cores import format_cores


@dataclass(frozen=True)
class ProofRow:
    """One rank's cells."""

    cells: tuple[str, ...]
    """As many as there are titles; the last one is `ok`, `differs` or empty."""
    ok: bool
    """Whether nothing is wrong with the rank."""


@dataclass(frozen=True)
class ProofTable:
    """Planned and found, a row a rank."""

    titles: tuple[str, ...]
    rows: tuple[ProofRow, ...]


def table(verdict: Verdict) -> ProofTable:
    """Return a row for each rank that reported.

    Local ranks and planned cores are left out where all ranks have the same plan: the verdict's
    sentence names it, and its long list of cores would leave no room for the others.
    """
    shared = len({row.planned for row in verdict.rows}) == 1 and len(verdict.rows) > 1
    titles: tuple[str, ...] = ("rank", "host", "found", "GPUs", "")
    if not shared:
        titles = ("rank", "local", "host", "planned", "found", "GPUs", "")
    return ProofTable(titles, tuple(_row(row, shared=shared) for row in verdict.rows))


def _row(row: RankProof, *, shared: bool) -> ProofRow:
    found, gpus = row.found or "?", _ranges(row.gpus) or "?"
    # Without a plan there is nothing that could be right.
    word = "differs" if not row.ok else "ok" if row.planned else ""
    if shared:
        return ProofRow((str(row.rank), row.host or "?", found, gpus, word), row.ok)
    place = (str(row.rank), str(row.local_rank), row.host or "?")
    return ProofRow((*place, row.planned or "-", found, gpus, word), row.ok)


def _ranges(gpus: str) -> str:
    """Return GPUs as ranges where they are numbers in order, else as they are."""
    parts = gpus.split(",")
    numbers = [int(part) for part in parts if part.isdecimal()]
    in_order = len(numbers) == len(parts) and numbers == sorted(set(numbers))
    return format_cores(numbers) if in_order else gpus


def differences(verdict: Verdict, most: int = 10) -> list[str]:
    """Return a line for each thing that is wrong, with the ranks that have it; at most `most`.

    Nothing for one or two ranks: the verdict's sentence says it all.
    """
    having: dict[str, list[int]] = {}
    for row in verdict.rows:
        if not row.ok:
            having.setdefault(row.why, []).append(row.rank)
    if sum(map(len, having.values())) <= 2:
        return []
    lines = [f"{ranks_named(ranks)}: {why}" for why, ranks in having.items()]
    more = sum(len(ranks) for ranks in list(having.values())[most:])
    return lines[:most] + ([f"{more} more ranks differ, see below"] if more else [])
