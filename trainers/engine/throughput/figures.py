"""Throughput in the units of papers and data sheets: TFLOP/s, MFU, tokens a second, memory."""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass

import torch

from engine.throughput import cards
from engine.throughput.flops import TRAINING, flops
from models.table import Shape


@dataclass(frozen=True)
class Figures:
    """What turns samples a second into the other figures."""

    flops: int
    """Of one sample's forward pass."""
    tokens: int | None
    """Of one sample; None where it is no text."""
    ranks: int
    peak: float | None
    """Operations a second that a rank's card could do; None where the card isn't known."""
    precision: str
    """That the peak is of."""

    @classmethod
    def of(
        cls, model: str, shape: Shape, ranks: int, device: torch.device, precision: str
    ) -> Figures:
        """Count a model of the table, and look this rank's card up."""
        convolves = model.startswith(("cnn", "resnet"))
        precision = cards.arithmetic(precision, device, convolves=convolves)
        return cls(
            flops(model, shape),
            shape.input[0] if shape.kind == "tokens" else None,
            ranks,
            cards.peak(cards.device_name(device), precision),
            precision,
        )

    def start(self) -> dict[str, float | str | None]:
        """Facts for the start line: with them anybody can check the others."""
        peak = None if self.peak is None else self.peak / 1e12
        return {"forward_flops": self.flops, "precision": self.precision, "peak_tflops": peak}

    def step(self, samples_per_s: float) -> dict[str, float]:
        """The figures of a speed over all ranks; those that have no meaning here are left out.

        `tflops` is of one rank's card, `mfu` the share of its peak (0 to 1), `tokens_per_s` is
        over all ranks.
        """
        achieved = TRAINING * self.flops * samples_per_s / self.ranks
        found = {"tflops": achieved / 1e12}
        if self.peak:
            found["mfu"] = achieved / self.peak
        if self.tokens:
            found["tokens_per_s"] = self.tokens * samples_per_s
        return found


def memory(device: torch.device) -> dict[str, float]:
    """The most memory that this process has used until now, in GiB: the GPU's, else the node's.

    `reserved_gib` is what PyTorch has taken from the GPU to divide it by itself.
    """
    if device.type == "cuda":
        return {
            "memory_gib": torch.cuda.max_memory_allocated(device) / 2**30,
            "reserved_gib": torch.cuda.max_memory_reserved(device) / 2**30,
        }
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux KiB
    return {"memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30}
