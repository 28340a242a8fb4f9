"""A job's DeepSpeed configuration, with `train = micro * accumulation * world size`.

Source: microsoft/DeepSpeed, deepspeed/runtime/config.py, `_set_batch_related_parameters`.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import hjson

from lumitui.app.job.launch import Launch, RankLayout
from lumitui.app.job.setting import argument_value
from lumitui.app.job.spec import JobSpec
from lumitui.app.job.strategies import STRATEGIES, TRAINERS, Strategy
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.run_folder import DEEPSPEED_CONFIG

TRAIN = "train_batch_size"
MICRO = "train_micro_batch_size_per_gpu"
ACCUMULATION = "gradient_accumulation_steps"
_LARGEST = 10_000_000  # samples; a larger number is a mistake, and finding its divisors takes long
_MOST_NODES = 10_000
_ARGUMENT = re.compile(r"--deepspeed[_-]config(?:=(?P<value>.*))?", re.DOTALL)


@dataclass(frozen=True)
class Batch:
    """The three fields that DeepSpeed checks against each other."""

    train: int
    """Samples per step over all ranks."""
    micro: int
    """Samples per rank and micro step."""
    accumulation: int
    """Micro steps per step."""


def whole(text: str | None) -> int | None:
    """Return the number in `text`, as Python's int() reads it; None unless 1 to 99,999,999."""
    digits = re.fullmatch(r" *\+?0*([1-9](?:_?[0-9]){0,7}) *", text or "")
    return int(digits[1]) if digits else None


def micro_steps(spec: JobSpec) -> int:
    """Return how many batches a bundled trainer accumulates in a step; 1 if unknown."""
    bundled = TRAINERS.get(spec.trainer or "")
    name = bundled.steps_arg if bundled else None
    return (whole(argument_value(spec.args, name)) if name else None) or 1


def read_config(text: str, name: str) -> dict[str, object]:
    """Return the DeepSpeed configuration in `text`, which is HJSON as for DeepSpeed itself.

    Raises:
        InputError: `text` is not a configuration; the message calls it `name`.
    """
    try:
        # Through JSON, for plain dicts with only JSON's types.
        data = json.loads(json.dumps(hjson.loads(text)))
    # hjson's own error is a ValueError; huge numbers and deep nesting raise the others.
    except (ValueError, OverflowError, RecursionError) as error:
        message = f"{name} is not a DeepSpeed configuration: {error}."
        raise InputError(message, "Correct the file.") from error
    if not isinstance(data, dict):
        raise InputError(f"{name} is not a DeepSpeed configuration.", "It must be a mapping.")
    return data


def fitting_worlds(total: int, ranks: int, nodes: int, most: int = _MOST_NODES) -> list[int]:
    """Return the node counts nearest to `nodes`, of at most `most`, that split `total` evenly."""
    good = [n for n in range(1, min(total // ranks, most) + 1) if total % (n * ranks) == 0]
    below = [n for n in good if n < nodes][-1:]
    above = [n for n in good if n > nodes][:1]
    return below + above


def indivisible(
    what: str, total: int, ranks: int, nodes: int, most: int = _MOST_NODES, may_grow: bool = False
) -> InputError:
    """Return the error for a batch that cannot be split over `nodes` nodes of `ranks` ranks.

    The hint names node counts of at most `most`; with `may_grow` (a resubmission), it offers
    `scale:`, which lets the batch grow.
    """
    nearest = fitting_worlds(total, ranks, nodes, most)
    counts = " or ".join(f"{n} node{'s' if n > 1 else ''}" for n in nearest)
    return InputError(
        f"{what} {total} cannot be split evenly over {nodes * ranks} ranks "
        f"({nodes} node{'s' if nodes > 1 else ''} x {ranks}).",
        (f"Use {counts}, or make" if nearest else "Make")
        + f" the batch a multiple of {nodes * ranks}"
        + (" (with `scale: {batch: {keep: per_gpu}}`, it grows with the ranks)." * may_grow or "."),
    )


def batch_of(config: dict[str, object], ranks_per_node: int, nodes: int) -> Batch:
    """Return the three batch fields of `config` for this many ranks.

    Raises:
        InputError: no field is set, a field is not a positive number, or they do not fit.
    """
    world = ranks_per_node * nodes
    values: dict[str, int | None] = {}
    for key in (TRAIN, MICRO, ACCUMULATION):
        value = config.get(key)
        if value == "auto":
            value = None
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise InputError(
                f"DeepSpeed's `{key}` is {_shortened(value)}, not an integer.", "Correct it."
            )
        if value is not None and not 1 <= value <= _LARGEST:
            raise InputError(
                f"DeepSpeed's `{key}` is {_shortened(value)}.", f"It must be from 1 to {_LARGEST}."
            )
        values[key] = value
    train, micro, accumulation = values[TRAIN], values[MICRO], values[ACCUMULATION]
    if train is None and micro is None:
        raise InputError(
            f"The DeepSpeed configuration has neither `{TRAIN}` nor `{MICRO}`.", "Set one of them."
        )
    if train is None:
        accumulation = accumulation or 1
        return Batch((micro or 1) * accumulation * world, micro or 1, accumulation)
    if micro is not None and accumulation is not None and micro * accumulation * world == train:
        return Batch(train, micro, accumulation)
    if train % world:
        raise indivisible(f"The global batch `{TRAIN}`", train, ranks_per_node, nodes)
    # The file may assume another number of ranks: keep its global batch, and never exceed its micro
    # batch, which fills a GPU's memory.
    share = train // world
    return split(train, world, micro or max(1, share // (accumulation or 1)))


def _shortened(value: object) -> str:
    """Return an invalid value for a message, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:20]}… ({len(text)} characters)"


def split(train: int, world: int, largest: int) -> Batch:
    """Return `train` samples over `world` ranks in micro batches of at most `largest`."""
    share = train // world
    micro = next(n for n in range(min(largest, share), 0, -1) if share % n == 0)
    return Batch(train, micro, share // micro)


def with_batch(config: dict[str, object], batch: Batch) -> dict[str, object]:
    """Return `config` with the three batch fields set."""
    return config | {TRAIN: batch.train, MICRO: batch.micro, ACCUMULATION: batch.accumulation}


def argument_words(args: Sequence[str]) -> tuple[str, range]:
    """Return the configuration that `--deepspeed_config` names, and the indices of the words.

    A bare `--deepspeed` just before it is included. Without the option, the name is empty.
    """
    for number, word in enumerate(args):
        if match := _ARGUMENT.fullmatch(word):
            value = match["value"]
            end = number + (2 if value is None else 1)
            start = number - 1 if "--deepspeed" in args[max(number - 1, 0) : number] else number
            return "".join(args[number + 1 : end]) if value is None else value, range(start, end)
    return "", range(0)


def has_deepspeed(spec: JobSpec) -> bool:
    """Return whether the job has a DeepSpeed configuration, its own or its strategy's."""
    return STRATEGIES[spec.strategy].zero_stage is not None or spec.deepspeed is not None


def deepspeed_of(
    spec: JobSpec, layout: RankLayout, text: str | None
) -> tuple[dict[str, object] | None, int | None]:
    """Return the DeepSpeed configuration to send, from the file's `text`, and the global batch.

    Both are None for a job without DeepSpeed.

    Raises:
        InputError: the configuration is missing, or its batch cannot be split over the ranks.
    """
    if not has_deepspeed(spec):
        return None, None
    if text is None:
        raise InputError(
            f"The strategy {spec.strategy} needs a DeepSpeed configuration.",
            "Set one: `deepspeed: {config: ds_config.json}`.",
            field="deepspeed.config",
        )
    name = spec.deepspeed.config if spec.deepspeed else "the trainer's ds_config.json"
    config = read_config(text, name)
    if spec.deepspeed is None:
        config = with_strategy(config, STRATEGIES[spec.strategy])
    batch = batch_of(config, layout.ranks_per_node, layout.nodes)
    return with_batch(config, batch), batch.train


def with_strategy(config: dict[str, object], strategy: Strategy) -> dict[str, object]:
    """Return `config` with the ZeRO settings of `strategy`.

    If the optimizer is in the CPU's memory, DeepSpeed's own Adam replaces PyTorch's: it is 5 to 7
    times as fast there (source: deepspeed/ops/adam/cpu_adam.py).
    """
    zero = config.get("zero_optimization")
    places = {key: {"device": "cpu", "pin_memory": True} for key in strategy.offload}
    merged = (zero if isinstance(zero, dict) else {}) | {"stage": strategy.zero_stage} | places
    config = config | {"zero_optimization": merged}
    optimizer = config.get("optimizer")
    if strategy.offload and isinstance(optimizer, dict):
        own = optimizer.get("params")
        params = own if isinstance(own, dict) else {}
        kept = {key: value for key, value in params.items() if key != "torch_adam"}
        config["optimizer"] = optimizer | {"params": kept}
    return config


def sent_config(launch: Launch) -> dict[str, object]:
    """Return the DeepSpeed configuration sent with `launch`; empty if there is none."""
    text = launch.texts.get(DEEPSPEED_CONFIG)
    return {} if text is None else read_config(text, DEEPSPEED_CONFIG)
