"""The base of strategies with PyTorch's optimizers, and DDP: the whole model on each rank.

A step whose gradient is not finite changes no weight. Checking this on the CPU would make it wait
for the GPU in each step. Instead, the fused optimizers take the result as a tensor (`found_inf`,
made for torch.amp.GradScaler) and change nothing if it is 1.

Weights, sums of gradients and optimizer state stay float32; with bf16, matrix products use shorter
numbers of the same range.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.nn.parallel import DistributedDataParallel
from torch.optim.sgd import sgd
from torch.utils.checkpoint import checkpoint

from engine.exits import UsageError
from models.table import MODELS
from saving import files as on_disk
from saving.checkpoint import SaveFailed
from saving.saver import Staging, Write
from strategies import Loss, Setup

if TYPE_CHECKING:
    from saving.sharded import Sharded

STATE = "state.pt"


class WithLoss(nn.Module):
    """The network and its loss in one forward pass, so that both are compiled together.

    When only the network was compiled, the loss took 40 % of a gpt2-124m step on an H100.
    """

    def __init__(self, net: nn.Module, loss: Loss, parts: int) -> None:
        """Use the network's own loss if `parts` is set, else `loss`, in float32."""
        super().__init__()
        self.net, self.loss, self.in_parts = net, loss, parts > 1

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean loss of a micro batch."""
        if self.in_parts:
            in_parts: Tensor = self.net(inputs, targets)
            return in_parts
        # Keep no reference to the outputs: the bf16 logits of a text take gigabytes.
        return self.loss(self.net(inputs).float(), inputs, targets)


class TorchStrategy:
    """A model with PyTorch's optimizer; subclasses decide where its weights are."""

    name: str
    in_parts = False
    """Whether no rank has the whole model, so that each rank saves its part."""

    def __init__(self, setup: Setup) -> None:
        """Build the model and move it to the device."""
        args, device = setup.args, setup.device
        self.optimizer_name, self.lr = str(args.optimizer), float(args.lr)
        self.micro_batch, self.accumulate = int(args.batch_size), int(args.accumulate)
        self._args, self._me, self._device = args, setup.me, device
        self.precision = str(args.precision)
        wanted = {"yes": True, "no": False, "auto": device.type == "cuda"}[args.channels_last]
        self._channels_last = wanted and setup.example[0].dim() == 4
        net = self.built(setup.build)
        if args.recompute:
            recompute(net, args.model, args.recompute)
        if args.loss_parts > 1:
            if MODELS[args.model].task != "next-token":
                raise UsageError(
                    f"The model {args.model} does not predict the next word, so its loss has no "
                    "parts. Omit --loss-parts."
                )
            net.loss_parts = args.loss_parts
        self.module: nn.Module = net
        self.passes: nn.Module = self.placed(WithLoss(net, setup.loss, args.loss_parts))
        """The model with its loss, as trained; `module` is only the model."""
        if args.compile and not self.in_parts:  # DDP as a whole: it is cut where gradients go
            self.passes.compile()
        self._weights = list(net.parameters())
        self.optimizer = make(args, self._weights)
        self._sharded: Sharded | None = None
        self._staging = Staging()

    # ------------------------------------------------------------- overridden by strategies

    def built(self, build: Callable[[], nn.Module]) -> nn.Module:
        """Return the model with its initial weights, before it is placed."""
        return build()

    def placed(self, passes: WithLoss) -> nn.Module:
        """Return the model with its weights in place."""
        passes.to(self._device)
        if self._channels_last:
            passes.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return passes

    def exchange(self, last: bool) -> AbstractContextManager[None]:
        """Return the context of both passes; if `last`, it averages the ranks' gradients."""
        return nullcontext()

    def gradients(self) -> list[Tensor]:
        """This rank's part of each gradient."""
        return [weight.grad for weight in self._weights if weight.grad is not None]

    def over_ranks(self, squares: Tensor) -> Tensor:
        """Return the sum of squares over all ranks, from this rank's."""
        return squares

    def take(self, tree: on_disk.Tree) -> None:
        """Load a whole model and its optimizer, on any number of ranks."""
        self.module.load_state_dict(tree["model"])
        load(self.optimizer, tree["optimizer"])

    def communication(self) -> dict[str, float]:
        """Return the communication times; empty if they are not measured."""
        return {}

    # --------------------------------------------------------------------- called by the loop

    def rate(self, done: float, step: int) -> float:
        """Return the learning rate of a step, from the schedule in the arguments."""
        return rate(self._args, done, step)

    def loss(self, inputs: Tensor, targets: Tensor, last: bool) -> Tensor:
        """Return the loss of a micro batch."""
        with self.exchange(last), autocast(self._args.precision, self._device):
            loss: Tensor = self.passes(self.input(inputs), targets)
            return loss

    def predict(self, inputs: Tensor) -> Tensor:
        """Return the outputs in evaluation; only fsdp's ranks need each other there."""
        with autocast(self._args.precision, self._device):
            outputs: Tensor = self.module(self.input(inputs))
            return outputs.float()

    def input(self, inputs: Tensor) -> Tensor:
        """Return the input in the model's memory format."""
        return (
            inputs.contiguous(memory_format=torch.channels_last) if self._channels_last else inputs
        )

    def backward(self, loss: Tensor, last: bool) -> None:
        """Add to the gradient; after the step's last micro batch, average it over the ranks."""
        with self.exchange(last):
            (spread_nan(loss) / self.accumulate).backward()  # type: ignore[no-untyped-call]

    def step(self, lr: float) -> Tensor:
        """Update the weights, unless the gradient is not finite; return the gradient norm."""
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        grads = self.gradients()
        squares = torch.stack(torch._foreach_norm(grads)).double().square().sum()
        norm = self.over_ranks(squares).sqrt().float()
        if self._args.clip:
            torch._foreach_mul_(grads, (self._args.clip / (norm + 1e-6)).clamp(max=1.0))
        step(self.optimizer, torch.isfinite(norm))
        self.optimizer.zero_grad()
        return norm

    def stage(self, folder: Path, copy: bool) -> Write:
        """Capture everything on rank 0, or each rank's part for sharded checkpoints."""
        if self.in_parts or self._args.save == "sharded":
            return self._parts().stage(folder, copy)
        state = {"model": self.module.state_dict(), "optimizer": self.optimizer.state_dict()}
        return self._writer(state, folder / STATE, copy)

    def _writer(self, tree: object, path: Path, copy: bool) -> Write:
        """Return the function that writes rank 0's tree into one file."""
        if self._me.rank:
            return list
        kept = self._staging.copied(tree) if copy else tree

        def write() -> list[str]:
            torch.save(kept, path)
            return [path.name]

        return write

    def load(self, folder: Path, saved_by: int) -> None:
        """Resume from a save, on any number of ranks."""
        if (folder / on_disk.METADATA).is_file():
            self._parts().load(folder)
        else:
            self.take(on_disk.load(on_disk.of_this_trainer(folder, STATE), self._device))

    def _parts(self) -> Sharded:
        from saving.sharded import Sharded  # takes a second, and is rarely needed

        if not self._sharded:
            self._sharded = Sharded(self._me, self.module, self.optimizer)
        return self._sharded


class Ddp(TorchStrategy):
    """The whole model on every rank; PyTorch's DistributedDataParallel averages gradients.

    A single rank needs no DDP.
    """

    def __init__(self, setup: Setup) -> None:
        """Build the model; its initial weights are the same on every rank."""
        self.name = "ddp" if setup.me.world_size > 1 else "single"
        super().__init__(setup)
        if self._wrapped:
            self._sort_buckets(*setup.example)

    def placed(self, passes: WithLoss) -> nn.Module:
        """Wrap the model; evaluation and checkpoints use it unwrapped."""
        there = super().placed(passes)
        self._wrapped: DistributedDataParallel | None = None
        if self._me.world_size == 1:
            return there
        on_gpu = [self._device] if self._device.type == "cuda" else None
        self._wrapped = DistributedDataParallel(
            there, device_ids=on_gpu, gradient_as_bucket_view=True
        )
        return self._wrapped

    def exchange(self, last: bool) -> AbstractContextManager[None]:
        """Return a context that sends gradients only in a step's last backward pass.

        DDP decides in the forward pass whether the following backward pass sends gradients: around
        the backward pass alone, no_sync() has no effect (4 times the bytes with 4 micro batches).
        """
        return nullcontext() if last or not self._wrapped else self._wrapped.no_sync()

    def communication(self) -> dict[str, float]:
        """Return the communication seconds of a backward pass, as measured by DDP.

        `communication_s` includes waits for slower ranks; `exposed_s` is the part after the last
        gradient was computed, which lengthens the step. DDP measures the first ten passes and then
        every hundredth.
        """
        if not self._wrapped:
            return {}
        # The name says private, but the class documents it (torch 2.13, nn/parallel/distributed).
        told = self._wrapped._get_ddp_logging_data()  # type: ignore[no-untyped-call]
        sending = told.get("avg_backward_comm_time", 0)
        if not sending:
            return {}
        hidden = told.get("avg_backward_compute_comm_overlap_time", 0)
        return {"communication_s": sending / 1e9, "exposed_s": max(0, sending - hidden) / 1e9}

    def _sort_buckets(self, inputs: Tensor, targets: Tensor) -> None:
        """Let DDP order its buckets in one backward pass, and discard the result.

        DDP reorders them after the first pass, which changes the rounding of sums in later steps:
        without this, a resumed training of 4 ranks differed by 6e-8.
        """
        # Same number of samples as in a step: another number would be compiled separately.
        some = torch.arange(self.micro_batch, device=inputs.device) % len(inputs)
        buffers = [buffer.clone() for buffer in self.module.buffers()]
        with autocast(self._args.precision, self._device):
            loss = self.passes(self.input(inputs[some]), targets[some])
        loss.backward()
        self.optimizer.zero_grad()
        with torch.no_grad():
            for buffer, before in zip(self.module.buffers(), buffers, strict=True):
                buffer.copy_(before)  # running means of batch norm


# --------------------------------------------------------------------- the blocks of a network


def blocks(net: nn.Module, model: str) -> list[nn.Module]:
    """Return the repeated blocks of a network from this row of MODELS, in order."""
    names = MODELS[model].blocks
    return [part for part in net.modules() if type(part).__name__ in names]


def recompute(net: nn.Module, model: str, what: str) -> None:
    """Make the model recompute activations in the backward pass; UsageError if it has no blocks."""
    found = blocks(net, model)
    if not found:
        raise UsageError(
            f"The model {model} has no blocks to recompute. Omit --recompute, or reduce "
            "--batch-size."
        )
    more: dict[str, Any] = {}
    if what == "selective":
        from torch.utils.checkpoint import create_selective_checkpoint_contexts  # PyTorch 2.5

        more = {"context_fn": partial(create_selective_checkpoint_contexts, list(_costly()))}
    for block in found:
        # The names of the weights stay the same, so checkpoints work with and without it.
        block.forward = partial(checkpoint, block.forward, use_reentrant=False, **more)


def _costly() -> Iterator[OpOverload]:
    """Return the operations whose results `--recompute selective` keeps, if PyTorch has them."""
    names = ("mm", "addmm", "bmm", "convolution", *(
        f"_scaled_dot_product_{kind}"
        for kind in ("flash_attention", "efficient_attention", "cudnn_attention",
                     "flash_attention_for_cpu", "fused_attention_overrideable")
    ))  # fmt: skip
    for name in names:
        if found := getattr(torch.ops.aten, name, None):
            yield found.default


# ------------------------------------------------------------------------------- optimizers


def spread_nan(loss: Tensor) -> Tensor:
    """Return the loss, with a gradient that is not finite if the loss is not.

    So the averaged gradient shows each rank that the step must be skipped, without another
    collective. A finite loss is multiplied by exactly 1.
    """
    return loss * (loss.detach() * 0 + 1)


class Sgd(torch.optim.SGD):
    """SGD with zero initial momentum, and with local parts for its fused kernel.

    If the first step is skipped, PyTorch's SGD leaves the momentum uninitialized, and its fused
    kernel does not accept DTensors (PyTorch 2.13).
    """

    def step(self, closure: object = None) -> None:  # type: ignore[override]
        """Update the weights, unless `found_inf` is 1."""
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
    """Return the optimizer set by the arguments."""
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
    """Update the weights if `finite`."""
    optimizer.found_inf = 1 - finite.float()  # type: ignore[attr-defined]
    optimizer.step()


def load(optimizer: torch.optim.Optimizer, saved: dict[str, object]) -> None:
    """Restore the state; learning rates, decay and similar are those of this run."""
    here = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": saved["state"], "param_groups": here})


def cosine(highest: float, done: float, warm: float | None = None) -> float:
    """Return the rate after this share (0 to 1) of the planned samples.

    It rises from a tenth to the highest over the first 5 %, or is `warm` of it, then falls to 0
    along a cosine. It depends on samples, not steps, so that a different global batch stays on the
    curve.
    """
    warm = min(1.0, 0.1 + 18 * done) if warm is None else warm
    return highest * warm * 0.5 * (1 + math.cos(math.pi * done))


SCHEDULES: dict[str, Callable[[float, float, float | None], float]] = {
    "cosine": cosine,
    "constant": lambda highest, done, warm: highest * (1.0 if warm is None else warm),
}
"""Schedules by name: the rate from the highest rate, the finished share of the training, and the
warm-up (0 to 1) if the arguments set its steps."""


def rate(args: argparse.Namespace, done: float, step: int) -> float:
    """Return the rate of a step (from 0) after this share of the planned samples."""
    warm = None
    if args.warmup_steps is not None:
        warm = min(1.0, (step + 1) / max(1, args.warmup_steps))
    return SCHEDULES[args.schedule](float(args.lr), done, warm)


PRECISIONS: dict[str, torch.dtype | None] = {"fp32": None, "bf16": torch.bfloat16}


def autocast(precision: str, device: torch.device) -> AbstractContextManager[None]:
    """Return the context of a forward pass."""
    dtype = PRECISIONS[precision]
    return torch.autocast(device.type, dtype) if dtype else nullcontext()


# -------------------------------------------------------------------------------- weights


def local(tensor: Tensor) -> Tensor:
    """Return this rank's part of a tensor sharded by fsdp, sharing its memory; others unchanged."""
    part: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return part


def check_finite(weights: Iterable[Tensor]) -> None:
    """Raise SaveFailed if a weight is infinite or NaN."""
    for weight in weights:
        weight = local(weight)
        if not bool(torch.isfinite(weight).all()):
            raise SaveFailed(
                "Some weights are not finite numbers, so they are not saved. Use a lower "
                "learning rate, from an earlier checkpoint or from the beginning."
            )
