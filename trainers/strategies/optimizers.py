"""PyTorch's optimizers, made to skip a step on the device; and the precision of the arithmetic.

A step whose gradient is not finite changes no weight. To read on the CPU whether it is would make
the CPU wait for the GPU in each step. The fused optimizers take the answer as a tensor instead
(`found_inf`, made for torch.amp.GradScaler) and leave everything as it is where it says 1.

Weights, gradients' sums and the optimizer's state stay float32; with bf16 the matrix products get
smaller numbers of the same range.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.sgd import sgd

from saving.files import local


def spread_nan(loss: Tensor) -> Tensor:
    """The loss, with a gradient that is not finite where the loss is not.

    So the ranks' average of the gradient tells each rank that the step is to be skipped, and no
    collective is needed for it. A finite loss is multiplied by exactly 1.
    """
    return loss * (loss.detach() * 0 + 1)


OPTIMIZERS = ("sgd", "adam", "adamw")
DECAYS = ("all", "matrices")
"""Which weights decay; "matrices" leaves out what has one axis: biases and norms."""


class Sgd(torch.optim.SGD):
    """SGD whose momentum exists from the start, and whose fused kernel gets the local parts.

    PyTorch's leaves the first momentum as it finds the memory when the first step is skipped, and
    its fused kernel takes no DTensor (PyTorch 2.13).
    """

    def step(self, closure: object = None) -> None:  # type: ignore[override]
        """Change the weights, unless `found_inf` says 1."""
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if weights:
                self._change(group, weights)

    @torch.no_grad()
    def _change(self, group: dict[str, float], weights: list[Tensor]) -> None:
        moments: list[Tensor | None] = []
        for weight in weights:
            state = self.state[weight]
            if state.get("momentum_buffer") is None:
                state["momentum_buffer"] = torch.zeros_like(weight)
            moments.append(local(state["momentum_buffer"]))
        sgd(
            [local(weight) for weight in weights],
            [local(weight.grad) for weight in weights if weight.grad is not None],
            moments,
            weight_decay=group["weight_decay"],
            momentum=group["momentum"],
            lr=group["lr"],
            dampening=group["dampening"],
            nesterov=bool(group["nesterov"]),
            maximize=bool(group["maximize"]),
            fused=True,
            found_inf=getattr(self, "found_inf", None),
        )


def make(args: argparse.Namespace, of: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimizer that the arguments name."""
    weights = list(of)
    options: dict[str, Any] = {"weight_decay": float(args.weight_decay), "fused": True}
    groups: list[dict[str, Any]] = [{"params": weights}]
    if args.decay == "matrices":
        groups = [
            {"params": [weight for weight in weights if weight.dim() > 1]},
            {"params": [weight for weight in weights if weight.dim() < 2], "weight_decay": 0.0},
        ]
        groups = [group for group in groups if group["params"]]
    if args.optimizer == "sgd":
        return Sgd(groups, args.lr, momentum=0.9, **options)
    kind = torch.optim.Adam if args.optimizer == "adam" else torch.optim.AdamW
    return kind(groups, args.lr, betas=args.betas, **options)


def step(optimizer: torch.optim.Optimizer, finite: Tensor) -> None:
    """Change the weights if `finite`."""
    optimizer.found_inf = 1 - finite.float()  # type: ignore[attr-defined]
    optimizer.step()


def load(optimizer: torch.optim.Optimizer, saved: dict[str, object]) -> None:
    """Take the state back; rates, decay and the like are those of this run."""
    here = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": saved["state"], "param_groups": here})


def cosine(highest: float, done: float, warm: float | None = None) -> float:
    """The rate when this share (0 to 1) of the planned samples is done.

    It rises from a tenth to the highest over the first 5 %, or is `warm` of it, then falls to 0
    along a cosine. It follows from the samples, not from the steps, so that another global batch
    stays on the curve.
    """
    warm = min(1.0, 0.1 + 18 * done) if warm is None else warm
    return highest * warm * 0.5 * (1 + math.cos(math.pi * done))


SCHEDULES: dict[str, Callable[[float, float, float | None], float]] = {
    "cosine": cosine,
    "constant": lambda highest, done, warm: highest * (1.0 if warm is None else warm),
}
"""By name: the rate from the highest one, the share of the training that is done, and how warm it
is (0 to 1) where the arguments say in how many steps."""


def rate(args: argparse.Namespace, done: float, step: int) -> float:
    """The rate of a step, counted from 0, when this share of the planned samples is done."""
    warm = None
    if args.warmup_steps is not None:
        warm = min(1.0, (step + 1) / max(1, args.warmup_steps))
    return SCHEDULES[args.schedule](float(args.lr), done, warm)


PRECISIONS: dict[str, torch.dtype | None] = {"fp32": None, "bf16": torch.bfloat16}


def autocast(precision: str, device: torch.device) -> AbstractContextManager[None]:
    """The context of a forward pass."""
    dtype = PRECISIONS[precision]
    return torch.autocast(device.type, dtype) if dtype else nullcontext()
