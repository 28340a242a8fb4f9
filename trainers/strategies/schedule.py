"""The learning rate along a training."""

from __future__ import annotations

import math
from collections.abc import Callable


def cosine(highest: float, done: float) -> float:
    """The rate when this share (0 to 1) of the planned samples is done.

    It rises from a tenth to the highest over the first 5 %, then falls to 0 along a cosine. It
    follows from the samples, not from the steps, so that another global batch stays on the curve.
    """
    return highest * min(1.0, 0.1 + 18 * done) * 0.5 * (1 + math.cos(math.pi * done))


SCHEDULES: dict[str, Callable[[float, float], float]] = {
    "cosine": cosine,
    "constant": lambda highest, done: highest,
}
"""By name: from the highest rate and the share of the training that is done to the rate."""
