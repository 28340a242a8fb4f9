"""A copy of a training's state in main memory, to write while the training goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from torch import Tensor

if TYPE_CHECKING:  # to import it takes most of a second, and only fsdp needs it
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor


def local(tensor: Tensor) -> Tensor:
    """This rank's part of a tensor that fsdp has split, sharing its memory; any other as it is."""
    part: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return part


def copied(state: object) -> object:
    """A tree of dictionaries, lists and tuples with every tensor copied to the CPU.

    Two names of one tensor (tied weights) are one in the copy too. A part of a distributed tensor
    stays one: its place among the ranks is what makes it loadable.
    """
    return _Copy().of(state)


class _Copy:
    def __init__(self) -> None:
        self._tensors: dict[object, Tensor] = {}
        self._meshes: dict[int, DeviceMesh] = {}

    def of(self, value: object) -> object:
        if isinstance(value, Tensor):
            return self._part(value) if hasattr(value, "to_local") else self._tensor(value)
        if isinstance(value, dict):
            return {key: self.of(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.of(one) for one in value]
        if isinstance(value, tuple):
            return tuple(self.of(one) for one in value)
        return value

    def _tensor(self, one: Tensor) -> Tensor:
        where = (one.device, one.data_ptr(), one.dtype, one.shape, one.stride())
        if where not in self._tensors or not one.numel():
            self._tensors[where] = one.detach().to("cpu", copy=True)
        return self._tensors[where]

    def _part(self, split: Tensor) -> DTensor:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor

        one = cast("DTensor", split)
        size = one.device_mesh.size()
        if size not in self._meshes:
            self._meshes[size] = init_device_mesh("cpu", (size,))
        return DTensor.from_local(
            self._tensor(one.to_local()),
            self._meshes[size],
            one.placements,
            run_check=False,
            shape=one.shape,
            stride=one.stride(),
        )
