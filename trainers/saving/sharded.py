"""A checkpoint in parts, one file per rank, that any number of ranks can read.

The format is PyTorch's (torch.distributed.checkpoint): `.metadata` lists which part of which tensor
is in which file. A tensor that every rank has is written by one of them. So FSDP can resume what
DDP saved, and vice versa.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint import state_dict_loader, state_dict_saver
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.optim import Optimizer

from engine.exits import UsageError
from engine.ranks import Ranks
from saving.files import METADATA
from saving.saver import Staging, Write


class Sharded:
    """Saves and loads a model and its optimizer in parts. Every rank must call every method."""

    def __init__(self, me: Ranks, model: nn.Module, optimizer: Optimizer) -> None:
        """Create a process group for saves, which is a collective."""
        self._me = me
        self._model = model
        self._optimizer = optimizer
        self._staging = Staging()
        self._group = dist.new_group(backend="gloo")

    def stage(self, folder: Path, copy: bool) -> Write:
        """Capture this rank's state for a save; see saving.saver.Stage."""
        model, optimizer = get_state_dict(self._model, self._optimizer)
        state: dict[str, Any] = {"model": model, "optimizer": optimizer}
        if copy:
            state = {name: self._staging.copied(part, name) for name, part in state.items()}

        def write() -> list[str]:
            try:
                state_dict_saver.save(state, checkpoint_id=folder, process_group=self._group)
            except CheckpointException as error:  # not an Exception, so no handler would catch it
                raise OSError(_reason(error)) from error
            names = [path.name for path in folder.glob(f"__{self._me.rank}_*.distcp")]
            return sorted(names) + ([METADATA] if self._me.rank == 0 else [])

        return write

    def load(self, folder: Path) -> None:
        """Resume from a save by any number of ranks.

        Learning rates, decay and similar are those of this run.

        Raises:
            UsageError: the save cannot be read, or is of another model.
        """
        groups = [
            {name: value for name, value in group.items() if name != "params"}
            for group in self._optimizer.param_groups
        ]
        model, optimizer = get_state_dict(self._model, self._optimizer)
        state: dict[str, Any] = {"model": model, "optimizer": optimizer}
        try:
            state_dict_loader.load(state, checkpoint_id=folder, process_group=self._group)
        except CheckpointException as error:
            raise UsageError(
                f"{folder} is not a readable checkpoint ({_reason(error)}). "
                "Move it away to use the one before it."
            ) from error
        set_state_dict(
            self._model,
            self._optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )
        for group, settings in zip(self._optimizer.param_groups, groups, strict=True):
            group.update(settings)


def _reason(error: CheckpointException) -> str:
    """Return the last line of the first failure, with its rank."""
    for rank, failure in error.failures.items():
        return f"rank {rank}: {str(failure[0]).strip().splitlines()[-1]}"
    return str(error)
