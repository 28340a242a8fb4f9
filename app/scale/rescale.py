"""Changing the number of nodes: everything that depends on it is recomputed. Pure.

Without `arg_is: global`, the argument `scale.batch.arg` is the number of samples that the script
loads per rank and micro step, like DeepSpeed's micro batch. Both are kept equal; otherwise the
script would not train on the displayed global batch.
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lumitui.app.job.fields.mapping_fields import Scale
from lumitui.app.job.launch import Launch, RankLayout
from lumitui.app.job.setting import (
    argument_value,
    batch_argument,
    is_batch_global,
    no_number,
    set_in,
    with_value,
)
from lumitui.app.job.spec import MOST_NODES, JobSpec, changed
from lumitui.app.launch import deepspeed_batch as batches
from lumitui.app.launch.compose import compose
from lumitui.app.launch.deepspeed_batch import has_deepspeed, sent_config
from lumitui.app.launch.layout import layout_of
from lumitui.app.launch.placement import partition_of, placement_of
from lumitui.app.scale import learning_rate
from lumitui.app.scale.learning_rate import rate_factor, with_rate
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.yaml_document import Document


@dataclass(frozen=True)
class Written:
    """A DeepSpeed configuration, and the number of ranks for its batch and rates."""

    text: str
    ranks: int | None
    """None: the number that the job gets, so the configuration stays."""


def rescale(
    earlier: Launch,
    spec: JobSpec,
    site: Site,
    notes: list[str],
    *,
    nodes: int | None = None,
    settings: Sequence[str] = (),
    written: Written | None = None,
    dependency: tuple[str, ...] = (),
) -> Launch:
    """Return the launch of `spec` on `nodes` nodes; `earlier` describes its earlier training.

    The time limit never shrinks. Arguments in `settings` stay, `written` is the DeepSpeed
    configuration, if the job needs one, and `dependency` contains the sbatch options for `after:`.
    Remarks for the user are added to `notes`.

    Raises:
        InputError: the node count is too large, or the batch cannot be split over the ranks.
    """
    target = nodes if nodes is not None else spec.nodes
    held = frozenset(one.partition("=")[0] for one in settings if one[:1] == "-")
    if not 1 <= target <= MOST_NODES:
        raise InputError(
            f"A job cannot have {target:,} nodes.", f"Give a number from 1 to {MOST_NODES:,}."
        )
    spec = changed(spec, {"nodes": target}, f"--nodes {target}")
    spec = _partition(spec, site, notes)
    layout = layout_of(placement_of(spec, site))
    most = max(one.max_nodes for _name, one in site.partitions_from(spec.partition))
    config = written if has_deepspeed(spec) else None
    knows_batch = config is not None or batch_argument(spec) is not None
    if knows_batch and layout.world_size != earlier.layout.world_size and spec.scale is None:
        notes.append("No `scale:` in the job file: global batch and learning rate are kept.")
    if config is None:
        spec = _batch_and_rate(spec, earlier, layout, held, notes, most)
        config_text = written.text if written else None
        return compose(spec, site, deepspeed_config=config_text, dependency=dependency)
    spec, text = _rescale_config(spec, earlier, layout, config, held, notes, most)
    return compose(spec, site, deepspeed_config=text, dependency=dependency)


_FIXED = ("site", "project", "grid", "at_once", "then")
"""Keys that a resubmission cannot change."""


def apply_settings(spec: JobSpec, settings: Sequence[str]) -> JobSpec:
    """Return `spec` with `key=value` settings; a key is a job-file key or an argument.

    Examples: `time=02:00:00`, `env.NCCL_DEBUG=INFO` (a nested key), `--epochs=20`, `args=--lr 1`.

    Raises:
        InputError: an unknown key or an invalid value.
    """
    data: dict[str, Any] = spec.model_dump(mode="json", exclude_defaults=True)
    for setting in settings:
        key, sign, text = setting.partition("=")
        if not sign or not key:
            raise InputError(
                f"{setting!r} is not a setting.", "Write key=value, like --set time=02:00:00."
            )
        if (first := key.partition(".")[0]) in _FIXED:
            raise InputError(
                f"A resubmission is one run, at the site and with the project of its parent, so "
                f"`{first}` cannot be set.",
                "Submit the job file with another value: `lumitui submit JOB`.",
            )
        set_in(data, key, _value(key, text))
    return changed(JobSpec.model_construct(), data, "--set")


def _value(key: str, text: str) -> object:
    """Return a setting's value: lists and mappings in YAML, arguments as in a shell, or text."""
    is_line = key in ("args", "resume")
    if text[:1] == "[" or (text[:1] == "{" and not is_line):
        return Document(f"value: {text}", "--set", plain=True).data["value"]
    try:
        return shlex.split(text) if is_line else text
    except ValueError as error:
        message = f"`{key}` has a quote that is not closed."
        raise InputError(message, "Close it, or write a backslash before it.") from error


def _partition(spec: JobSpec, site: Site, notes: list[str]) -> JobSpec:
    partition_of(spec, site)  # raises an error if the partition does not exist
    gpus = spec.nodes * placement_of(spec, site).gpus_per_node
    steps = list(site.partitions_from(spec.partition))
    for (name, partition), (larger, _) in pairwise(steps):
        limit = partition.too_small(spec.nodes, gpus)
        if not limit:
            break
        notes.append(f"{name} allows {limit}: the job moves to {larger}.")
        spec = changed(spec, {"partition": larger}, "partition")
    most = site.partitions[spec.partition].max_nodes
    if spec.nodes > most:
        raise InputError(
            f"{spec.nodes} nodes are more than {spec.partition} has ({most}).", "Request fewer."
        )
    return spec


def _batch_and_rate(
    spec: JobSpec,
    earlier: Launch,
    layout: RankLayout,
    held: frozenset[str],
    notes: list[str],
    most: int,
) -> JobSpec:
    """Return the job with batch and learning rate arguments changed according to `scale:`.

    The learning rate follows the global batch, whatever changed that: ranks, a rule or a user.
    `held` names the arguments set in this step, which stay, even if set to their old value. `most`
    is the largest number of nodes.
    """
    before, old_world, new_world = earlier.spec, earlier.layout.world_size, layout.world_size
    scale, resized = spec.scale or Scale(), new_world != old_world
    name = batch_argument(spec)
    if name is None:
        ratio = new_world / old_world
        if resized:
            notes.append(
                "Your script's arguments stay the same: if its batch size is per "
                f"{layout.device.noun}, the global batch becomes {ratio:g} times as large. "
                "`scale: {batch: {arg: --batch-size}}` names the argument of the batch size."
            )
        return with_rate(spec, before, ratio if scale.batch.keep == "per_gpu" else 1.0, held, notes)
    text, old = argument_value(spec.args, name), argument_value(before.args, name)
    size, old_size = batches.whole(text), batches.whole(old)
    if not size:
        if not resized:
            return spec
        raise no_number(name, text)
    # How many times the argument the global batch is, before and after.
    old_share, share = (1, 1) if is_batch_global(spec) else (old_world, new_world)
    if resized and old == text and name not in held:
        total = size * old_share
        if scale.batch.keep == "per_gpu":
            if total % old_world:  # what the earlier ranks could not share fits no other number
                each = earlier.layout.ranks_per_node
                raise batches.indivisible("The global batch", total, each, before.nodes, 0)
            total = total * new_world // old_world
        elif total % new_world:
            grows = total % old_world == 0
            each = layout.ranks_per_node
            what = "The global batch" if batches.micro_steps(spec) == 1 else "A micro batch of"
            raise batches.indivisible(what, total, each, spec.nodes, most, grows)
        size = total // share
        spec = with_value(spec, name, str(size))
    if not old_size:
        return spec  # the earlier batch is unknown
    grown = size * share * batches.micro_steps(spec)
    earlier_batch = old_size * old_share * batches.micro_steps(before)
    return with_rate(spec, before, grown / earlier_batch, held, notes)


def _rescale_config(
    spec: JobSpec,
    earlier: Launch,
    layout: RankLayout,
    written: Written,
    held: frozenset[str],
    notes: list[str],
    most: int,
) -> tuple[JobSpec, str]:
    """Return the job and its configuration for the ranks of `layout`, according to `scale:`."""
    scale, world = spec.scale or Scale(), layout.world_size
    ranks = written.ranks or world
    config = batches.read_config(written.text, "the DeepSpeed configuration")
    old = batches.batch_of(config, ranks, 1)
    by_hand = _set_by_hand(spec, earlier.spec, held)
    if by_hand:
        batch = batches.Batch(by_hand * old.accumulation * world, by_hand, old.accumulation)
    else:
        batch = _resized(old, scale, layout, ranks, most)
        spec = _with_micro(spec, earlier, batch.micro, layout, notes)
    config = batches.with_batch(config, batch)
    ratio = batch.train / old.train
    factor = rate_factor(scale, ratio)
    if factor != 1:
        config = learning_rate.scaled(config, factor)
        _note_rates(config, scale, notes)
    if ratio != 1:
        _note_lengths(config, ratio, notes)
    if scale.lr.arg is not None:
        grown = batch.train / (earlier.global_batch or old.train)
        spec = with_rate(spec, earlier.spec, grown, held, notes)
    return spec, json.dumps(config, indent=2) + "\n"


def _resized(
    old: batches.Batch, scale: Scale, layout: RankLayout, ranks: int, most: int
) -> batches.Batch:
    """Return the batch that the rule gives for the ranks of `layout`."""
    world = layout.world_size
    if world == ranks:
        return old
    if scale.batch.keep == "per_gpu":
        return batches.Batch(old.train * world // ranks, old.micro, old.accumulation)
    # The rule applies to the global batch; the micro batch, limited by GPU memory, never grows.
    if old.train % world:
        each = layout.ranks_per_node
        raise batches.indivisible("The global batch", old.train, each, layout.nodes, most, True)
    return batches.split(old.train, world, old.micro)


def _set_by_hand(spec: JobSpec, before: JobSpec, held: frozenset[str]) -> int | None:
    """Return the micro batch if the user set it as the script's argument, else None."""
    name = batch_argument(spec)
    if name is None:
        return None
    text = argument_value(spec.args, name)
    if name not in held and text in (None, argument_value(before.args, name)):
        return None
    micro = batches.whole(text)
    if not micro:
        raise no_number(name, text)
    return micro


def _with_micro(
    spec: JobSpec, earlier: Launch, micro: int, layout: RankLayout, notes: list[str]
) -> JobSpec:
    """Return `spec` with the script's argument equal to DeepSpeed's micro batch."""
    name, sent = batch_argument(spec), sent_config(earlier).get(batches.MICRO)
    if name is None:
        return spec
    text = argument_value(spec.args, name)
    if text is not None and not batches.whole(text):
        raise no_number(name, text)
    if text == str(micro):
        return spec
    if sent is not None and text is not None and batches.whole(text) != sent:
        notes.append(
            f"{name} was {text}, but DeepSpeed's micro batch was {sent}: the script did not "
            "train on the displayed global batch."
        )
    if micro == sent and layout.world_size == earlier.layout.world_size:
        return spec
    return with_value(spec, name, str(micro))


def _note_rates(config: dict[str, object], scale: Scale, notes: list[str]) -> None:
    if not learning_rate.rates(config) and scale.lr.arg is None:
        notes.append(
            "The DeepSpeed configuration has no learning rate: the optimizer keeps its default."
        )
    if learning_rate.depends_on_version(config):
        notes.append(
            "Without `warmup_max_lr`, WarmupLR warms up to the optimizer's rate, but in older "
            "DeepSpeed versions always to 0.001. Set it, so that every version rescales it."
        )


def _note_lengths(config: dict[str, object], ratio: float, notes: list[str]) -> None:
    """Note a schedule's lengths: only the script knows whether it counts steps or epochs."""
    lengths = learning_rate.lengths(config)
    if lengths:
        notes.append(
            "lumitui keeps the schedule's "
            f"{' and '.join(f'{name}={value}' for name, value in lengths.items())}, but an epoch "
            f"now has {1 / ratio:g} times as many steps. If your script trains for a fixed number "
            f"of epochs, divide {'these step counts' if len(lengths) > 1 else 'this step count'} "
            f"by {ratio:g}."
        )
