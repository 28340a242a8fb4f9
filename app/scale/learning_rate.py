"""Learning rates in arguments and DeepSpeed configurations, and their scaling. Pure.

Source: microsoft/DeepSpeed, deepspeed/runtime/lr_schedules.py. A rate given as a ratio of the
optimizer's rate (WarmupCosineLR) needs no change.
"""

import copy
import math
from collections.abc import Iterator

from lumitui.app.job.fields.mapping_fields import Scale
from lumitui.app.job.setting import argument_value, rate_argument, with_value
from lumitui.app.job.spec import JobSpec
from lumitui.remote.site.errors import InputError

_SCHEDULES: dict[str, dict[str, float | None]] = {
    "WarmupLR": {"warmup_max_lr": None},
    "WarmupDecayLR": {"warmup_max_lr": 0.001},
    "OneCycle": {"cycle_min_lr": None, "cycle_max_lr": None},
}
"""The rates that each schedule sets, with defaults; None: the optimizer's rate."""

_LENGTHS = ("total_num_steps", "warmup_num_steps", "lr_range_test_step_size", "decay_step_size",
            "cycle_first_step_size", "cycle_second_step_size")  # fmt: skip
"""Schedule lengths, counted in optimizer steps."""

_OWN = "auto"
"""The value of an argument whose program chooses the rate itself, as in DeepSpeed."""
Config = dict[str, object]


def rates(config: Config) -> dict[str, object]:
    """Return the learning rates in `config`: numbers, or a list by parameter group."""
    return {name: place[name] for place, name in _places(config) if _scalable(place.get(name))}


def scaled(config: Config, factor: float) -> Config:
    """Return `config` with all its learning rates multiplied."""
    config = copy.deepcopy(config)
    schedule = config.get("scheduler")
    if isinstance(schedule, dict):
        schedule.setdefault("params", {})
    for place, name in _places(config):
        value = place.get(name)
        if value is None:
            value = _SCHEDULES.get(_type(config), {}).get(name)
        if isinstance(value, list):
            place[name] = [times(item, factor) for item in value]
        elif value is not None and is_number(value):
            place[name] = times(value, factor)
    return config


def lengths(config: Config) -> dict[str, object]:
    """Return the lengths of the schedule in `config`, in optimizer steps."""
    parameters = _parameters(config, "scheduler") or {}
    return {name: parameters[name] for name in _LENGTHS if is_number(parameters.get(name))}


def depends_on_version(config: Config) -> bool:
    """Return whether the schedule's rate in `config` depends on the DeepSpeed version.

    The default of WarmupLR's `warmup_max_lr` was 0.001; now it is the optimizer's rate.
    """
    parameters = _parameters(config, "scheduler") or {}
    return _type(config) == "WarmupLR" and parameters.get("warmup_max_lr") is None


def times(value: object, factor: float) -> float:
    """Return a rate multiplied by `factor`, without the noise of binary fractions.

    A product that ten digits give exactly has no more, so that a way back leads to the same rate.

    Raises:
        InputError: the product does not fit a float.
    """
    exact = float(str(value)) * factor
    short = float(f"{exact:.10g}")  # very large numbers round to infinity
    product = short if math.isclose(short, exact, rel_tol=1e-13) else float(f"{exact:.15g}")
    if not math.isfinite(product):
        raise InputError(
            f"The learning rate {value} cannot be multiplied by {factor:g}.", "Give a smaller rate."
        )
    return product


def is_number(value: object) -> bool:
    """Return whether `value` is a finite number, or the text of one."""
    if isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(str(value)))
    except ValueError:
        return False


def _scalable(value: object) -> bool:
    return all(map(is_number, value)) if isinstance(value, list) else is_number(value)


def _places(config: Config) -> Iterator[tuple[Config, str]]:
    """Yield each mapping that may contain a rate, with the rate's name."""
    optimizer = _parameters(config, "optimizer")
    if optimizer is not None:
        yield optimizer, "lr"
    schedule = _parameters(config, "scheduler")
    if schedule is not None:
        for name in _SCHEDULES.get(_type(config), {}):
            yield schedule, name


def _type(config: Config) -> str:
    section = config.get("scheduler")
    return str(section.get("type")) if isinstance(section, dict) else ""


def _parameters(config: Config, section: str) -> Config | None:
    inside = config.get(section)
    if not isinstance(inside, dict):
        return None
    parameters = inside.get("params")
    return parameters if isinstance(parameters, dict) else None


def rate_factor(scale: Scale, ratio: float) -> float:
    """Return the factor for the learning rate if the global batch grows by `ratio`."""
    if scale.lr.rule == "linear":
        return ratio
    return math.sqrt(ratio) if scale.lr.rule == "sqrt" else 1.0


def with_rate(
    spec: JobSpec, before: JobSpec, ratio: float, held: frozenset[str], notes: list[str]
) -> JobSpec:
    """Return `spec` with the learning rate for a global batch `ratio` times as large.

    Arguments in `held`, and those that differ from `before`, are the user's and stay.

    Raises:
        InputError: the argument is missing or not a number.
    """
    scale = spec.scale or Scale()
    name, factor = rate_argument(spec), rate_factor(scale, ratio)
    rate = argument_value(spec.args, name) if name else None
    wrong = rate is not None and rate != _OWN and not is_number(rate)
    if wrong and (factor != 1 or name in held):
        raise InputError(
            f"The argument {name} is {rate!r}, not a learning rate.",
            f"Set it to a number, like {name} 0.001, or to {_OWN}, which lumitui does not change.",
        )
    if factor == 1 or name in held:
        return spec
    if name is None:
        notes.append(
            f"`scale.lr.rule` is {scale.lr.rule}, but `lr.arg` is not set: the learning rate "
            "stays the same."
        )
        return spec
    if rate is None:
        raise InputError(
            f"The argument {name}, which sets the learning rate, is not in `args:`.",
            f"Add it ({name} 0.001), so that `scale.lr` can change it.",
        )
    if argument_value(before.args, name) != rate:
        return spec  # a user set it, with all of `args`
    if rate == _OWN:
        notes.append(f"{name} stays {_OWN}: the program chooses the rate for the new global batch.")
        return spec
    return with_value(spec, name, f"{times(rate, factor):.15g}")
