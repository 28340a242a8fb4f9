"""The script's own arguments for batch and learning rate, and how they are set anew. Pure."""

import math

from lumitui.app import rates
from lumitui.app.compose import argument_value
from lumitui.app.job import JobSpec, Scale, changed
from lumitui.app.strategies import TRAINERS
from lumitui.remote.errors import InputError


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


def with_value(spec: JobSpec, name: str, value: str) -> JobSpec:
    """Return `spec` with the argument `name` set to `value`, added when it was not there."""
    return changed(spec, {"args": list(with_argument(spec.args, name, value))}, "scale")


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


def rate_factor(scale: Scale, ratio: float) -> float:
    """Return what the rate is multiplied with when the global batch grows by `ratio`."""
    if scale.lr.rule == "linear":
        return ratio
    return math.sqrt(ratio) if scale.lr.rule == "sqrt" else 1.0


def no_number(name: str, text: str | None, nodes: int) -> InputError:
    """Return the error for a batch argument that is missing or says no number of samples."""
    return InputError(
        f"The argument {name} with the batch size is not among `args:`."
        if text is None
        else f"The argument {name} is {text!r}, not a number of samples.",
        f"Give it ({name} 32), so that it can be recomputed for {nodes} nodes.",
    )


def with_rate(
    spec: JobSpec, before: JobSpec, ratio: float, held: frozenset[str], notes: list[str]
) -> JobSpec:
    """Return `spec` with the argument of the learning rate as a global batch `ratio` times asks.

    Arguments in `held`, and those that differ from `before`, were set by hand and stay.

    Raises:
        InputError: the argument is missing or no number.
    """
    scale = spec.scale or Scale()
    name, factor = rate_argument(spec), rate_factor(scale, ratio)
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
    return with_value(spec, name, f"{rates.times(rate, factor):.10g}")
