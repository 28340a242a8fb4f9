"""What a job's preflight found of its GPUs and its network, in sentences. Pure; nothing raises."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lumitui.remote.site.safe_text import plain

_MOST = 50
"""Findings that are shown; a network that is down makes one of every rank."""
_FIGURES = (
    ("gemm", "a GEMM of {} TFLOP/s a rank"),
    ("node", "all-reduce of {} GB/s within a node"),
    ("all", "{} GB/s over all ranks"),
)


@dataclass(frozen=True)
class Preflight:
    """The content of preflight.json (trainers/preflight), or of what the job wrote in its place."""

    state: str
    """`good`, `bad` or `not run`."""
    why: str
    """The first finding, or why it did not run."""
    findings: tuple[str, ...]
    """What is wrong, a sentence for each rank or node that is named; empty where all is well."""
    sentence: str
    """The whole in one sentence."""


def preflight_of(record: object) -> Preflight | None:
    """Return what `record` of a binding.json says; None when it is not a preflight's."""
    if not isinstance(record, Mapping):
        return None
    state, why = _text(record.get("state")), _text(record.get("why"))
    if state not in ("good", "bad", "not run"):
        return None
    records = record.get("findings")
    items = records[:_MOST] if isinstance(records, list) else []
    sentences = [_text(item.get("text")) for item in items if isinstance(item, dict)]
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
        return f"Preflight: {why or 'something is wrong'}{more}."
    figures = record.get("figures")
    known = figures if isinstance(figures, Mapping) else {}
    values = [(words, _number(known.get(key))) for key, words in _FIGURES]
    parts = [words.format(f"{value:.3g}") for words, value in values if value]
    # Of a good one `why` says what could not be measured.
    return f"Preflight: {', '.join(['good', *parts, *([why] if why else [])])}."


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e9:
        return 0.0
    return float(value) if math.isfinite(value) else 0.0


def _text(value: object) -> str:
    return " ".join(plain(value, 300).split()) if isinstance(value, str) else ""
