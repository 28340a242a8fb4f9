"""Estimates the GPU memory that a rank of a bundled trainer needs for a step. Pure.

tests/trainers/test_rank_memory.py compares the estimates with measurements.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice

import yaml

from lumitui.app.explain.words import count
from lumitui.app.job.launch import Launch, RankLayout, RankMemory
from lumitui.app.job.setting import argument_value
from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.launcher_templates import TEMPLATES
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.job_file_catalogue import LaunchRule, hit
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site

_TABLE = TEMPLATES / "model_memory.yaml"
_MOST_WAYS = 3  # remedies per finding
_FLOAT = 4
"""Bytes of a weight and of its gradient, which are float32 in each of these strategies."""
_STATES = {"sgd": 4, "adam": 8, "adamw": 8}
"""Bytes of an optimizer's states per weight."""
_WORLD = {"ddp": "ddp", "lightning_trainer": "ddp", "fsdp": "fsdp"}
"""How each bundled trainer splits the model; DeepSpeed's buffers are unknown."""


@dataclass(frozen=True)
class _ModelRow:
    """A row of templates/model_memory.yaml, whose comments explain the fields."""

    weights: int
    outside: int
    block: int
    input: int
    passes: Mapping[str, Mapping[str, tuple[int, int]]]


@dataclass(frozen=True)
class _Training:
    """The settings that determine a rank's memory."""

    strategy: str
    world_size: int
    model: str = "cnn"
    batch: int = 32
    accumulates: bool = False
    optimizer: str = "sgd"
    precision: str = "fp32"
    recompute: str = ""
    """The value of --recompute: none, "all" or "selective"."""
    keep_gradients: bool = False
    shard_size: int = 0
    """Ranks that share the model; 0: all."""

    def needed(self) -> int:
        """Return a rank's peak memory in bytes, excluding the driver and NCCL.

        Raises:
            KeyError: the table lacks this model, precision or optimizer.
        """
        model = models()[self.model]
        weights = model.weights
        split = self.strategy == "fsdp"
        arithmetic = "fp32" if self.precision == "fp32" else "bf16"
        # Gathered weights have the precision of the arithmetic, unless there is batch norm.
        gathered = split and arithmetic == "bf16" and "bf16 weights" in model.passes
        size, kind = (2, "bf16 weights") if gathered else (_FLOAT, arithmetic)
        step = model.passes[", ".join(filter(None, (kind, self.recompute)))]
        gradients, states = _FLOAT * weights, _STATES[self.optimizer] * weights
        kept = _FLOAT * weights + states + 2 * self.batch * model.input

        def at(name: str) -> int:
            fixed, of_a_sample = step.get(name, step["most"])
            return fixed + of_a_sample * self.batch

        if split:
            ranks = self.shard_size or self.world_size
            part = kept // ranks + size * model.outside
            whole = self.keep_gradients and self.accumulates
            summed = gradients if whole else gradients // ranks
            # Two gathered blocks, the gradients of one, and the same in float32 for the reduction.
            inside = part + summed + at("inner") + (3 * size + _FLOAT) * model.block
            return max(part + summed * whole + at("most"), inside)
        if self.strategy == "single" and not self.accumulates:
            # Both lines come from small batches, whose peak is halfway through the backward pass.
            # With large batches, the peak comes before the first gradient.
            return kept + max(at("growing"), at("most"))
        return kept + gradients + at("most")


def memory_of(spec: JobSpec, site: Site, layout: RankLayout) -> RankMemory | None:
    """Return the GPU memory that a rank needs; None if it is unknown or there is no GPU."""
    training = _training_of(spec, layout)
    if layout.on_cpu or training is None:
        return None
    return RankMemory(training.needed(), site.node.gpu_memory_gib << 30, training.batch)


def remedies(spec: JobSpec, site: Site, layout: RankLayout) -> Iterator[str]:
    """Yield the changes that make a rank fit, each with the memory that the rank then needs."""
    training = _training_of(spec, layout)
    if training is None:
        return
    smaller = False
    for change, words in _changes(training).items():
        memory = RankMemory(change.needed(), site.node.gpu_memory_gib << 30, change.batch)
        if memory.fits and not (smaller and change.batch < training.batch):
            yield f"{words} ({memory.gib} GiB)"
            smaller = change.batch < training.batch


def _memory(launch: Launch, place: Placement) -> Iterator[Finding]:
    memory = launch.memory
    if memory is None or memory.fits:
        return
    ways = list(islice(remedies(place.spec, place.site, launch.layout), _MOST_WAYS))
    do = f"{' or '.join(ways)}." if ways else "Choose a smaller --model, or use more ranks."
    yield hit(
        "memory-fit",
        "args",
        f"A step of {count(memory.batch, 'sample')} needs about {memory.gib} GiB per "
        f"{place.site.node.device.noun}, which has {memory.of >> 30} GiB, some of it for the "
        "driver and NCCL.",
        do[0].upper() + do[1:],
    )


RULES: tuple[LaunchRule, ...] = (_memory,)
"""The adviser's rules about memory: a step that does not fit fails only after the queue."""


def _changes(training: _Training) -> Mapping[_Training, str]:
    """Return other settings for the same model with descriptions, larger batches first."""
    recomputes = "fp32, all" in models()[training.model].passes
    changes = {replace(training, recompute="all"): "add --recompute"} if recomputes else {}
    if training.precision == "fp32":
        changes[replace(training, precision="bf16")] = "set --precision bf16"
    batch = training.batch // 2
    while batch:
        changes[replace(training, batch=batch)] = f"set --batch-size {batch}"
        batch //= 2
    if training.strategy == "ddp" and training.world_size > 1:
        split = replace(training, strategy="fsdp")
        changes[split] = "use trainer and strategy fsdp"
        if recomputes:
            changes[replace(split, recompute="all")] = (
                "use trainer and strategy fsdp with --recompute"
            )
    return changes


def _training_of(spec: JobSpec, layout: RankLayout) -> _Training | None:
    """Return the settings of a bundled trainer's job; None if they are unknown."""
    strategy = _WORLD.get(spec.trainer or "")
    if strategy is None:
        return None
    args = spec.args
    alone = strategy == "ddp" and layout.world_size == 1
    recomputes = any(word.partition("=")[0] == "--recompute" for word in args)
    recompute = argument_value(args, "--recompute") if recomputes else ""
    training = _Training("single" if alone else strategy, layout.world_size)
    try:
        training = replace(
            training,
            model=argument_value(args, "--model") or training.model,
            batch=int(argument_value(args, "--batch-size") or training.batch),
            accumulates=int(argument_value(args, "--accumulate") or 1) > 1,
            optimizer=argument_value(args, "--optimizer") or training.optimizer,
            precision=argument_value(args, "--precision") or training.precision,
            recompute="all" if recomputes and recompute != "selective" else recompute or "",
            keep_gradients="--keep-gradients" in args,
            shard_size=int(argument_value(args, "--shard-size") or 0),
        )
        training.needed()
    except (ValueError, KeyError):
        return None
    return training


@cache
def models() -> dict[str, _ModelRow]:
    """Return the table's rows by model."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    rows = yaml.load(_TABLE.read_bytes(), loader)
    return {model: _ModelRow(**row) for model, row in rows.items()}
