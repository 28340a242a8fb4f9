"""The files of DeepSpeed's checkpoints: written by us, and divided anew for other ranks.

Import strategies.zero_engine before this.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from deepspeed.runtime.checkpoint_engine.torch_checkpoint_engine import (  # type: ignore[import-untyped]
    TorchCheckpointEngine,
)

from engine.ranks import Ranks
from engine.reporting import UsageError
from saving.checkpoint import by_first, together
from saving.staging import Staging

DIVISIBLE = {"universal_checkpoint_info": {"universal_checkpoint_version": 0.2}}
"""What DeepSpeed's converter asks a checkpoint for before it divides it anew. Version 0.2 has no
tensor parallelism. Source: deepspeed/checkpoint/constants.py and ds_to_universal.py."""
_ADAMS = ("adam", "adamw")
"""The optimizers whose state the converter knows (exp_avg and exp_avg_sq)."""
_POLL = 30.0
"""Seconds after which the ranks that wait hear that the conversion goes on."""


class Taken(TorchCheckpointEngine):  # type: ignore[misc]  # DeepSpeed has no types
    """Keeps what DeepSpeed would write, until `write` is called."""

    def __init__(self, staging: Staging | None) -> None:
        """Keep copies, or the training's own tensors when they are written at once."""
        self._staging = staging
        self._parts: list[tuple[object, Path]] = []

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Nothing: the folder stands."""

    def create(self, info: object) -> None:
        """Nothing."""

    def save(self, state_dict: object, path: str) -> None:
        """Take one file's content."""
        where = Path(path)
        copied = self._staging.copied(state_dict, where.name) if self._staging else state_dict
        self._parts.append((copied, where))

    def commit(self, info: object) -> bool:
        """Nothing: the manifest makes it count."""
        return True

    def write(self) -> list[str]:
        """Write the files; return their names."""
        for content, path in self._parts:
            torch.save(content, path)
        return [path.name for _, path in self._parts]


@contextmanager
def universal(folder: Path, me: Ranks, optimizer: str, saved_by: int) -> Iterator[Path]:
    """A checkpoint in DeepSpeed's universal format, which any number of ranks can load.

    Rank 0 converts it beside the others, as DeepSpeed's ds_to_universal does; afterwards it goes.

    Raises:
        UsageError: the optimizer's state can't be divided, or the conversion failed.
    """
    if optimizer.lower() not in _ADAMS:
        raise UsageError(
            f"The checkpoint's ZeRO parts are from {saved_by} ranks, this run has {me.world_size}, "
            f"and DeepSpeed divides only Adam's state anew, not {optimizer}'s. Resume with "
            f"{saved_by} ranks."
        )
    converter = _Converter(folder, folder.parent / ".universal" / folder.name)
    try:
        while not by_first(me, converter.is_done, folder):
            pass  # the ranks that wait hear from rank 0 before a collective's time limit ends
        yield converter.target
        together(lambda: None, folder)  # every rank has read it
    finally:
        if me.rank == 0:
            shutil.rmtree(converter.target.parent, ignore_errors=True)


class _Converter:
    """DeepSpeed's converter in a process of its own, which rank 0 starts."""

    def __init__(self, source: Path, target: Path) -> None:
        self.target = target
        self._source = source
        self._process: subprocess.Popen[str] | None = None

    def is_done(self) -> bool:
        """Start it if it hasn't been; wait for half a minute, and say whether it's done.

        Raises:
            UsageError: it failed.
        """
        process = self._process or self._start()
        try:
            said, _ = process.communicate(timeout=_POLL)
        except subprocess.TimeoutExpired:
            return False
        if process.returncode:
            reason = (said.strip().splitlines() or ["nothing was said"])[-1]
            raise UsageError(
                f"DeepSpeed could not divide {self._source} anew ({reason}). "
                "Resume with as many ranks as saved it."
            )
        return True

    def _start(self) -> subprocess.Popen[str]:
        shutil.rmtree(self.target.parent, ignore_errors=True)  # an attempt that was killed
        self.target.parent.mkdir()
        workers = str(min(8, len(os.sched_getaffinity(0))))
        arguments = {
            "--input_folder": str(self._source),
            "--output_folder": str(self.target),
            "--num_extract_workers": workers,
            "--num_merge_workers": workers,
        }
        command = [sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal"]
        self._process = subprocess.Popen(
            [*command, *(word for pair in arguments.items() for word in pair)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        return self._process
