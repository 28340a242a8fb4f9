"""More nodes, or fewer: everything that follows from their number recomputed. Pure."""

import json
import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

from lumitui.app import batch as batches
from lumitui.app import rates
from lumitui.app.compose import argument_value, compose, has_deepspeed
from lumitui.app.job import JobSpec, Launch, Layout, Scale, changed
from lumitui.app.layout import layout_of, partition_of
from lumitui.app.strategies import TRAINERS
from lumitui.remote.document import Document
from lumitui.remote.errors import InputError
from lumitui.remote.site import Site


@dataclass(frozen=True)
class Change:
    """One line of the before/after table."""

    what: str
    before: str
    after: str

    @property
    def differs(self) -> bool:
        """Whether anything changed."""
        return self.before != self.after


@dataclass(frozen=True)
class Scaled:
    """A resubmission made ready, with what it changes."""

    launch: Launch
    changes: tuple[Change, ...]
    deepspeed_config: str | None
    notes: tuple[str, ...]


def rescale(
    earlier: Launch,
    site: Site,
    *,
    nodes: int | None = None,
    settings: Sequence[str] = (),
    deepspeed_config: str | None = None,
) -> Scaled:
    """Return `earlier` on `nodes` nodes, with `key=value` settings, and what changes.

    Time never shrinks by itself. `deepspeed_config` is the configuration the earlier launch
    sent, where its strategy needs one.

    Raises:
        InputError: a setting is wrong, or the batch cannot be split over the ranks.
    """
    spec = apply_settings(earlier.spec, settings)
    target = nodes if nodes is not None else spec.nodes
    if target < 1:
        raise InputError(f"{target} nodes are no job.", "Give 1 or more.")
    notes: list[str] = []
    spec = changed(spec, {"nodes": target}, f"--nodes {target}")
    spec = _partition(spec, site, notes)
    layout = layout_of(spec, site)
    held = frozenset(key for key, _, _ in (s.partition("=") for s in settings) if key[:1] == "-")
    spec, deepspeed_config = _batch_and_rate(spec, earlier, layout, deepspeed_config, held, notes)
    launch = compose(spec, site, deepspeed_config=deepspeed_config)
    return Scaled(launch, tuple(_table(earlier, launch)), deepspeed_config, tuple(notes))


def apply_settings(spec: JobSpec, settings: Sequence[str]) -> JobSpec:
    """Return `spec` with `key=value` settings: a job file's key (dots go deeper), or an argument.

    `time=02:00:00`, `env.NCCL_DEBUG=INFO` and `--epochs=20` are settings.

    Raises:
        InputError: no such key, or a value it cannot have.
    """
    data: dict[str, Any] = spec.model_dump(mode="json", exclude_defaults=True)
    for setting in settings:
        key, sign, text = setting.partition("=")
        if not sign or not key:
            raise InputError(
                f"{setting!r} is not a setting.", "Write key=value, like --set time=02:00:00."
            )
        if key.startswith("-"):
            data["args"] = list(with_argument(tuple(data.get("args", ())), key, text))
            continue
        place = data
        *path, last = key.split(".", 1) if key.startswith("env.") else key.split(".")
        for part in path:
            below = place.setdefault(part, {})
            if not isinstance(below, dict):
                raise InputError(f"{part} has no keys below it.", f"Set {part}= itself.")
            place = below
        place[last] = _value(text)
    return changed(JobSpec.model_construct(), data, "--set")


def with_argument(args: tuple[str, ...], name: str, value: str) -> tuple[str, ...]:
    """Return `args` with the option `name` set to `value`, added when it was not there."""
    words = list(args)
    for index in range(len(words) - 1, -1, -1):
        if words[index] == name and index + 1 < len(words):
            words[index + 1] = value
            return tuple(words)
        if words[index].startswith(f"{name}="):
            words[index] = f"{name}={value}"
            return tuple(words)
    return (*args, name, value)


def _value(text: str) -> object:
    """Return a setting's value: lists and mappings as YAML, everything else as it stands."""
    if text[:1] in ("[", "{"):
        return Document(f"value: {text}", "--set", plain=True).data["value"]
    return text


def _partition(spec: JobSpec, site: Site, notes: list[str]) -> JobSpec:
    partition = partition_of(spec, site)
    while spec.nodes > partition.max_nodes and partition.grows_to:
        following = partition.grows_to
        notes.append(
            f"{spec.partition} ends at {partition.max_nodes} nodes: the job moves to {following}."
        )
        spec = changed(spec, {"partition": following}, "partition")
        partition = site.partitions[following]
    if spec.nodes > partition.max_nodes:
        raise InputError(
            f"{spec.nodes} nodes are more than {spec.partition} has ({partition.max_nodes}).",
            "Ask for fewer.",
        )
    return spec


def _batch_and_rate(
    spec: JobSpec,
    earlier: Launch,
    layout: Layout,
    config_text: str | None,
    held: Set[str],
    notes: list[str],
) -> tuple[JobSpec, str | None]:
    """Return the job with its batch and rate as `scale:` says, and DeepSpeed's configuration.

    The learning rate follows the global batch, whatever changed that: ranks, a rule, a hand.
    `held` names the arguments set by hand in this very step: they stay, also at their old value.
    """
    before, old_world, new_world = earlier.spec, earlier.layout.world_size, layout.world_size
    scale, resized = spec.scale or Scale(), new_world != old_world
    if resized and spec.scale is None:
        notes.append("No `scale:` in the job file: global batch and learning rate stay.")
    if has_deepspeed(spec) and config_text is not None:
        return _deepspeed(spec, before, old_world, layout, config_text, held, notes)
    name = batch_argument(spec)
    if name is None:
        ratio = new_world / old_world
        if resized:
            notes.append(
                "Your script's arguments stay as they are: if its batch size is per GPU, the "
                f"global batch becomes {ratio:g} times what it was."
            )
        ratio = ratio if scale.batch.keep == "per_gpu" else 1.0
        return _argument_rate(spec, before, scale, ratio, held, notes), config_text
    text, old = argument_value(spec.args, name), argument_value(before.args, name)
    per_rank, old_per_rank = batches.whole(text), batches.whole(old)
    if not per_rank:
        if not resized:
            return spec, config_text
        raise InputError(
            f"The argument {name} with the batch size is not among `args:`."
            if text is None
            else f"The argument {name} is {text!r}, not a number of samples.",
            f"Give it ({name} 32), so that it can be recomputed for {spec.nodes} nodes.",
        )
    if scale.batch.keep == "global" and old == text and name not in held:
        total = per_rank * old_world
        if total % new_world:
            raise batches.indivisible("The global batch", total, layout.ranks_per_node, spec.nodes)
        per_rank = total // new_world
        args = with_argument(spec.args, name, str(per_rank))
        spec = changed(spec, {"args": list(args)}, "scale")
    if not old_per_rank:
        return spec, config_text  # what the batch was is not known
    ratio = per_rank * new_world / (old_per_rank * old_world)
    return _argument_rate(spec, before, scale, ratio, held, notes), config_text


def _argument_rate(
    spec: JobSpec, before: JobSpec, scale: Scale, ratio: float, held: Set[str], notes: list[str]
) -> JobSpec:
    """Return `spec` with the argument of the learning rate as a global batch `ratio` times asks."""
    name, factor = rate_argument(spec), _rate_factor(scale, ratio)
    if factor == 1 or name in held:
        return spec
    if name is None:
        notes.append(
            f"`scale.lr.rule` is {scale.lr.rule}, but no `lr.arg` names the argument: "
            "the learning rate stays."
        )
        return spec
    rate = argument_value(spec.args, name)
    if rate is None or not rates.is_number(rate):
        raise InputError(
            f"The argument {name} with the learning rate is not among `args:`.",
            f"Add it ({name} 0.001), so that `scale.lr` can change it.",
        )
    if argument_value(before.args, name) != rate:
        return spec  # set by hand, with all of `args`
    args = with_argument(spec.args, name, f"{rates.times(rate, factor):.10g}")
    return changed(spec, {"args": list(args)}, "scale")


def _deepspeed(
    spec: JobSpec,
    before: JobSpec,
    old_world: int,
    layout: Layout,
    text: str,
    held: Set[str],
    notes: list[str],
) -> tuple[JobSpec, str]:
    scale, new_world = spec.scale or Scale(), layout.world_size
    if new_world == old_world:
        return spec, text
    config = batches.read_config(text, "the DeepSpeed configuration")
    old = batches.batch_of(config, old_world, 1)
    if scale.batch.keep == "per_gpu":
        total, micro, accumulation = old.train * new_world // old_world, old.micro, old.accumulation
    else:
        # The global batch is what counts; the micro batch, which fills a GPU's memory, never grows.
        total = old.train
        if total % new_world:
            raise batches.indivisible("The global batch", total, layout.ranks_per_node, spec.nodes)
        share = total // new_world
        micro = max(n for n in range(1, min(old.micro, share) + 1) if share % n == 0)
        accumulation = share // micro
    config = batches.with_batch(config, batches.Batch(total, micro, accumulation))
    ratio = total / old.train
    factor = _rate_factor(scale, ratio)
    if factor != 1:
        config = rates.scaled(config, factor)
        if not rates.rates(config) and scale.lr.arg is None:
            notes.append(
                "The DeepSpeed configuration names no learning rate: the optimizer's own stays."
            )
        if rates.depends_on_version(config):
            notes.append(
                "WarmupLR without `warmup_max_lr` warms up to the optimizer's rate, in older "
                "DeepSpeed always to 0.001: write it out, so that it surely follows."
            )
        if scale.lr.arg is not None:
            spec = _argument_rate(spec, before, scale, ratio, held, notes)
    return spec, json.dumps(config, indent=2) + "\n"


def batch_argument(spec: JobSpec) -> str | None:
    """Return the argument with the samples a rank and step; None where none is known."""
    bundled = TRAINERS.get(spec.trainer or "")
    named = spec.scale.batch.arg if spec.scale else None
    return named or (bundled.batch_arg if bundled else None)


def rate_argument(spec: JobSpec) -> str | None:
    """Return the argument with the learning rate; None where none is known."""
    bundled = TRAINERS.get(spec.trainer or "")
    named = spec.scale.lr.arg if spec.scale else None
    return named or (bundled.lr_arg if bundled else None)


def _rate_factor(scale: Scale, ratio: float) -> float:
    if scale.lr.rule == "linear":
        return ratio
    return math.sqrt(ratio) if scale.lr.rule == "sqrt" else 1.0


def _billed(launch: Launch) -> str:
    return f"{launch.price.amount:g} {launch.price.unit}" if launch.price.amount else "nothing"


def _rates(launch: Launch) -> str:
    """Return the learning rates that the launch names, in its arguments and DeepSpeed's file."""
    name = rate_argument(launch.spec)
    value = argument_value(launch.spec.args, name) if name else None
    found = [value] if value else []
    for file in launch.files:
        if file.name == "ds_config.json":
            config = batches.read_config(file.content, file.name)
            found += [
                f"{rate}" if key == "lr" else f"{key} {rate}"
                for key, rate in rates.rates(config).items()
            ]
    return ", ".join(found) or "unknown"


def _table(before: Launch, after: Launch) -> list[Change]:
    def row(what: str, read: Any) -> Change:
        return Change(what, str(read(before)), str(read(after)))

    rows = [
        row("nodes", lambda launch: launch.layout.nodes),
        row("ranks", lambda launch: launch.layout.world_size),
        row("GPUs", lambda launch: launch.layout.nodes * launch.layout.gpus_per_node),
        row("tasks a node", lambda launch: launch.layout.tasks_per_node),
        row("partition", lambda launch: launch.spec.partition),
        row("time limit", lambda launch: launch.spec.time),
        row("masks", lambda launch: f"{len(launch.layout.masks)} a node"),
        row("global batch", lambda launch: launch.global_batch or "unknown"),
        row("learning rate", _rates),
        row("arguments", lambda launch: " ".join(launch.spec.args)),
        row("billed at most", _billed),
    ]
    old, new = before.spec.model_dump(mode="json"), after.spec.model_dump(mode="json")
    shown = {"nodes", "partition", "time", "args", "name"}
    rows += [
        Change(key, str(old[key]), str(new[key]))
        for key in old
        if key not in shown and old[key] != new[key]
    ]
    return rows
