"""DeepSpeed's ZeRO: optimizer states, gradients and weights are split among the ranks.

Import this before anything imports `deepspeed`.
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor, nn

from saving.saver import Write
from saving.staging import Staging
from strategies import zero_engine, zero_parts
from strategies.strategy import Setup, poisoned


class Zero:
    """DeepSpeed's engine. Its configuration decides on stage, optimizer, precision and batch."""

    trials = 0

    def __init__(self, setup: Setup) -> None:
        """Start the engine in the process group that stands.

        Raises:
            UsageError: DeepSpeed refuses the configuration.
        """
        self._me = setup.me
        self._engine = engine = zero_engine.start(setup.args, setup.me, setup.device, setup.build())
        self.name = f"zero{engine.zero_optimization_stage()}"
        self.module: nn.Module = engine.module
        self.optimizer_name = str(engine.optimizer_name() or "none")
        self.lr = float(engine.get_lr()[0])
        # The batch is the engine's: with one of our own the training would use another amount
        # than the configuration, the log and the learning rate assume.
        self.micro_batch = int(engine.train_micro_batch_size_per_gpu())
        self.accumulate = int(engine.gradient_accumulation_steps())
        self._dtype = next(engine.module.parameters()).dtype
        short = {torch.bfloat16: "bf16", torch.float16: "fp16"}
        self.precision = short.get(self._dtype, "fp32")
        self._device = setup.device
        self._staging = Staging()

    def rate(self, done: float) -> float:
        """The rate that DeepSpeed is at: the configuration's, or that of its scheduler."""
        return float(self._engine.get_lr()[0])

    def forward(self, inputs: Tensor, last: bool) -> Tensor:
        """The model's answer to a micro batch."""
        outputs: Tensor = self._engine(self._input(inputs)).float()
        return outputs

    def predict(self, inputs: Tensor) -> Tensor:
        """The same in a test."""
        outputs: Tensor = self.module(self._input(inputs)).float()
        return outputs

    def _input(self, inputs: Tensor) -> Tensor:
        return inputs.to(self._dtype) if inputs.is_floating_point() else inputs

    def backward(self, loss: Tensor, last: bool) -> None:
        """Add to the gradient; the engine divides by the number of micro batches."""
        self._engine.backward(poisoned(loss))
        if not last:
            self._engine.step()  # counts the micro batch

    def step(self, lr: float) -> Tensor:
        """Let the engine change the weights; it skips a gradient that is not finite itself."""
        self._engine.step()
        return torch.tensor(self._gradient_norm(), device=self._device)

    def _gradient_norm(self) -> float:
        """The length of the last step's gradient; infinite where a step was skipped for it.

        With fp16 the loss scale is looked for by skipping steps: those are as they should be.
        """
        engine = self._engine
        if getattr(engine.optimizer, "overflow", False):
            return 0.0 if engine.fp16_enabled() else math.inf
        norm = engine.get_global_grad_norm()
        return 0.0 if norm is None else float(norm)

    def communication(self) -> dict[str, float]:
        """DeepSpeed doesn't say without waiting for the GPU."""
        return {}

    def stage(self, folder: Path, copy: bool) -> Write:
        """Take this rank's part, as DeepSpeed would write it.

        DeepSpeed neither waits for the disk nor knows checksums; and where one rank's disk is full,
        that rank leaves and the others wait for it in a barrier. So nothing is written here.
        """
        taken = zero_parts.Taken(self._staging if copy else None)
        self._engine._copy_recovery_script = lambda folder: None  # it writes
        own, self._engine.checkpoint_engine = self._engine.checkpoint_engine, taken
        try:
            self._engine.save_checkpoint(
                str(folder.parent),
                tag=folder.name,
                client_state=zero_parts.DIVISIBLE,
                save_latest=False,
            )
        finally:
            self._engine.checkpoint_engine = own
        return taken.write

    def load(self, folder: Path, saved_by: int) -> None:
        """Continue from parts that as many ranks have saved, or divide them anew."""
        engine, me = self._engine, self._me
        rates = [group["lr"] for group in engine.optimizer.param_groups]
        if saved_by == me.world_size:
            engine.load_checkpoint(str(folder.parent), tag=folder.name)
        else:
            with zero_parts.universal(folder, me, self.optimizer_name, saved_by) as converted:
                engine._config.load_universal_checkpoint = True
                engine.load_checkpoint(str(converted.parent), tag=converted.name)
            engine._config.load_universal_checkpoint = False
        if engine.lr_scheduler is None:
            # The optimizer's state has the rates it was saved with; those of the configuration
            # count.
            for group, rate in zip(engine.optimizer.param_groups, rates, strict=True):
                group["lr"] = rate
