"""A copy of a training's state in main memory, to write while the training goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

if TYPE_CHECKING:  # to import it takes most of a second, and only fsdp needs it
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor


def local(tensor: Tensor) -> Tensor:
    """This rank's part of a tensor that fsdp has split, sharing its memory; any other as it is."""
    part: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return part


class Staging:
    """Memory for the copies, used again by each save: new memory takes longer than the copy.

    It is pinned where the state is on a GPU, so that all copies run at once.
    """

    def __init__(self) -> None:
        """Start with no memory; the first copy takes as much as the state has."""
        self._kept: dict[str, Tensor] = {}
        self._meshes: dict[tuple[int, ...], DeviceMesh] = {}

    def copied(self, state: object, name: str = "") -> object:
        """A tree of dictionaries, lists and tuples with every tensor copied to main memory.

        Two names of one tensor (tied weights) are one in the copy too. A part of a distributed
        tensor stays one: its place among the ranks is what makes it loadable. What an earlier call
        with the same `name` returned must not be needed any more.
        """
        done: dict[object, Tensor] = {}
        copy = self._of(state, name, done)
        if any(kept.is_pinned() for kept in done.values()):
            torch.cuda.synchronize()
        return copy

    def _of(self, value: object, name: str, done: dict[object, Tensor]) -> object:
        if isinstance(value, Tensor):
            whole = not hasattr(value, "to_local")
            return self._tensor(value, name, done) if whole else self._part(value, name, done)
        if isinstance(value, dict):
            return {key: self._of(one, f"{name}/{key}", done) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            parts = [self._of(one, f"{name}/{number}", done) for number, one in enumerate(value)]
            return parts if isinstance(value, list) else tuple(parts)
        return value

    def _tensor(self, one: Tensor, name: str, done: dict[object, Tensor]) -> Tensor:
        where = (one.device, one.data_ptr(), one.dtype, one.shape, one.stride())
        if where in done and one.numel():
            return done[where]
        kept = self._kept.get(name)
        if kept is None or kept.shape != one.shape or kept.dtype != one.dtype:
            kept = torch.empty_like(one, device="cpu", pin_memory=one.is_cuda)
            self._kept[name] = kept
        with torch.no_grad():
            kept.copy_(one, non_blocking=True)
        done[where] = kept
        return kept

    def _part(self, split: Tensor, name: str, done: dict[object, Tensor]) -> DTensor:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor

        one = cast("DTensor", split)
        shape = tuple(one.device_mesh.shape)
        if shape not in self._meshes:
            self._meshes[shape] = init_device_mesh("cpu", shape)
        return DTensor.from_local(
            self._tensor(one.to_local(), name, done),
            self._meshes[shape],
            one.placements,
            run_check=False,
            shape=one.shape,
            stride=one.stride(),
        )
