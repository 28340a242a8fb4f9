"""The speed of a training run: operations, memory and peak of the card.

Operations are those of matrix products, as usual for MFU (Chowdhery et al. 2022, arXiv:2204.02311,
appendix B): a multiplication and an addition count as two, and causal attention counts in full.
Norms, activations and recomputation are not counted.
"""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from data.samples import Shape
from models.table import build


@dataclass(frozen=True)
class Figures:
    """Factors from samples per second to the other figures."""

    flops: int
    """Operations of one sample's forward pass."""
    tokens: int | None
    """Tokens per sample; None if it is not text."""
    ranks: int
    peak: float | None
    """Peak operations per second of a rank's card; None if the card is unknown."""
    precision: str
    """Precision of the peak."""

    @classmethod
    def of(
        cls, model: str, shape: Shape, ranks: int, device: torch.device, precision: str
    ) -> Figures:
        """Count the operations of a model in the table, and look up this rank's card."""
        convolves = model.startswith(("cnn", "resnet"))
        most = None
        if device.type == "cuda":
            precision = arithmetic(precision, convolves=convolves)
            most = peak(device_name(device), precision)
        return cls(
            flops(model, shape),
            shape.input[0] if shape.kind == "tokens" else None,
            ranks,
            most,
            precision,
        )

    def start(self) -> dict[str, float | str | None]:
        """Return values for the start line, with which the other figures can be checked."""
        peak = None if self.peak is None else self.peak / 1e12
        return {"forward_flops": self.flops, "precision": self.precision, "peak_tflops": peak}

    def step(self, samples_per_s: float) -> dict[str, float]:
        """Return the figures for a speed over all ranks, without those that do not apply.

        `tflops` is for one rank's card, `mfu` the share of its peak (0 to 1), `tokens_per_s` for
        all ranks.
        """
        achieved = TRAINING * self.flops * samples_per_s / self.ranks
        found = {"tflops": achieved / 1e12}
        if self.peak:
            found["mfu"] = achieved / self.peak
        if self.tokens:
            found["tokens_per_s"] = self.tokens * samples_per_s
        return found


def memory(device: torch.device) -> dict[str, float]:
    """Return the peak memory of this process in GiB: GPU memory, else main memory.

    `reserved_gib` is the GPU memory reserved by PyTorch's allocator.
    """
    if device.type == "cuda":
        return {
            "memory_gib": torch.cuda.max_memory_allocated(device) / 2**30,
            "reserved_gib": torch.cuda.max_memory_reserved(device) / 2**30,
        }
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux KiB
    return {"memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30}


TRAINING = 3
"""Operations of a step over those of a forward pass: the backward pass, with two gradients per
product, costs twice as much."""


def flops(model: str, shape: Shape) -> int:
    """Return the operations of one sample's forward pass through a model in the table.

    A copy without memory (torch.device("meta")) runs once, so the result does not depend on
    strategy, precision or device.
    """
    counter = FlopCounterMode(display=False)
    kind = torch.float32 if shape.kind == "images" else torch.int64
    # This must not change the random numbers of the training.
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        net = build(model, shape, 0).eval()
        with counter:
            net(torch.zeros((1, *shape.input), dtype=kind))
    return counter.get_total_flops()


# --------------------------------------------------------------------- by data sheets

PRECISIONS = ("bf16", "fp16", "tf32", "fp32")
"""tf32: float32 numbers whose products have 10 mantissa bits, on NVIDIA's tensor cores."""

# Part of the device's name, then bf16, fp16, tf32, fp32; None if the card lacks the unit. The first
# matching row counts.
Row = tuple[str, float | None, float | None, float | None, float | None]
CARDS: tuple[Row, ...] = (
    # PyTorch's device is a GCD, half of a card. fp32: of its matrix cores, which rocBLAS uses.
    # source: AMD Instinct MI250X data sheet: 383.0 (fp16, bf16), 95.7 (fp32 matrix) a card
    ("MI250X", 191.5, 191.5, None, 47.85),
    # source: AMD Instinct MI300A and MI300X data sheets
    ("MI300A", 980.6, 980.6, 490.3, 122.6),
    ("MI300X", 1307.4, 1307.4, 653.7, 163.4),
    # source: AMD Instinct MI325X data sheet: the compute units and the clock of MI300X
    ("MI325X", 1307.4, 1307.4, 653.7, 163.4),
    # source: NVIDIA Blackwell Architecture Technical Brief (a GPU of GB200 NVL72; of HGX B200)
    ("GB200", 2500.0, 2500.0, 1250.0, 80.0),
    ("B200", 2250.0, 2250.0, 1125.0, 75.0),
    # source: NVIDIA H200 Tensor Core GPU data sheet (SXM; NVL has less)
    ("H200 NVL", 835.5, 835.5, 417.5, 60.0),
    # source: NVIDIA GH200 Grace Hopper Superchip data sheet (H100 with 96 or 144 GB)
    ("GH200", 989.4, 989.4, 494.7, 67.0),
    ("H200", 989.4, 989.4, 494.7, 67.0),
    # source: NVIDIA H100 Tensor Core GPU data sheet; exact: Hopper architecture paper, table 2
    ("H100 NVL", 835.5, 835.5, 417.5, 60.0),
    ("H100 PCIe", 756.0, 756.0, 378.0, 51.2),
    ("H100", 989.4, 989.4, 494.7, 66.9),
    # source: NVIDIA A100 Tensor Core GPU data sheet (SXM and PCIe alike)
    # Leonardo's own variant is faster; no data sheet of it was found.
    ("A100-SXM-64GB", None, None, None, None),
    ("A100", 312.0, 312.0, 156.0, 19.5),
    # source: NVIDIA V100 data sheet; it has neither bf16 nor tf32
    ("V100-PCIE", None, 112.0, None, 14.0),
    ("V100", None, 125.0, None, 15.7),
)
_MI250X_UNITS = 110
"""Compute units of an MI250X GCD; MI250 and MI210 have 104."""


def peak(name: str, precision: str) -> float | None:
    """Return a card's peak operations per second, by its name in PyTorch; None if unknown."""
    for part, *peaks in CARDS:
        if part in name:
            found = dict(zip(PRECISIONS, peaks, strict=True)).get(precision)
            return found * 1e12 if found else None
    return None


def device_name(device: torch.device) -> str:
    """Return the card's name, even in a container whose ROCm lacks the list of names.

    There, PyTorch's name is empty or wrong, but the architecture is known.
    """
    name = torch.cuda.get_device_name(device)
    found = torch.cuda.get_device_properties(device)
    architecture = getattr(found, "gcnArchName", "")
    if architecture.startswith("gfx90a") and found.multi_processor_count == _MI250X_UNITS:
        return "AMD Instinct MI250X"
    return name


def arithmetic(precision: str, *, convolves: bool = False) -> str:
    """Return the precision to look up: fp32 counts as tf32 if PyTorch may use it for most products.

    cuDNN uses tf32 for convolutions by default, whatever matrix products use.
    """
    allowed = torch.get_float32_matmul_precision() != "highest"
    if convolves:
        allowed = torch.backends.cudnn.allow_tf32
    return "tf32" if precision == "fp32" and allowed and not torch.version.hip else precision
