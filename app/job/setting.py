"""A setting: a key of the job file or an argument of its script, with a value. Pure."""

import json
import re
from typing import Any

from lumitui.app.job.script_args import argument_value, batch_argument, with_argument
from lumitui.app.job.spec import JobSpec
from lumitui.remote.site.errors import InputError

_NODES = re.compile(r"[\w.,\[\]-]{1,1000}")


def set_in(data: dict[str, Any], key: str, value: object) -> None:
    """Set `key` in the job file's `data`: `time`, `env.NCCL_DEBUG` or the argument `--lr`.

    Raises:
        InputError: `key` is below a key that is not a mapping.
    """
    if key.startswith("-"):
        data["args"] = list(with_argument(tuple(data.get("args", ())), key, str(value)))
        return
    place = data
    *path, last = key.split(".", 1) if key.startswith("env.") else key.split(".")
    for part in path:
        below = place.setdefault(part, {})
        if not isinstance(below, dict):
            raise InputError(f"{part} is not a mapping.", f"Set {part}= itself.")
        place = below
    place[last] = value


def without_nodes(spec: JobSpec, nodes: str) -> str:
    """Return the setting that excludes `nodes`, besides those that the job excludes already.

    Raises:
        InputError: `nodes` is not a list of nodes.
    """
    if not _NODES.fullmatch(nodes):
        raise InputError(
            f"{nodes!r} is not a list of nodes.", "Write names, like nid005001,nid005002."
        )
    options = [option for option in spec.sbatch if not option.startswith("--exclude=")]
    excluded = [option.partition("=")[2] for option in spec.sbatch if option not in options]
    others = ",".join(excluded)
    names = others if nodes in others.split(",") else f"{others},{nodes}".strip(",")
    return f"sbatch={json.dumps([*options, f'--exclude={names}'])}"


def half_batch(spec: JobSpec) -> str:
    """Return the setting that halves the samples of a rank and step.

    Raises:
        InputError: the job file does not set the batch size, or it is 1.
    """
    name = batch_argument(spec)
    if name is None:
        raise InputError(
            "The job file does not name the argument with the batch size.",
            "Set `scale: {batch: {arg: --batch-size}}`. For DeepSpeed, edit its configuration.",
        )
    text = argument_value(spec.args, name)
    if text is None or not text.isdecimal() or int(text) < 2:
        raise InputError(
            f"Cannot halve the batch size: {name} is {text or 'not in `args:`'}.",
            f"Set it yourself: --set {name}=16.",
        )
    return f"{name}={int(text) // 2}"
