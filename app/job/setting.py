"""A setting: a key of the job file or an argument of its script, and the value it gets. Pure."""

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
        InputError: `key` is below a key that has none below it.
    """
    if key.startswith("-"):
        data["args"] = list(with_argument(tuple(data.get("args", ())), key, str(value)))
        return
    place = data
    *path, last = key.split(".", 1) if key.startswith("env.") else key.split(".")
    for part in path:
        below = place.setdefault(part, {})
        if not isinstance(below, dict):
            raise InputError(f"{part} has no keys below it.", f"Set {part}= itself.")
        place = below
    place[last] = value


def without_nodes(spec: JobSpec, nodes: str) -> str:
    """Return the setting that keeps a job off `nodes`, and off those that it avoids already.

    Raises:
        InputError: `nodes` is not a list of nodes.
    """
    if not _NODES.fullmatch(nodes):
        raise InputError(
            f"{nodes!r} is not a list of nodes.", "Write names, like nid005001,nid005002."
        )
    rest = [option for option in spec.sbatch if not option.startswith("--exclude=")]
    avoided = [option.partition("=")[2] for option in spec.sbatch if option not in rest]
    others = ",".join(avoided)
    names = others if nodes in others.split(",") else f"{others},{nodes}".strip(",")
    return f"sbatch={json.dumps([*rest, f'--exclude={names}'])}"


def half_batch(spec: JobSpec) -> str:
    """Return the setting that halves the samples of a rank and step.

    Raises:
        InputError: the job file does not say how many there are, or there is only one.
    """
    name = batch_argument(spec)
    if name is None:
        raise InputError(
            "The job file does not say which argument has the batch size.",
            "Add `scale: {batch: {arg: --batch-size}}`; DeepSpeed's batch is in its configuration.",
        )
    text = argument_value(spec.args, name)
    if text is None or not text.isdecimal() or int(text) < 2:
        raise InputError(
            f"The batch size cannot be halved: {name} is {text or 'not among `args:`'}.",
            f"Set it yourself: --set {name}=16.",
        )
    return f"{name}={int(text) // 2}"
