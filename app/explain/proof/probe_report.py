"""Reports of a job's probe and preflight: ranks, GPUs, network. Pure; nothing raises."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from lumitui.remote.site.safe_text import plain

_MOST = 50
"""Maximum number of displayed findings: a network failure causes one per rank."""
_FIGURES = (
    ("gemm", "a GEMM of {} TFLOP/s per rank"),
    ("node", "all-reduce of {} GB/s within a node"),
    ("all", "{} GB/s over all ranks"),
)


@dataclass(frozen=True)
class Preflight:
    """The content of preflight.json (trainers/preflight), or of the job's substitute."""

    state: str
    """`good`, `bad` or `not run`."""
    why: str
    """The first finding, or why the preflight did not run."""
    findings: tuple[str, ...]
    """The problems, one sentence per rank or node; empty if there are none."""
    sentence: str


def preflight_of(record: object) -> Preflight | None:
    """Return the preflight in `record` of a binding.json; None if it is not a preflight."""
    if not isinstance(record, Mapping):
        return None
    state, why = _line(record.get("state")), _line(record.get("why"))
    if state not in ("good", "bad", "not run"):
        return None
    records = record.get("findings")
    items = records[:_MOST] if isinstance(records, list) else []
    sentences = [_line(item.get("text")) for item in items if isinstance(item, dict)]
    texts = tuple(text for text in sentences if text)
    findings = texts or ((why,) if state == "bad" and why else ())
    return Preflight(state, why, findings, _sentence(state, why, findings, record))


def _sentence(
    state: str, why: str, findings: tuple[str, ...], record: Mapping[object, object]
) -> str:
    if state == "not run":
        return f"Preflight not run: {why or 'no reason was given'}."
    if state == "bad":
        more = f", and {len(findings) - 1} more" if len(findings) > 1 else ""
        return f"Preflight: {why or 'unknown error'}{more}."
    figures = record.get("figures")
    known = figures if isinstance(figures, Mapping) else {}
    values = [(words, _number(known.get(key))) for key, words in _FIGURES]
    parts = [words.format(f"{value:.3g}") for words, value in values if value]
    # For a good preflight, `why` names what could not be measured.
    return f"Preflight: {', '.join(['good', *parts, *([why] if why else [])])}."


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e9:
        return 0.0
    return float(value) if math.isfinite(value) else 0.0


def _line(value: object) -> str:
    return " ".join(plain(value, 300).split()) if isinstance(value, str) else ""


@dataclass(frozen=True)
class RankReport:
    """The probe's report of one rank (templates/job/probe.sh)."""

    rank: int
    local_rank: int
    host: str
    cores: str
    """Cores as ranges; empty without taskset."""
    gpus: str
    """Visible GPUs; `none`, or empty if no variable limits them."""
    devices: str | None = None
    """PCI addresses of the GPUs that the driver lets it open; `none`, or empty without a driver.
    None: an older probe, which did not check."""
    device: str = ""
    """The GPU it uses, by its local rank; empty if unknown."""


@dataclass(frozen=True)
class ProbeReport:
    """The whole file."""

    reports: tuple[RankReport, ...]
    """Sorted by rank."""
    broken: int
    """Number of lines that are not a report."""
    probe: int | None
    """The exit code of the probe's launch, if it failed."""
    said: str
    """The messages of that launch."""
    preflight: Preflight | None = None
    """None if there was no preflight."""


def read(text: str) -> ProbeReport | None:
    """Return the content of binding.json's text; None if it is unreadable.

    The probe writes one record per line, so that a broken record does not affect others.
    """
    records = _records(text)
    broken = 0
    if records is None:
        lines = [line.strip().rstrip(",") for line in text.splitlines()]
        parsed = [_records(f"[{line}]") for line in lines if line not in ("", "[", "]")]
        records = [item[0] for item in parsed if item]
        broken = len(parsed) - len(records)
        if not records:
            return None
    reports: list[RankReport] = []
    probe: int | None = None
    words = ""
    preflight: Preflight | None = None
    for record in records:
        code = record.get("probe")
        if type(code) is int:
            probe, words = code, " ".join(_text(record.get("said")).split())
        elif (found := preflight_of(record.get("preflight"))) is not None:
            preflight = found
        elif (report := _report(record)) is not None:
            reports.append(report)
        else:
            broken += 1
    if broken and not reports and preflight is None:
        return None
    reports.sort(key=lambda item: (item.rank, item.host, item.cores))
    return ProbeReport(tuple(reports), broken, probe, words, preflight)


def _records(text: str) -> list[dict[str, object]] | None:
    try:
        data = json.loads(text)
    # RecursionError: thousands of opening brackets.
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        return None
    return data


def _report(record: dict[str, object]) -> RankReport | None:
    rank, local_rank = record.get("rank"), record.get("local_rank")
    if type(rank) is not int or type(local_rank) is not int:
        return None
    host, cores, gpus = (_text(record.get(name)) for name in ("host", "cores", "gpus"))
    devices = _text(record["devices"]) if "devices" in record else None
    return RankReport(rank, local_rank, host, cores, gpus, devices, _text(record.get("device")))


def _text(value: object) -> str:
    return _clean(value) if isinstance(value, str) else ""


@lru_cache(maxsize=4096)  # cached: a thousand nodes have only a few different core lists
def _clean(text: str) -> str:
    return plain(text).strip()
