"""The samples of a step, from a program whose batch size the job file does not name. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from lumitui.app.job.fields.mapping_fields import BatchRule, Scale
from lumitui.app.job.launch import RankLayout
from lumitui.app.job.setting import argument_value, batch_argument, with_argument
from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.compose import global_batch_of
from lumitui.app.launch.deepspeed_batch import has_deepspeed
from lumitui.app.launch.draft.printed_series import scaled_options


@dataclass(frozen=True)
class AssumedBatch:
    """A batch size that the program takes, counted per rank."""

    argument: str
    """With its value: `--batch-size 32`."""
    samples: int
    """Of a step, over all ranks."""


def assumed_batch(
    spec: JobSpec, layout: RankLayout, defaults: Mapping[str, str]
) -> AssumedBatch | None:
    """Return the batch that the arguments of `spec` or the program's `defaults` give.

    None if `scale:` or DeepSpeed sets it, if the program has no such option, or if its name says
    that it counts the samples of all ranks.
    """
    if batch_argument(spec) or has_deepspeed(spec):
        return None
    given = [word.partition("=")[0] for word in spec.args]
    name = scaled_options(given).get("batch") or scaled_options(list(defaults)).get("batch")
    if not name or "global" in name:
        return None
    value = argument_value(spec.args, name) or defaults.get(name)
    if value is None:
        return None
    args, scale = with_argument(spec.args, name, value), Scale(batch=BatchRule(arg=name))
    samples = global_batch_of(spec.model_copy(update={"args": args, "scale": scale}), layout)
    return AssumedBatch(f"{name} {value}", samples) if samples else None
