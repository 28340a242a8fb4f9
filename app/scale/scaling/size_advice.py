"""The recommended size for a deadline, a budget, or neither. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lumitui.app.explain.words import count, length, price, units
from lumitui.app.scale.scaling.study import Cost, Scaling, ScalingSize
from lumitui.remote.site import walltime
from lumitui.remote.site.errors import InputError

WORTHWHILE = 75.0
"""Minimum efficiency in percent of a size recommended without a deadline: a choice.

It applies to the training steps and to the whole run, as the price on the smallest measured size
over the price at the size: starting a run costs more on more nodes, and gets no faster.
"""
_LENGTH = re.compile(r"^(?P<number>\d{1,9}(?:\.\d{1,6})?) ?(?P<unit>[smhd])$", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class SizeGoal:
    """The limits for the size; without any, the largest worthwhile size is recommended."""

    deadline: float | None = None
    """Maximum seconds for the work."""
    budget: float | None = None
    """Its maximum price, in the site's billing unit."""


@dataclass(frozen=True)
class SizeAdvice:
    """A recommended size, its certainty, and the reason."""

    nodes: int | None
    """None if no size meets the goal, or none was measured."""
    certainty: str
    """`measured`, `sure`, `likely`, `at best` or `none`."""
    sentence: str


def seconds_in(text: str) -> float:
    """Return the seconds of a duration: `6h`, `90m`, `1.5d`, or one of Slurm's forms.

    Raises:
        InputError: `text` is not a duration.
    """
    if match := _LENGTH.match(text.strip()):
        return float(match["number"]) * _SECONDS[match["unit"]]
    try:
        return float(walltime.seconds_of(text))
    except ValueError as error:
        raise InputError(
            f"{text!r} is not a duration.", "Write 6h, 90m, 2d or 06:00:00."
        ) from error


def advise_size(scaling: Scaling, goal: SizeGoal) -> SizeAdvice:
    """Return the recommended size for `goal`."""
    sizes = [size for size in scaling.sizes if size.whole and not size.refused]
    if not sizes:
        why = "lumitui has not measured any size yet, so it cannot recommend one."
        return SizeAdvice(None, "none", why)
    if goal.deadline is None and goal.budget is None:
        return _worthwhile(scaling, sizes)
    for certainty, end in (("sure", "high"), ("likely", "likely"), ("at best", "low")):
        fitting = [size for size in sizes if size.whole and _keeps(size.whole, goal, end)]
        if fitting:
            faster = _tempting(sizes, goal)
            advice = _chosen(fitting, goal, certainty, _limits(goal, scaling.unit))
            why = faster if certainty == "sure" and goal.deadline is None else ""
            return replace(advice, sentence=f"{advice.sentence}{why}")
    over, do = count(sizes[-1].nodes, "node"), "Allow more time, or train fewer samples."
    if goal.budget is not None:
        do = "Train fewer samples, or allow a larger budget."
    why = f"No size up to {over} stays within {_limits(goal, scaling.unit)}. {do}"
    return SizeAdvice(None, "none", why)


def _limits(goal: SizeGoal, unit: str) -> str:
    """Return the limits given: `6 h 00 min and 500 GPU-hours`."""
    deadline = "" if goal.deadline is None else length(goal.deadline)
    budget = "" if goal.budget is None else units(price(goal.budget), unit)
    return " and ".join(filter(None, (deadline, budget)))


def _keeps(cost: Cost, goal: SizeGoal, end: str) -> bool:
    seconds, price = getattr(cost.seconds, end), getattr(cost.price, end)
    if seconds is None or price is None:
        return False
    late = goal.deadline is not None and seconds > goal.deadline
    return not late and (goal.budget is None or price <= goal.budget)


def _tempting(sizes: Sequence[ScalingSize], goal: SizeGoal) -> str:
    """Return a sentence on the size that probably keeps a budget, but may not; '' without one."""
    for size in reversed(sizes):
        if size.whole and _keeps(size.whole, goal, "likely"):
            if _keeps(size.whole, goal, "high"):
                return ""
            low, high = price(size.whole.price.low), price(size.whole.price.high)
            return f" {count(size.nodes, 'node')} may exceed it: the prediction is {low} to {high}."
    return ""


def _chosen(
    fitting: Sequence[ScalingSize], goal: SizeGoal, certainty: str, limits: str
) -> SizeAdvice:
    """Return the cheapest size for a deadline, or the fastest for only a budget."""

    def order(size: ScalingSize) -> tuple[float, float, int]:
        assert size.whole is not None
        if goal.deadline is None:
            return size.whole.seconds.middle, 0.0, size.nodes
        return size.whole.price.middle, size.whole.gpu_hours.middle, size.nodes

    size = min(fitting, key=order)
    how = "fastest" if goal.deadline is None else "cheapest"
    why = {
        "sure": f"It is the {how} size that is almost certain to stay within {limits}.",
        "likely": f"It will probably stay within {limits}, but no size is certain to.",
        "at best": f"It stays within {limits} only if it runs better than predicted.",
    }[certainty]
    sure = "measured" if certainty == "sure" and size.measured else certainty
    return SizeAdvice(size.nodes, sure, why)


def _worthwhile(scaling: Scaling, sizes: Sequence[ScalingSize]) -> SizeAdvice:
    """Return the largest size in the run's partition that is known to be worth its price."""
    base = next((size for size in sizes if size.measured), sizes[0])
    staying = [size for size in sizes if not scaling.moves_to(size)]
    efficient = [size for size in staying if _at_least(size) >= WORTHWHILE]
    if alone := len({size.gpus for size in scaling.measured}) < 2:
        efficient = [size for size in efficient if size.measured]  # an unchecked prediction
    paying = [size for size in efficient if not scaling.knows_work or _pays(size, base)]
    chosen = paying[-1] if paying else base
    why = f"No larger size is known to reach an efficiency of {WORTHWHILE:.0f} %."
    if alone:
        why = "This is the only measured size: run one more before you use more nodes."
    elif chosen == base:
        why = f"No larger size is certain to keep an efficiency of {WORTHWHILE:.0f} %."
    more = _too_dear(next((size for size in efficient if size.nodes > chosen.nodes), None), base)
    if more and chosen == base:
        why = ""  # it is efficient enough, but the run is too short for it
    elif more:  # `eff.` in the table is of the steps alone
        why = (
            "This is the largest size at which the whole run, including start and end, has an "
            f"efficiency of at least {WORTHWHILE:.0f} %."
        )
    if not more and not alone:
        more = _unknown([size for size in staying if size.nodes > chosen.nodes])
    certainty = "measured" if chosen.measured else "sure"
    return SizeAdvice(chosen.nodes, certainty, " ".join(filter(None, (why, more))))


def _at_least(size: ScalingSize) -> float:
    """Return the certain efficiency: measured, or the low end of a prediction."""
    if size.efficiency is None:
        return 0.0
    return size.efficiency.middle if size.measured else size.efficiency.low


def _paid(size: ScalingSize) -> float:
    """Return the price of the whole run, or its GPU-hours if nothing is billed."""
    if size.whole is None:
        return 0.0
    return size.whole.price.middle or size.whole.gpu_hours.middle


def _pays(size: ScalingSize, base: ScalingSize) -> bool:
    return _paid(size) * WORTHWHILE <= 100 * _paid(base) * (1 + 1e-9)


def _too_dear(size: ScalingSize | None, base: ScalingSize) -> str:
    """Return a sentence on the time `size` would save and its extra price; '' without a size."""
    if size is None or size.whole is None or base.whole is None or not _paid(base):
        return ""
    saved = base.whole.seconds.middle - size.whole.seconds.middle
    took = f"the {length(base.whole.seconds.middle + 0.5)} on {count(base.nodes, 'node')}"
    differs = length(abs(saved) + 0.5)
    if abs(saved) < 1:
        saves = f"would take as long as {took},"
    else:
        saves = (
            f"would save {differs} of {took}" if saved > 0 else f"would add {differs} to {took},"
        )
    kept = f"keep {_at_least(size):.0f} % efficiency in their steps, but"
    return (
        f"{count(size.nodes, 'node')} {kept} {saves} for {_paid(size) / _paid(base):,.1f} times "
        "the price: more nodes pay off only for longer training."
    )


def _unknown(sizes: Sequence[ScalingSize]) -> str:
    """Return a sentence on the sizes whose efficiency may suffice; '' if there are none."""
    open_ = [
        size.efficiency
        for size in sizes
        if size.efficiency and _at_least(size) < WORTHWHILE <= size.efficiency.high
        if not size.measured
    ]
    if not open_:
        return ""
    low, high = min(each.low for each in open_), max(each.high for each in open_)
    return (
        f"lumitui cannot tell whether larger sizes reach {WORTHWHILE:.0f} %: it predicts {low:.0f} "
        f"to {high:.0f} %. Run one of them to find out."
    )
