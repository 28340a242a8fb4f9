"""How fast a run trains, in words: samples, tokens, operations, and where a step's time goes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from lumitui.app.explain import words

_PARTS = {
    "data_s": "data",
    "forward_backward_s": "forward and backward",
    "optimizer_s": "optimizer",
}
_WITHIN = {"communication_s": "on the wire", "exposed_s": "waiting for the wire"}
"""Parts that lie within the backward pass; the second lies within the first."""


class Speed(Protocol):
    """How fast a run trains, as far as its words need it; None and empty where it is not told."""

    @property
    def over_all(self) -> float | None:
        """Samples a second over all the time since the warm-up."""
        ...

    @property
    def tokens_per_s(self) -> float | None:
        """Over all ranks."""
        ...

    @property
    def tflops(self) -> float | None:
        """10^12 operations a second of one GPU."""
        ...

    @property
    def mfu(self) -> float | None:
        """Their share of what the GPU could do, 0 to 1."""
        ...

    @property
    def peak_tflops(self) -> float | None:
        """What it could do."""
        ...

    @property
    def precision(self) -> str | None:
        """Of the arithmetic."""
        ...

    @property
    def memory_gib(self) -> float | None:
        """The most that the first rank has used."""
        ...

    @property
    def parts(self) -> Sequence[tuple[str, float]]:
        """The share of a step's time in each of its parts."""
        ...


def samples(of_median: float | None, speed: Speed) -> str:
    """Return the speed over all the time, where a loader that stalls shows, and of most steps."""
    median = words.number(of_median, " samples/s")
    over_all = speed.over_all
    if over_all is None:
        return f"{median} (median after warm-up)"
    return f"{words.number(_short(over_all))} samples/s over all; {median} in the median step"


def compute(speed: Speed) -> list[tuple[str, float | None, str]]:
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
