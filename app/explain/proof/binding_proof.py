"""The verdict on a run's binding: the probe's findings against the plan. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from lumitui.app.explain.proof.probe_report import Preflight, ProbeReport, read
from lumitui.app.explain.proof.rank_proof import (
    RankProof,
    compare_devices,
    compare_ranks,
    unmeasured,
)
from lumitui.app.explain.words import count, ranks_named
from lumitui.app.history.run import Run
from lumitui.app.job.launch import ALL_NODES, SHARED, RankLayout, measured_nodes

_STOPPED = 124  # timeout(1): the time limit was reached

Kind = Literal["proved", "differs", "unbound", "not measured", "pending"]
"""`unbound`: measured; no rank has its own cores, as planned."""


@dataclass(frozen=True)
class Verdict:
    """The probe's result on a run's binding."""

    kind: Kind
    measured: int
    """Number of ranks that reported their cores."""
    expected: int
    """Number of ranks that should have reported."""
    rows: tuple[RankProof, ...]
    sentence: str
    preflight: Preflight | None = None
    """The preflight's result; None if there was no preflight or it has not reported yet."""


@lru_cache(maxsize=4)  # a screen requests it every second; 8,192 ranks take 0.2 s
def verdict(
    binding: str | None,
    layout: RankLayout,
    *,
    ended: bool = False,
    proof: str = "on",
    job: bool = True,
) -> Verdict:
    """Return the verdict of `binding` (the text of binding.json) on the plan in `layout`.

    `ended`: whether `binding` is final. `proof`: the job file's value. `job`: whether a job is
    known. Never raises an error, whatever the text contains.
    """
    expected = measured_nodes(layout.nodes) * layout.ranks_per_node
    if binding is None:
        kind, sentence = _nothing(ended, proof, job)
        return Verdict(kind, 0, expected, (), sentence)
    report = read(binding)
    if report is None:
        why = "binding.json cannot be read: it is truncated, or the probe did not write it."
        return Verdict("not measured", 0, expected, (), why)
    if proof == "off" and not report.reports:
        _, why = _nothing(ended, proof, job)
        return Verdict("not measured", 0, expected, (), why, report.preflight)
    rows = compare_devices(compare_ranks(report.reports, layout), layout)
    measured = sum(1 for row in rows if row.found)
    kind, sentence = _conclude(rows, layout, report, expected)
    sentence += _sampled(rows, layout)
    return Verdict(kind, measured, expected, tuple(rows), sentence, report.preflight)


def verdict_of(run: Run) -> Verdict:
    """Return the current verdict on `run`, which must include its binding."""
    ended, job = run.state.is_final, run.job_id is not None
    return verdict(run.binding, run.layout, ended=ended, proof=run.brief.proof, job=job)


def _nothing(ended: bool, proof: str, job: bool) -> tuple[Kind, str]:
    if ended and not job:
        return "not measured", "There was no job, so nothing was measured."
    if proof == "off":
        return "not measured", "The job file has `proof: off`."
    if not ended:
        return "pending", "The ranks have not reported yet."
    return (
        "not measured",
        "The job left no binding.json: it ended before the probe, or could not write the file; "
        "see its log.",
    )


def _conclude(
    rows: list[RankProof], layout: RankLayout, report: ProbeReport, expected: int
) -> tuple[Kind, str]:
    missing = _missing(rows, layout)
    wrong = [row for row in rows if not row.ok]
    if wrong:
        return "differs", _differing(wrong) + _absent(missing, report)
    if not rows:
        return "not measured", f"No rank reported.{_probe(report)}"
    if not layout.planned_cores:
        why = layout.unplanned or "none were planned"
        words = f"{count(len(rows), 'rank')} reported, without cores to compare: {why}."
        words += " For a proof, set `exclusive: true`, then resubmit." if why == SHARED else ""
        return "not measured", words + _silent(rows, layout) + _absent(missing, report)
    if not any(row.found for row in rows):
        return (
            "not measured",
            "The ranks reported no cores because their environment has no taskset.",
        )
    measured = sum(1 for row in rows if row.found)
    if measured < expected or missing:
        silent = [row.rank for row in rows if not row.found]
        without = f" {ranks_named(silent)} found no taskset." if silent else ""
        return (
            "not measured",
            f"Only {measured:,} of {expected:,} ranks reported; those have the planned cores."
            + without
            + _silent(rows, layout)
            + _absent(missing, report),
        )
    return _all_measured(rows, layout)


def _all_measured(rows: list[RankProof], layout: RankLayout) -> tuple[Kind, str]:
    """Return the verdict on ranks that all reported and are as planned."""
    measured = [row for row in rows if row.found]
    hosts = len({row.host for row in measured})
    where = "one node" if hosts == 1 else f"{hosts:,} nodes"
    told = layout.on_cpu or any(row.gpus or row.devices for row in rows)
    gpus = "" if told else " They did not report their GPUs."
    silent = _silent(rows, layout)
    gpus += silent
    if layout.ranks_per_node > 1 and len(set(layout.planned_cores)) == 1:
        return "unbound", (
            f"All {len(measured):,} ranks measured on {where} share their node's cores "
            f"{layout.planned_cores[0]}: nothing binds a rank to "
            + ("its own cores." if layout.on_cpu else f"those near its GPU.{gpus}")
        )
    what = "the planned cores" if layout.exact else "the cores of their own NUMA domain"
    # Without the GPUs, cores prove nothing: the job requested both.
    kind: Kind = "not measured" if silent else "proved"
    who = f"All {len(measured):,} ranks" if len(measured) > 1 else "The only rank"
    have = "have" if len(measured) > 1 else "has"
    return kind, f"{who} measured on {where} {have} {what}.{gpus}"


def _silent(rows: list[RankProof], layout: RankLayout) -> str:
    """Return the end of a sentence that names the ranks with unmeasured devices."""
    words = unmeasured(rows, layout)
    return f" {words}" if words else ""


def _sampled(rows: list[RankProof], layout: RankLayout) -> str:
    """Return a sentence on which nodes of a large run were measured."""
    hosts = len({row.host for row in rows if row.found})
    others = layout.nodes - hosts
    if layout.nodes <= ALL_NODES or not hosts or others <= 0:
        return ""
    which = ", the first and the last" if hosts == 2 else ""
    return (
        f" The probe measured {hosts} of the run's {layout.nodes:,} nodes{which}; the cores of "
        f"the other {others:,} are unknown."
    )


def _differing(wrong: list[RankProof]) -> str:
    """Return the differing ranks, with details of the first two."""
    details = [f"Rank {row.rank} on {row.host or '?'}: {row.why}." for row in wrong[:2]]
    if len(wrong) == 1:
        return details[0]
    first = details if len(wrong) == 2 else details[:1]
    return f"{ranks_named([row.rank for row in wrong])} differ. {' '.join(first)}"


def _missing(rows: list[RankProof], layout: RankLayout) -> list[int]:
    each = layout.ranks_per_node
    nodes: Sequence[int] = range(layout.nodes)
    if layout.nodes > ALL_NODES:
        # torchrun numbers the nodes itself, so Slurm's first and last may be any.
        reported = {row.rank // each for row in rows}
        nodes = [node for node in nodes if node in reported]
    there = {row.rank for row in rows}
    ranks = (node * each + local for node in nodes for local in range(each))
    return [rank for rank in ranks if rank not in there]


def _absent(missing: list[int], report: ProbeReport) -> str:
    if not missing:
        return ""
    many = "s" if report.broken > 1 else ""
    broken = f", and {report.broken} report{many} cannot be read" if report.broken else ""
    return f" {ranks_named(missing)} did not report{broken}.{_probe(report)}"


def _probe(report: ProbeReport) -> str:
    """Return how the probe's launch failed; '' if it succeeded."""
    if report.probe is None:
        return ""
    how = (
        "The probe timed out"
        if report.probe == _STOPPED
        else f"The probe's launch ended with code {report.probe}"
    )
    return f" {how}: {report.said}." if report.said else f" {how}."
