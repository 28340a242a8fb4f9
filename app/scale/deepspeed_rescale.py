"""DeepSpeed's configuration rescaled when ranks, batch or the file itself change. Pure.

An argument named in `scale.batch.arg` is the number of samples that the script loads per rank and
micro step, which is DeepSpeed's micro batch: both are kept equal, since the script would otherwise
train on another global batch than the one that is shown.
"""

import json
from dataclasses import dataclass

from lumitui.app.job.fields.mapping_fields import Scale
from lumitui.app.job.launch import Launch, Layout
from lumitui.app.job.script_args import argument_value, no_number, with_value
from lumitui.app.job.spec import JobSpec
from lumitui.app.launch import deepspeed_batch as batches
from lumitui.app.launch.deepspeed_batch import sent_config
from lumitui.app.scale import learning_rate
from lumitui.app.scale.learning_rate import rate_factor, with_rate


@dataclass(frozen=True)
class Written:
    """A DeepSpeed configuration, and the number of ranks that it was written for."""

    text: str
    ranks: int


def rescale_config(
    spec: JobSpec,
    earlier: Launch,
    layout: Layout,
    written: Written,
    held: frozenset[str],
    notes: list[str],
) -> tuple[JobSpec, str]:
    """Return the job and its configuration for the ranks of `layout`, as `scale:` says.

    `held` names the arguments that the settings of this step set; what a person should know is
    added to `notes`.

    Raises:
        InputError: the batch cannot be split over the ranks, or is no number.
    """
    scale, world = spec.scale or Scale(), layout.world_size
    config = batches.read_config(written.text, "the DeepSpeed configuration")
    old = batches.batch_of(config, written.ranks, 1)
    by_hand = _set_by_hand(spec, earlier.spec, held)
    if by_hand:
        batch = batches.Batch(by_hand * old.accumulation * world, by_hand, old.accumulation)
    else:
        batch = _resized(old, scale, layout, written.ranks, spec.nodes)
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
    old: batches.Batch, scale: Scale, layout: Layout, ranks: int, nodes: int
) -> batches.Batch:
    """Return the batch that the rule asks for on the ranks of `layout`."""
    world = layout.world_size
    if world == ranks:
        return old
    if scale.batch.keep == "per_gpu":
        return batches.Batch(old.train * world // ranks, old.micro, old.accumulation)
    # The global batch is what counts; the micro batch, which fills a GPU's memory, never grows.
    if old.train % world:
        raise batches.indivisible(
            "The global batch", old.train, layout.ranks_per_node, nodes, may_grow=True
        )
    return batches.split(old.train, world, old.micro)


def _argument(spec: JobSpec) -> str | None:
    return spec.scale.batch.arg if spec.scale else None


def _set_by_hand(spec: JobSpec, before: JobSpec, held: frozenset[str]) -> int | None:
    """Return the micro batch that a person set as the script's argument; None: nobody did."""
    name = _argument(spec)
    if name is None:
        return None
    text = argument_value(spec.args, name)
    if name not in held and text in (None, argument_value(before.args, name)):
        return None
    micro = batches.whole(text)
    if not micro:
        raise no_number(name, text, spec.nodes)
    return micro


def _with_micro(
    spec: JobSpec, earlier: Launch, micro: int, layout: Layout, notes: list[str]
) -> JobSpec:
    """Return `spec` with the script's argument equal to DeepSpeed's micro batch."""
    name, sent = _argument(spec), sent_config(earlier).get(batches.MICRO)
    if name is None:
        return spec
    text = argument_value(spec.args, name)
    if text is not None and not batches.whole(text):
        raise no_number(name, text, spec.nodes)
    if text == str(micro):
        return spec
    if sent is not None and text is not None and batches.whole(text) != sent:
        notes.append(
            f"{name} was {text} where DeepSpeed's micro batch was {sent}: the script did not "
            "train on the global batch that was shown."
        )
    if micro == sent and layout.world_size == earlier.layout.world_size:
        return spec
    return with_value(spec, name, str(micro))


def _note_rates(config: dict[str, object], scale: Scale, notes: list[str]) -> None:
    if not learning_rate.rates(config) and scale.lr.arg is None:
        notes.append(
            "The DeepSpeed configuration names no learning rate: the optimizer's own stays."
        )
    if learning_rate.depends_on_version(config):
        notes.append(
            "Without `warmup_max_lr`, WarmupLR warms up to the optimizer's rate, but in older "
            "DeepSpeed always to 0.001: set it, so that it is rescaled in every version."
        )


def _note_lengths(config: dict[str, object], ratio: float, notes: list[str]) -> None:
    """Note a schedule's lengths: only the script knows whether it counts steps or epochs."""
    lengths = learning_rate.lengths(config)
    if lengths:
        notes.append(
            f"The schedule's {', '.join(f'{name} {value}' for name, value in lengths.items())} "
            f"stay, while an epoch has {1 / ratio:g} times the steps: if your script counts "
            f"epochs, divide them by {ratio:g}."
        )
