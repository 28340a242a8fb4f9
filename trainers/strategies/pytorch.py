"""The strategies with PyTorch's own optimizers, and the first: the whole model on each rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from engine.exits import UsageError
from models.table import MODELS
from saving import files as on_disk
from saving.files import local
from saving.saver import Staging, Write
from strategies import Setup, optimizers

if TYPE_CHECKING:
    from saving.sharded import Sharded

STATE = "state.pt"


def blocks(net: nn.Module, model: str) -> list[nn.Module]:
    """The repeated blocks of a network that is this row of MODELS, in their order."""
    names = MODELS[model].blocks
    return [part for part in net.modules() if type(part).__name__ in names]


def recompute(net: nn.Module, model: str, what: str) -> None:
    """Let the blocks compute again in the backward pass what they would keep for it, or some of it.

    Raises:
        UsageError: the model has no blocks.
    """
    found = blocks(net, model)
    if not found:
        raise UsageError(
            f"The model {model} has no blocks that could be computed again. "
            "Leave --recompute out, or make --batch-size smaller."
        )
    more: dict[str, Any] = {}
    if what == "selective":
        from torch.utils.checkpoint import create_selective_checkpoint_contexts  # PyTorch 2.5

        more = {"context_fn": partial(create_selective_checkpoint_contexts, list(_costly()))}
    for block in found:
        # The names of the weights stay, so that a checkpoint fits with and without it.
        block.forward = partial(checkpoint, block.forward, use_reentrant=False, **more)


def _costly() -> Iterator[OpOverload]:
    """The operations whose results `--recompute selective` keeps, of those PyTorch has."""
    names = ("mm", "addmm", "bmm", "convolution", *(
        f"_scaled_dot_product_{kind}"
        for kind in ("flash_attention", "efficient_attention", "cudnn_attention",
                     "flash_attention_for_cpu", "fused_attention_overrideable")
    ))  # fmt: skip
    for name in names:
        if found := getattr(torch.ops.aten, name, None):
            yield found.default


class TorchStrategy:
    """A model whose optimizer is PyTorch's; where its weights are, a strategy decides."""

    name: str
    in_parts = False
    """Whether no rank has the whole model, so that each saves its part."""

    def __init__(self, setup: Setup) -> None:
        """Build the model, and take it to the device."""
        args, device = setup.args, setup.device
        self.optimizer_name, self.lr = str(args.optimizer), float(args.lr)
        self.micro_batch, self.accumulate = int(args.batch_size), int(args.accumulate)
        self._args, self._me, self._device = args, setup.me, device
        self.precision = str(args.precision)
        wanted = {"yes": True, "no": False, "auto": device.type == "cuda"}[args.channels_last]
        self._channels_last = wanted and setup.example.dim() == 4
        net = self.built(setup.build)
        if args.recompute:
            recompute(net, args.model, args.recompute)
        if args.loss_parts > 1:
            if MODELS[args.model].task != "next-token":
                raise UsageError(
                    f"The model {args.model} says no next words, so that its loss has no parts. "
                    "Leave --loss-parts out."
                )
            net.loss_parts = args.loss_parts
        self.module: nn.Module = self.placed(net)
        self.optimizer = optimizers.make(args, self.module.parameters())
        self._sharded: Sharded | None = None
        self._staging = Staging()

    # ------------------------------------------------------------- what a strategy overrides

    def built(self, build: Callable[[], nn.Module]) -> nn.Module:
        """The model before it is placed, with its first weights."""
        return build()

    def placed(self, net: nn.Module) -> nn.Module:
        """The model with its weights where they are to be."""
        there = net.to(self._device)
        if self._channels_last:
            there.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return there

    def model(self, *inputs: Tensor) -> Tensor:
        """One forward pass."""
        outputs: Tensor = self.module(*inputs)
        return outputs

    def exchange(self, last: bool) -> AbstractContextManager[None]:
        """The context of both passes, in which the ranks' gradients are averaged if `last`."""
        return nullcontext()

    def over_ranks(self, squares: Tensor) -> Tensor:
        """The sum of squares of all gradients, from that of this rank's."""
        return squares

    def take(self, tree: on_disk.Tree) -> None:
        """Continue from a whole model and its optimizer, on any number of ranks."""
        self.module.load_state_dict(tree["model"])
        optimizers.load(self.optimizer, tree["optimizer"])

    def communication(self) -> dict[str, float]:
        """What is known of the time on the wire; nothing where it isn't measured."""
        return {}

    # --------------------------------------------------------------------- what the loop asks

    def rate(self, done: float, step: int) -> float:
        """Warm up, then fall to 0 along a cosine, or stay, as the arguments say."""
        return optimizers.rate(self._args, done, step)

    def forward(self, inputs: Tensor, targets: Tensor, last: bool) -> Tensor:
        """The model's answer to a micro batch, or its loss where that is computed in parts."""
        more = (targets,) if self._args.loss_parts > 1 else ()
        with self.exchange(last), optimizers.autocast(self._args.precision, self._device):
            return self.model(self.input(inputs), *more).float()

    def predict(self, inputs: Tensor) -> Tensor:
        """The same in a test: only fsdp's ranks need each other there."""
        with optimizers.autocast(self._args.precision, self._device):
            outputs: Tensor = self.module(self.input(inputs))
            return outputs.float()

    def input(self, inputs: Tensor) -> Tensor:
        """The input in the order of memory that the model has."""
        return (
            inputs.contiguous(memory_format=torch.channels_last) if self._channels_last else inputs
        )

    def backward(self, loss: Tensor, last: bool) -> None:
        """Add to the gradient; after the step's last micro batch it is averaged over the ranks."""
        with self.exchange(last):
            (optimizers.spread_nan(loss) / self.accumulate).backward()  # type: ignore[no-untyped-call]

    def step(self, lr: float) -> Tensor:
        """Change the weights, unless the gradient is not finite; return the gradient's length."""
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        grads = list(self._gradients())
        squares = torch.stack(torch._foreach_norm(grads)).double().square().sum()
        norm = self.over_ranks(squares).sqrt().float()
        if self._args.clip:
            torch._foreach_mul_(grads, (self._args.clip / (norm + 1e-6)).clamp(max=1.0))
        optimizers.step(self.optimizer, torch.isfinite(norm))
        self.optimizer.zero_grad()
        return norm

    def _gradients(self) -> Iterator[Tensor]:
        """This rank's part of each."""
        for weight in self.module.parameters():
            if weight.grad is not None:
                yield local(weight.grad)

    def stage(self, folder: Path, copy: bool) -> Write:
        """Take everything on rank 0, or each rank's part where checkpoints are in parts."""
        if self.in_parts or self._args.save == "sharded":
            return self._parts().stage(folder, copy)
        state = {"model": self.module.state_dict(), "optimizer": self.optimizer.state_dict()}
        return self._writer(state, folder / STATE, copy)

    def _writer(self, tree: object, path: Path, copy: bool) -> Write:
        """What writes a tree, which rank 0 has, into one file."""
        if self._me.rank:
            return list
        kept = self._staging.copied(tree) if copy else tree

        def write() -> list[str]:
            torch.save(kept, path)
            return [path.name]

        return write

    def load(self, folder: Path, saved_by: int) -> None:
        """Continue from it, with any number of ranks."""
        if (folder / on_disk.METADATA).is_file():
            self._parts().load(folder)
        else:
            self.take(on_disk.load(on_disk.of_this_trainer(folder, STATE), self._device))

    def _parts(self) -> Sharded:
        from saving.sharded import Sharded  # takes a second, and not every training needs it

        if not self._sharded:
            self._sharded = Sharded(self._me, self.module, self.optimizer)
        return self._sharded


class Ddp(TorchStrategy):
    """A model that is the same on every rank; PyTorch's DistributedDataParallel averages gradients.

    One rank alone needs none of that.
    """

    def __init__(self, setup: Setup) -> None:
        """Build the model; its first weights are the same on every rank."""
        self.name = "ddp" if setup.me.world_size > 1 else "single"
        super().__init__(setup)
        if self._wrapped:
            self._sort_buckets(self._wrapped, setup.example)

    def placed(self, net: nn.Module) -> nn.Module:
        """Wrap it; tests and checkpoints get the model itself."""
        module = super().placed(net)
        self._wrapped: DistributedDataParallel | None = None
        if self._me.world_size > 1:
            on_gpu = [self._device] if self._device.type == "cuda" else None
            self._wrapped = DistributedDataParallel(
                module, device_ids=on_gpu, gradient_as_bucket_view=True
            )
        if self._args.compile:  # with DDP as a whole: it is cut where gradients can be sent
            (self._wrapped or module).compile()
        return module

    def model(self, *inputs: Tensor) -> Tensor:
        """One forward pass."""
        outputs: Tensor = (self._wrapped or self.module)(*inputs)
        return outputs

    def exchange(self, last: bool) -> AbstractContextManager[None]:
        """Ranks meet in the last backward pass of a step only.

        DDP decides in the forward pass whether the backward pass after it sends gradients: around
        the backward pass alone, no_sync() changes nothing (4 times the bytes with 4 micro batches).
        """
        return nullcontext() if last or not self._wrapped else self._wrapped.no_sync()

    def communication(self) -> dict[str, float]:
        """Seconds of a backward pass in which gradients were on their way, as DDP measured them.

        `communication_s` counts the wait for slower ranks, too; `exposed_s` is the part of it after
        the last gradient was computed, which costs time. DDP measures the first ten passes and then
        each hundredth.
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

    def _sort_buckets(self, wrapped: DistributedDataParallel, example: Tensor) -> None:
        """Let DDP sort its buckets by one backward pass, and forget what it computed.

        DDP orders them anew after the first one, so that the sums of the steps after it are rounded
        in another order: without this, a training of 4 ranks that was resumed differed by 6e-8.
        """
        # As many samples as in a step: another number would be compiled a second time.
        batch = example[torch.arange(self.micro_batch, device=example.device) % len(example)]
        buffers = [buffer.clone() for buffer in self.module.buffers()]
        with optimizers.autocast(self._args.precision, self._device):
            answer = wrapped(self.input(batch))
        answer.float().sum().backward()
        self.optimizer.zero_grad()
        with torch.no_grad():
            for buffer, before in zip(self.module.buffers(), buffers, strict=True):
                buffer.copy_(before)  # running means of batch norm
