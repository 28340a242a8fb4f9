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


def add_shared(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of every trainer."""
    from models.table import MODELS  # pack.py imports `count` from here, without the models

    add = parser.add_argument
    # Model and data.
    add("--model", choices=MODELS, default="cnn", help="network (default: %(default)s)")
    add(
        "--data",
        default=str(SAMPLE),
        help="folder or file, or synthetic (default: a sample of MNIST)",
    )
    add("--init", type=Path, metavar="PATH",
        help="begin with these weights: a checkpoint, or a folder of *.safetensors")  # fmt: skip
    add("--limit", type=count, metavar="N", help="use only the first N training samples")
    add("--workers", type=whole, default=0, help="threads that read ahead (default: 0)")
    add("--seed", type=int, default=0, help="of weights and order (default: %(default)s)")
    add("--epochs", type=count, default=4, help="passes over the data (default: %(default)s)")
    add("--max-skipped", type=whole, default=3, metavar="N",
        help="end with 86 when the loss is no number for more than N steps in a row")  # fmt: skip
    add("--steps", type=count, default=sys.maxsize, help="end after this step of the plan")
    # Checkpoints and reports.
    add("--resume", action="store_true", help="continue from the newest checkpoint if there is one")
    add("--save-every", type=count, metavar="STEPS",
        help="between checkpoints (default: 100, or any with --save-minutes)")  # fmt: skip
    add("--save-minutes", type=amount, metavar="MINUTES", help="between checkpoints")
    add("--keep-best", action="store_true",
        help="save after a test that is the best so far, and keep that checkpoint")  # fmt: skip
    add("--save-in-background", action="store_true",
        help="train on while a checkpoint is written; it takes memory for a copy")  # fmt: skip
    add("--eval", choices=("epoch", "end", "never"), default="epoch", help="when to test")
    add("--log-every", type=count, default=10, help="steps between lines on stdout")
    add("--watch", metavar="NAMES",
        help="show it in these too, separated by commas: tensorboard, mlflow, wandb")  # fmt: skip
    add("--tf32", action="store_true",
        help="round what float32 matrix products read to 10 bits, on Nvidia's GPUs")  # fmt: skip
    add("--profile", type=span, metavar="FIRST:LAST", help="trace these steps, like 10:15")


def add_torch(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the strategies with PyTorch's optimizers."""
    from strategies.pytorch import DECAYS, OPTIMIZERS, PRECISIONS, SCHEDULES

    add = parser.add_argument
    # Batches. The global batch is batch size x micro batches x ranks.
    add("--batch-size", type=count, default=32, help="samples per rank (default: 32)")
    add("--accumulate", type=count, default=1, metavar="N",
        help="micro batches of --batch-size in a step (default: 1)")  # fmt: skip
    # How. The rate warms up and falls to 0 along a cosine over all epochs. It isn't multiplied
    # by the number of ranks here: that is a choice to make when a job is scaled.
    add("--optimizer", choices=OPTIMIZERS, default="sgd", help="sgd has momentum 0.9")
    add("--lr", type=amount, default=0.02, help="highest learning rate (default: 0.02)")
    add("--schedule", choices=SCHEDULES, default="cosine", help="of the rate (default: cosine)")
    add("--warmup-steps", type=whole, metavar="N",
        help="in which the rate rises (default: 5 %% of the samples with cosine)")  # fmt: skip
    add("--betas", type=betas, default=(0.9, 0.999), help="of adam (default: 0.9,0.999)")
    add("--weight-decay", type=amount, default=0.0, help="(default: 0)")
    add("--decay", choices=DECAYS, default="all",
        help="which weights decay; matrices: no biases and no norms (default: all)")  # fmt: skip
    add("--clip", type=amount, default=0.0, metavar="LENGTH",
        help="longest gradient of a step (default: any)")  # fmt: skip
    # How fast, and in how much memory. None of it changes what is learnt, but for rounding.
    add("--compile", action="store_true", help="compile the model: minutes before the first step")
    add("--recompute", nargs="?", const="all", choices=("all", "selective"), metavar="WHAT",
        help="keep less of each block for the backward pass: only its input; or, with "
        "`selective`, what matrix products, convolutions and attention give")  # fmt: skip
    add("--loss-parts", type=count, default=1, metavar="N",
        help="compute a text's logits in N parts, and again in the backward pass")  # fmt: skip
    add("--channels-last", choices=("auto", "yes", "no"), default="auto",
        help="order of an image's values in memory (auto: yes on GPUs)")  # fmt: skip
    add("--precision", choices=PRECISIONS, default="fp32", help="of the arithmetic (default: fp32)")
    add("--save", choices=("whole", "sharded"), default="whole",
        help="as one file, or one of each rank (default: whole); fsdp: always sharded")  # fmt: skip
