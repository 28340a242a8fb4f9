"""More nodes, or fewer: everything that depends on their number is recomputed. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from lumitui.app.job.fields.mapping_fields import Scale
from lumitui.app.job.launch import Launch, Layout
from lumitui.app.job.script_args import (
    argument_value,
    batch_argument,
    no_number,
    with_value,
)
from lumitui.app.job.setting import set_in
from lumitui.app.job.spec import MOST_NODES, JobSpec, changed
from lumitui.app.launch import deepspeed_batch as batches
from lumitui.app.launch.compose import compose
from lumitui.app.launch.deepspeed_batch import has_deepspeed
from lumitui.app.launch.layout import layout_of
from lumitui.app.launch.placement import partition_of, placement_of
from lumitui.app.scale import deepspeed_rescale
from lumitui.app.scale.changes import Change, changes_between
from lumitui.app.scale.learning_rate import with_rate
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.yaml_document import Document


@dataclass(frozen=True)
class Scaled:
    """A launch made ready for other nodes or settings, with what changes."""

    launch: Launch
    changes: tuple[Change, ...]
    notes: tuple[str, ...]


def rescale(
    earlier: Launch,
    site: Site,
    *,
    nodes: int | None = None,
    settings: Sequence[str] = (),
    deepspeed_config: str | None = None,
    config_ranks: int | Literal["new"] | None = None,
) -> Scaled:
    """Return `earlier` on `nodes` nodes, with `key=value` settings, and what changes.

    The time limit never shrinks by itself. `deepspeed_config` is the text of DeepSpeed's
    configuration, where the job needs one. `config_ranks` is the number of ranks that its batch
    and rates are written for: None means those of the earlier launch, and "new" means those of
    the new one, so that it stays as it is.

    Raises:
        InputError: a setting is wrong, or the batch cannot be split over the ranks.
    """
    spec = apply_settings(earlier.spec, settings)
    target = nodes if nodes is not None else spec.nodes
    if not 1 <= target <= MOST_NODES:
        raise InputError(
            f"A job cannot have {target:,} nodes.", f"Give a number from 1 to {MOST_NODES:,}."
        )
    notes: list[str] = []
    spec = changed(spec, {"nodes": target}, f"--nodes {target}")
    spec = _partition(spec, site, notes)
    layout = layout_of(placement_of(spec, site))
    held = frozenset(key for key, _, _ in (s.partition("=") for s in settings) if key[:1] == "-")
    written = None
    if has_deepspeed(spec) and deepspeed_config is not None:
        ranks = layout.world_size if config_ranks == "new" else config_ranks
        written = deepspeed_rescale.Written(deepspeed_config, ranks or earlier.layout.world_size)
    knows_batch = written is not None or batch_argument(spec) is not None
    if knows_batch and layout.world_size != earlier.layout.world_size and spec.scale is None:
        notes.append("No `scale:` in the job file: global batch and learning rate stay.")
    if written:
        spec, deepspeed_config = deepspeed_rescale.rescale_config(
            spec, earlier, layout, written, held, notes
        )
    else:
        spec = _batch_and_rate(spec, earlier, layout, held, notes)
    launch = compose(spec, site, deepspeed_config=deepspeed_config)
    return Scaled(launch, changes_between(earlier, launch), tuple(notes))


def apply_settings(spec: JobSpec, settings: Sequence[str]) -> JobSpec:
    """Return `spec` with `key=value` settings; a key is one of the job file or an argument.

    `time=02:00:00`, `env.NCCL_DEBUG=INFO` (a key below a key) and `--epochs=20` are settings.

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
        set_in(data, key, _value(text))
    return changed(JobSpec.model_construct(), data, "--set")


def _value(text: str) -> object:
    """Return a setting's value: lists and mappings are read as YAML, all else is text."""
    if text[:1] in ("[", "{"):
        return Document(f"value: {text}", "--set", plain=True).data["value"]
    return text


def _partition(spec: JobSpec, site: Site, notes: list[str]) -> JobSpec:
    partition_of(spec, site)  # raises where there is no such partition
    gpus = spec.nodes * placement_of(spec, site).gpus_per_node
    steps = list(site.partitions_from(spec.partition))
    for (name, partition), (larger, _) in pairwise(steps):
        limit = partition.too_small(spec.nodes, gpus)
        if not limit:
            break
        notes.append(f"{name} has {limit}: the job moves to {larger}.")
        spec = changed(spec, {"partition": larger}, "partition")
    most = site.partitions[spec.partition].max_nodes
    if spec.nodes > most:
        raise InputError(
            f"{spec.nodes} nodes are more than {spec.partition} has ({most}).",
            "Ask for fewer.",
        )
    return spec


def _batch_and_rate(
    spec: JobSpec, earlier: Launch, layout: Layout, held: frozenset[str], notes: list[str]
) -> JobSpec:
    """Return the job with its arguments for batch and learning rate changed as `scale:` says.

    The learning rate follows the global batch, whether ranks, a rule or a person changed that.
    `held` names the arguments that the settings of this step set: they stay, even when they were
    set to their old value.
    """
    before, old_world, new_world = earlier.spec, earlier.layout.world_size, layout.world_size
    scale, resized = spec.scale or Scale(), new_world != old_world
    name = batch_argument(spec)
    if name is None:
        ratio = new_world / old_world
        if resized:
            notes.append(
                "Your script's arguments stay as they are: if its batch size is per "
                f"{layout.device.noun}, the global batch becomes {ratio:g} times what it was."
            )
        return with_rate(spec, before, ratio if scale.batch.keep == "per_gpu" else 1.0, held, notes)
    text, old = argument_value(spec.args, name), argument_value(before.args, name)
    per_rank, old_per_rank = batches.whole(text), batches.whole(old)
    if not per_rank:
        if not resized:
            return spec
        raise no_number(name, text, spec.nodes)
    if scale.batch.keep == "global" and old == text and name not in held:
        total = per_rank * old_world
        if total % new_world:
            raise batches.indivisible(
                "The global batch", total, layout.ranks_per_node, spec.nodes, may_grow=True
            )
        per_rank = total // new_world
        spec = with_value(spec, name, str(per_rank))
    if not old_per_rank:
        return spec  # the earlier batch is not known
    ratio = per_rank * new_world / (old_per_rank * old_world)
    return with_rate(spec, before, ratio, held, notes)
