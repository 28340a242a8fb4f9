"""A setting with its value: a key of the job file, or an argument of its script. Pure."""

import json
import re
from collections.abc import Collection
from typing import Any

from lumitui.app.job.spec import JobSpec, changed
from lumitui.app.job.strategies import TRAINERS
from lumitui.remote.site.errors import InputError


def argument_value(args: tuple[str, ...], name: str) -> str | None:
    """Return the value of `name` in `args` (`--lr 0.1` or `--lr=0.1`; the last one counts)."""
    value = None
    for index, word in enumerate(args):
        if word == name and index + 1 < len(args):
            value = args[index + 1]
        elif word.startswith(f"{name}="):
            value = word[len(name) + 1 :]
    return value


def with_argument(args: tuple[str, ...], name: str, value: str) -> tuple[str, ...]:
    """Return `args` with the option `name` set to `value`, or added."""
    words = list(args)
    for index in range(len(words) - 1, -1, -1):
        if words[index] == name and index + 1 < len(words):
            words[index + 1] = value
            return tuple(words)
        if words[index].startswith(f"{name}="):
            words[index] = f"{name}={value}"
            return tuple(words)
    return (*args, name, value)


def without_arguments(args: tuple[str, ...], names: Collection[str]) -> tuple[str, ...]:
    """Return `args` without the options `names` and their values."""
    kept, skips = list[str](), False
    for word in args:
        if not skips and word.partition("=")[0] not in names:
            kept.append(word)
        skips = not skips and word in names
    return tuple(kept)


def with_value(spec: JobSpec, name: str, value: str) -> JobSpec:
    """Return `spec` with the argument `name` set to `value`, or added."""
    return changed(spec, {"args": list(with_argument(spec.args, name, value))}, "scale")


def batch_argument(spec: JobSpec) -> str | None:
    """Return the argument with the samples of a step, per rank or of all ranks, if known."""
    bundled = TRAINERS.get(spec.trainer or "")
    own = spec.scale.batch.arg if spec.scale else None
    return own or (bundled.batch_arg if bundled else None)


def is_batch_global(spec: JobSpec) -> bool:
    """Return whether the batch argument counts the samples of all ranks together."""
    return spec.scale is not None and spec.scale.batch.arg_is == "global"


def rate_argument(spec: JobSpec) -> str | None:
    """Return the argument with the learning rate, if known."""
    bundled = TRAINERS.get(spec.trainer or "")
    own = spec.scale.lr.arg if spec.scale else None
    return own or (bundled.lr_arg if bundled else None)


def no_number(name: str, text: str | None) -> InputError:
    """Return the error for a batch argument that is missing or not a number of samples."""
    return InputError(
        f"`args:` lacks the argument {name}, which sets the batch size."
        if text is None
        else f"The argument {name} is {text!r}, not a number of samples.",
        f"Set it to 1 to 99,999,999, like {name} 32: lumitui recomputes it for other node counts.",
    )


def fixed_arguments(spec: JobSpec) -> tuple[str, ...]:
    """Return the arguments, with empty values for those that `scale:` changes with the nodes."""
    args = spec.args
    for name in filter(None, (batch_argument(spec), rate_argument(spec))):
        if argument_value(args, name) is not None:
            args = with_argument(args, name, "")
    return args


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
    """Return the setting that also excludes `nodes`; InputError if that is no list of nodes."""
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
    """Return the setting that halves the samples of a step; InputError if it is 1 or not set."""
    name = batch_argument(spec)
    if name is None:
        raise InputError(
            "The job file does not name the argument that sets the batch size.",
            "Set `scale: {batch: {arg: --batch-size}}`. For DeepSpeed, edit its configuration.",
        )
    text = argument_value(spec.args, name)
    if text is None or not text.isdecimal() or int(text) < 2:
        raise InputError(
            f"Cannot halve the batch size: {name} is {text or 'not in `args:`'}.",
            f"Set it yourself: --set {name}=16.",
        )
    return f"{name}={int(text) // 2}"
