"""The tables of strategies and of bundled trainers.

A strategy is one row here. A bundled trainer is one file in `trainers/` and one row here.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Strategy:
    """A way of training on several ranks."""

    summary: str
    trainer: str
    """The bundled trainer that implements it."""
    zero_stage: int | None = None
    """DeepSpeed's `zero_optimization.stage`; None: no DeepSpeed configuration."""
    offload: tuple[str, ...] = ()
    """Keys of DeepSpeed's `zero_optimization` that get the device `cpu`: their data is kept in the
    nodes' memory instead of the GPUs'."""
    single_rank: bool = False
    passes: int = 2
    """Number of times that each rank sends the model's size in a step, less its own share: 2 for an
    all-reduce; 3 if weights are gathered twice, or, as DeepSpeed does, gathered after an
    all-reduce. `make bench-trainers` counts the bytes."""


_OPTIMIZER = ("offload_optimizer",)

STRATEGIES: dict[str, Strategy] = {
    "ddp": Strategy("each rank has the whole model, and gradients are averaged", "ddp"),
    "single": Strategy("one rank", "ddp", single_rank=True, passes=0),
    "fsdp": Strategy(
        "PyTorch; splits parameters, gradients and optimizer states", "fsdp", passes=3
    ),
    "lightning": Strategy("like ddp, driven by PyTorch Lightning's Trainer", "lightning_trainer"),
    "zero1": Strategy("DeepSpeed; splits optimizer states", "deepspeed_zero", 1, passes=3),
    "zero2": Strategy("DeepSpeed; also splits gradients", "deepspeed_zero", 2, passes=3),
    "zero3": Strategy("DeepSpeed; also splits parameters", "deepspeed_zero", 3, passes=3),
    "zero1-offload": Strategy(
        "like zero1; the optimizer is in CPU memory", "deepspeed_zero", 1, _OPTIMIZER, passes=3
    ),
    "zero2-offload": Strategy(
        "like zero2; the optimizer is in CPU memory", "deepspeed_zero", 2, _OPTIMIZER, passes=3
    ),
    "zero3-offload": Strategy(
        "like zero3; optimizer and parameters are in CPU memory",
        "deepspeed_zero",
        3,
        (*_OPTIMIZER, "offload_param"),
        passes=3,
    ),
}


@dataclass(frozen=True)
class Trainer:
    """A bundled trainer: its command line and its signals."""

    file: str
    """Its name in `trainers/`; lumitui also sends the files beside it."""
    strategies: tuple[str, ...]
    resume: tuple[str, ...] = ("--resume",)
    """Arguments with which it continues from the run's last checkpoint."""
    divides: tuple[str, ...] = ()
    """Optimizers whose checkpoints a different number of ranks can resume, by DeepSpeed's names in
    lowercase; empty means all."""
    signal: str = "USR1@60"
    """sbatch's `--signal`, on which it saves and ends, here 60 s before the time limit."""
    batch_arg: str | None = "--batch-size"
    """The argument with the samples per rank and step, or per rank and micro batch."""
    steps_arg: str | None = "--accumulate"
    """The argument with the micro batches per step."""
    lr_arg: str | None = "--lr"
    fetch: tuple[str, ...] = ("checkpoints/*",)


TRAINERS: dict[str, Trainer] = {
    "ddp": Trainer("ddp.py", ("ddp", "single")),
    "fsdp": Trainer("fsdp.py", ("fsdp",)),
    "lightning_trainer": Trainer("lightning_trainer.py", ("lightning",)),
    "deepspeed_zero": Trainer(
        "deepspeed_zero.py",
        tuple(name for name, row in STRATEGIES.items() if row.zero_stage),
        divides=("adam", "adamw"),
        batch_arg=None,
        steps_arg=None,
        lr_arg=None,
    ),
}
