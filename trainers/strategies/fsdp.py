"""PyTorch's FSDP2 (`fully_shard`): shards weights, gradients and optimizer states among ranks.

A rank gathers the weights of one block at a time, while the previous block computes, and frees them
afterwards. The blocks are those in the model's row of models/table.py.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from engine.exits import UsageError
from saving import files as on_disk
from strategies import pytorch
from strategies.pytorch import TorchStrategy, WithLoss, blocks, local

try:
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.distributed.tensor import DTensor, distribute_tensor
except ImportError as error:
    raise UsageError(
        f"PyTorch {torch.__version__} has no fully_shard; 2.6 and later have it. "
        "Use a newer container, or the strategy zero3."
    ) from error


class Fsdp(TorchStrategy):
    """A model of which each rank has a part."""

    name = "fsdp"
    in_parts = True

    def built(self, build: Callable[[], nn.Module]) -> nn.Module:
        """Build the model: on rank 0 with initial weights on the CPU, on others without memory."""
        self._first = build().state_dict() if self._me.rank == 0 else {}
        with torch.device("meta"):
            return build()

    def placed(self, passes: WithLoss) -> nn.Module:
        """Shard the model, blocks first; then receive and shard rank 0's weights one at a time."""
        net = passes.net
        mesh = self._mesh()
        self._group = mesh.get_group(mesh.ndim - 1)
        # Gathered in the compute precision; sums over ranks stay float32. Batch norm computes only
        # in float32, like its running means; then autocast casts for the rest.
        normed = any(isinstance(module, _BatchNorm) for module in net.modules())
        gathered = None if normed else pytorch.PRECISIONS[self._args.precision]
        policy = MixedPrecisionPolicy(param_dtype=gathered, reduce_dtype=torch.float32)
        parts = blocks(net, self._args.model)
        for part in parts:
            if self._args.compile:  # each by itself: gathering weights cannot be compiled
                part.compile()
            fully_shard(part, mesh=mesh, mp_policy=policy)
        if self._args.compile:
            passes.loss = torch.compile(passes.loss)
            if not parts:
                net.compile()
        self._split = fully_shard(net, mesh=mesh, mp_policy=policy)
        net.to_empty(device=self._device)
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        set_model_state_dict(net, self._first, options=options)
        self._first = {}
        return passes

    def _mesh(self) -> DeviceMesh:
        """Return the groups of ranks: a model is sharded within a group, and each has a replica.

        Groups have consecutive ranks, so that groups of a node's size gather only within the node;
        between nodes, only each rank's part of the gradients is summed.
        """
        count, size = self._me.world_size, self._args.shard_size or self._me.world_size
        if count % size:
            raise UsageError(
                f"--shard-size {size} does not divide {count} ranks into equal groups. Use a "
                "divisor, like the number of GPUs per node."
            )
        if size == count:
            return init_device_mesh(self._device.type, (count,))
        names = ("repeated", "split")
        return init_device_mesh(self._device.type, (count // size, size), mesh_dim_names=names)

    def exchange(self, last: bool) -> AbstractContextManager[None]:
        """Shard each micro batch's gradient immediately, unless the arguments allow more memory.

        If kept whole until the step's last micro batch, it takes 4 bytes per weight on every rank:
        27 GB for 7 billion weights.
        """
        self._split.set_requires_gradient_sync(last or not self._args.keep_gradients)
        self._split.set_requires_all_reduce(last)  # between groups, once per step
        return nullcontext()

    def gradients(self) -> list[Tensor]:
        """This rank's parts of the gradients."""
        return [local(gradient) for gradient in super().gradients()]

    def over_ranks(self, squares: Tensor) -> Tensor:
        """Return the sum over the group, because each rank has the gradients of its part."""
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
        pytorch.load(self.optimizer, {"state": state})


def _part(value: object, like: object) -> object:
    """Return this rank's part of a whole tensor, sharded like another one."""
    if not isinstance(value, Tensor) or not isinstance(like, DTensor):
        return value
    return distribute_tensor(value, like.device_mesh, like.placements)
