"""The arguments of the trainers."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from data.mnist import SAMPLE


def count(text: str) -> int:
    """Read a whole number of at least 1 from the command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def whole(text: str) -> int:
    """Read a whole number, 0 included, from the command line."""
    return 0 if text == "0" else count(text)


def amount(text: str) -> float:
    """Read a finite number of at least 0 from the command line."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return value


def betas(text: str) -> tuple[float, float]:
    """Read `0.9,0.95` from the command line."""
    found = tuple(amount(each) for each in text.split(","))
    if len(found) != 2 or max(found) >= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not two numbers below 1, like 0.9,0.95")
    return found[0], found[1]


def span(text: str) -> tuple[int, int]:
    """Read `10:15` from the command line: the first and the last step."""
    first, _, last = text.partition(":")
    if not (first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a first and last step, like 10:15")
    return int(first), int(last)


def parser_of(trainer: str, description: str = "") -> argparse.ArgumentParser:
    """Return the parser of a trainer, by its file's name. lumitui calls it without PyTorch."""
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    _add_shared(parser)
    if trainer == "deepspeed_zero.py":  # the batch is the configuration's
        import deepspeed  # type: ignore[import-untyped]

        parser.add_argument("--local_rank", type=int, default=0, help=argparse.SUPPRESS)
        deepspeed.add_config_arguments(parser)
    else:
        _add_torch(parser)
    if trainer == "fsdp.py":
        parser.add_argument("--keep-gradients", action="store_true",
            help="with --accumulate, exchange once per step; needs 4 bytes per weight")  # fmt: skip
        parser.add_argument("--shard-size", type=count, metavar="N",
            help="shard the model within each group of N ranks (default: all ranks)")  # fmt: skip
    return parser


def _add_shared(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of every trainer."""
    from models.table import MODELS  # pack.py imports `count` from here, without the models

    add = parser.add_argument
    # Model and data.
    add("--model", choices=MODELS, default="cnn", help="model to train (default: %(default)s)")
    add("--data", default=str(SAMPLE),
        help="folder, file, or `synthetic` (default: a sample of MNIST)")  # fmt: skip
    add("--init", type=Path, metavar="PATH",
        help="initial weights: a checkpoint, or a folder of *.safetensors")  # fmt: skip
    add("--limit", type=count, metavar="N", help="use only the first N training samples")
    add("--workers", type=whole, default=0, help="threads that read data ahead (default: 0)")
    add("--seed", type=int, default=0, help="seed of weights and data order (default: %(default)s)")
    add("--epochs", type=count, default=4, help="passes over the data (default: %(default)s)")
    add("--max-skipped", type=whole, default=3, metavar="N",
        help="exit with 86 after more than N non-finite steps in a row (default: 3)")  # fmt: skip
    add("--steps", type=count, default=sys.maxsize, help="stop after this step")
    # Checkpoints and reports.
    add("--resume", action="store_true", help="continue from the newest checkpoint, if any")
    add("--save-every", type=count, metavar="STEPS",
        help="steps between checkpoints (default: 100, or none with --save-minutes)")  # fmt: skip
    add("--save-minutes", type=amount, metavar="MINUTES", help="minutes between checkpoints")
    add("--keep-best", action="store_true",
        help="also keep the checkpoint with the best test result")  # fmt: skip
    add("--save-in-background", action="store_true",
        help="continue training during a save, which needs memory for a copy")  # fmt: skip
    add("--eval", choices=("epoch", "end", "never"), default="epoch", help="when to test")
    add("--log-every", type=count, default=10, help="steps between log lines (default: 10)")
    add("--watch", metavar="NAMES",
        help="also write metrics for these: tensorboard,mlflow,wandb")  # fmt: skip
    add("--tf32", action="store_true",
        help="use TF32 for float32 matrix products on NVIDIA GPUs")  # fmt: skip
    add("--profile", type=span, metavar="FIRST:LAST", help="trace these steps: 10:15")


def _add_torch(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the strategies with PyTorch's optimizers."""
    add = parser.add_argument
    # Batches. The global batch is batch size x micro batches x ranks.
    add("--batch-size", type=count, default=32, help="samples per rank (default: 32)")
    add("--accumulate", type=count, default=1, metavar="N",
        help="micro batches per step (default: 1)")  # fmt: skip
    # How. The rate warms up and falls to 0 along a cosine over all epochs. It isn't multiplied
    # by the number of ranks here: that is a choice to make when a job is scaled.
    add("--optimizer", choices=("sgd", "adam", "adamw"), default="sgd",
        help="default: sgd, with momentum 0.9")  # fmt: skip
    add("--lr", type=amount, default=0.02, help="peak learning rate (default: 0.02)")
    add("--schedule", choices=("cosine", "constant"), default="cosine",
        help="rate schedule (default: cosine)")  # fmt: skip
    add("--warmup-steps", type=whole, metavar="N",
        help="warm-up steps (default: 5 %% of the samples with cosine)")  # fmt: skip
    add("--betas", type=betas, default=(0.9, 0.999), help="betas of Adam (default: 0.9,0.999)")
    add("--weight-decay", type=amount, default=0.0, help="weight decay (default: 0)")
    add("--decay", choices=("all", "matrices"), default="all",
        help="weights that decay; matrices: neither biases nor norms (default: all)")  # fmt: skip
    add("--clip", type=amount, default=0.0, metavar="NORM",
        help="clip the gradient to this norm (default: off)")  # fmt: skip
    # How fast, and in how much memory. None of it changes what is learnt, but for rounding.
    add("--compile", action="store_true", help="torch.compile the model before the first step")
    add("--recompute", nargs="?", const="all", choices=("all", "selective"), metavar="WHAT",
        help="activation checkpointing: keep only each block's input; with `selective`, also "
        "the outputs of matrix products, convolutions and attention")  # fmt: skip
    add("--loss-parts", type=count, default=1, metavar="N",
        help="compute logits in N parts, and again in the backward pass")  # fmt: skip
    add("--channels-last", choices=("auto", "yes", "no"), default="auto",
        help="channels-last memory layout (auto: yes on GPUs)")  # fmt: skip
    add("--precision", choices=("fp32", "bf16"), default="fp32",
        help="precision (default: fp32)")  # fmt: skip
    add("--save", choices=("whole", "sharded"), default="whole",
        help="one file, or one per rank (default: whole; fsdp: always sharded)")  # fmt: skip
