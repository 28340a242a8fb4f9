"""PyTorch's FSDP2 (`fully_shard`): weights, gradients and optimizer states are split among ranks.

A rank gathers the weights of one block of the model at a time, while the block before it computes,
and drops them again. The blocks are those of the model's row in models/table.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from engine.exits import UsageError
from saving import files as on_disk
from strategies import optimizers
from strategies.pytorch import TorchStrategy, blocks

try:
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.distributed.tensor import DTensor, distribute_tensor
except ImportError as error:
    raise UsageError(
        f"PyTorch {torch.__version__} has no fully_shard; 2.6 and later have it. "
        "Use a newer container, or the strategy zero3."
    ) from error


class Fsdp(TorchStrategy):
    """A model of which each rank keeps a part."""

    name = "fsdp"
    in_parts = True

    def built(self, build: Callable[[], nn.Module]) -> nn.Module:
        """Rank 0 has the whole model in the CPU's memory; on the others it takes none."""
        with torch.device("cpu" if self._me.rank == 0 else "meta"):
            return build()

    def placed(self, net: nn.Module) -> nn.Module:
        """Split it, its blocks first; weights come and are split a block at a time."""
        self._came: set[tuple[int, str]] = set()
        uses = Counter(tensor for module in net.modules() for tensor in _own(module))
        shared: dict[Tensor, Tensor | None] = {one: None for one in uses if uses[one] > 1}
        del uses
        mesh = self._mesh()
        self._group = mesh.get_group(mesh.ndim - 1)
        # Gathered in the precision that computes; the sums over ranks stay float32. Batch norm
        # computes in float32 only, as its running means are; autocast casts for the rest then.
        normed = any(isinstance(module, _BatchNorm) for module in net.modules())
        gathered = None if normed else optimizers.PRECISIONS[self._args.precision]
        policy = MixedPrecisionPolicy(param_dtype=gathered, reduce_dtype=torch.float32)
        parts = blocks(net, self._args.model)
        for part in parts:
            if self._args.compile:  # each by itself: what gathers weights can't be compiled
                part.compile()
            self._bring(part, shared)
            fully_shard(part, mesh=mesh, mp_policy=policy)
        if self._args.compile and not parts:
            net.compile()
        self._bring(net, shared)
        self._split = fully_shard(net, mesh=mesh, mp_policy=policy)
        return net

    def _mesh(self) -> DeviceMesh:
        """The ranks in groups that share a model: within one it is split, between them repeated.

        Ranks of a group follow each other, so that groups of a node's size keep what is gathered
        within the node; between nodes only each rank's part of the gradients is summed.
        """
        count, size = self._me.world_size, self._args.shard_size or self._me.world_size
        if count % size:
            raise UsageError(
                f"--shard-size {size} does not divide {count} ranks into equal groups. Take a "
                "divisor, like the number of GPUs of a node."
            )
        if size == count:
            return init_device_mesh(self._device.type, (count,))
        names = ("repeated", "split")
        return init_device_mesh(self._device.type, (count // size, size), mesh_dim_names=names)

    def _bring(self, part: nn.Module, shared: dict[Tensor, Tensor | None]) -> None:
        """Give every rank what a part of the model lacks there, as rank 0 has built it.

        `shared` has the tensors that several modules have in common, which come once and stay one.
        No other is kept: it is dropped as soon as it is split.
        """
        for module in part.modules():
            for kept in (module._parameters, module._buffers):
                for name, built in kept.items():
                    if built is None or (id(module), name) in self._came:
                        continue
                    self._came.add((id(module), name))
                    came = shared.get(built)
                    if came is None:
                        came = self._from_first(built)
                    if built in shared:
                        shared[built] = came
                    kept[name] = came  # type: ignore[assignment]

    def _from_first(self, built: Tensor) -> Tensor:
        """A tensor of rank 0's on this rank's device; of the others only its shape is known."""
        if self._me.rank == 0:
            came = built.detach().to(self._device)
        else:
            came = torch.empty_like(built, device=self._device, requires_grad=False)
        dist.broadcast(came, 0)
        return nn.Parameter(came, built.requires_grad) if isinstance(built, nn.Parameter) else came

    def exchange(self, last: bool) -> AbstractContextManager[None]:
        """Each micro batch's gradient is split at once, unless the arguments have memory for it.

        Kept whole until the step's last micro batch it takes 4 bytes a weight on every rank: 27 GB
        for a model of 7 billion.
        """
        self._split.set_requires_gradient_sync(last or not self._args.keep_gradients)
        self._split.set_requires_all_reduce(last)  # between groups, once a step
        return nullcontext()

    def over_ranks(self, squares: Tensor) -> Tensor:
        """Each rank has the gradients of its part: one number to add up, in its group."""
        dist.all_reduce(squares, group=self._group)
        return squares

    def take(self, tree: on_disk.Tree) -> None:
        """Keep this rank's part of each tensor."""
        here = self.module.state_dict()
        model = {name: _part(value, here[name]) for name, value in tree["model"].items()}
        self.module.load_state_dict(model)
        weights = [weight for group in self.optimizer.param_groups for weight in group["params"]]
        saved = tree["optimizer"]["state"]
        state = {}
        if isinstance(saved, dict):
            for number, values in saved.items():
                like = weights[number]
                state[number] = {
                    name: _part(value, like) if like.shape == value.shape else value
                    for name, value in values.items()
                }
        optimizers.load(self.optimizer, {"state": state})


def _part(value: object, like: object) -> object:
    """This rank's part of a whole tensor, split as another one is."""
    if not isinstance(value, Tensor) or not isinstance(like, DTensor):
        return value
    return distribute_tensor(value, like.device_mesh, like.placements)


def _own(module: nn.Module) -> Iterator[Tensor]:
    """The weights and buffers of a module itself."""
    for kept in (module._parameters, module._buffers):
        yield from (tensor for tensor in kept.values() if tensor is not None)
