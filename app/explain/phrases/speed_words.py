"""How fast a run trains, in words: samples, tokens, operations, and where a step's time goes."""

from collections.abc import Iterable, Mapping, Sequence

from lumitui.app.explain import words
from lumitui.app.explain.training_summary import Throughput

_PARTS = {
    "data_s": "data",
    "forward_backward_s": "forward and backward",
    "optimizer_s": "optimizer",
}
_WITHIN = {"communication_s": "on the wire", "exposed_s": "waiting for the wire"}
"""Parts that lie within the backward pass; the second lies within the first."""


def samples(of_median: float | None, speed: Throughput) -> str:
    """Return the speed over all the time, where a loader that stalls shows, and of most steps."""
    median = words.number(of_median, " samples/s")
    over_all = speed.over_all
    if over_all is None:
        return f"{median} (median after warm-up)"
    return f"{words.number(_short(over_all))} samples/s over all; {median} in the median step"


def compute(speed: Throughput) -> list[tuple[str, float | None, str]]:
    """Return the rows of what the trainer tells about its use of a GPU, with their values."""
    compute = words.number(_short(speed.tflops), " TFLOP/s a rank")
    if speed.mfu is not None:
        of = words.number(speed.peak_tflops, f" ({speed.precision})")
        compute += f", MFU {100 * speed.mfu:.1f} % of {of}"
    return [
        ("tokens", speed.tokens_per_s, words.number(_short(speed.tokens_per_s), " tokens/s")),
        ("compute", speed.tflops, compute),
        ("memory", speed.memory_gib, words.number(_short(speed.memory_gib), " GiB at most")),
        ("a step's time", speed.parts[0][1] if speed.parts else None, _split(speed.parts)),
    ]


def _split(parts: Sequence[tuple[str, float]]) -> str:
    """Return the parts of a step, which add up; after them those that lie within one of them."""

    def listed(names: Mapping[str, str], chosen: Iterable[tuple[str, float]]) -> str:
        return ", ".join(f"{names.get(name, name)} {100 * share:.0f} %" for name, share in chosen)

    whole = listed(_PARTS, (part for part in parts if part[0] not in _WITHIN))
    within = listed(_WITHIN, (part for part in parts if part[0] in _WITHIN))
    if not within:
        return whole
    shares = dict(parts)
    nested = " (in that)" if _WITHIN.keys() <= shares.keys() else ""
    return f"{whole}; the backward pass includes: {within}{nested}"


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
