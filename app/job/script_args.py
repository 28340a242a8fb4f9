"""Reads and sets a script's arguments, such as batch size and learning rate. Pure."""

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


def with_value(spec: JobSpec, name: str, value: str) -> JobSpec:
    """Return `spec` with the argument `name` set to `value`, or added."""
    return changed(spec, {"args": list(with_argument(spec.args, name, value))}, "scale")


def batch_argument(spec: JobSpec) -> str | None:
    """Return the argument with the samples per rank and step, if known."""
    bundled = TRAINERS.get(spec.trainer or "")
    own = spec.scale.batch.arg if spec.scale else None
    return own or (bundled.batch_arg if bundled else None)


def rate_argument(spec: JobSpec) -> str | None:
    """Return the argument with the learning rate, if known."""
    bundled = TRAINERS.get(spec.trainer or "")
    own = spec.scale.lr.arg if spec.scale else None
    return own or (bundled.lr_arg if bundled else None)


def no_number(name: str, text: str | None, nodes: int) -> InputError:
    """Return the error for a batch argument that is missing or not a number of samples."""
    return InputError(
        f"`args:` lacks the argument {name} with the batch size."
        if text is None
        else f"The argument {name} is {text!r}, not a number of samples.",
        f"Set it, like {name} 32, so that lumitui can recompute it for {nodes} nodes.",
    )


def fixed_arguments(spec: JobSpec) -> tuple[str, ...]:
    """Return the arguments, with empty values for those that `scale:` changes with the nodes."""
    args = spec.args
    for name in filter(None, (batch_argument(spec), rate_argument(spec))):
        if argument_value(args, name) is not None:
            args = with_argument(args, name, "")
    return args
