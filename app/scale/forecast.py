"""A job's likely cost, from an earlier run of the same work.

The time limit gives only the maximum cost.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumitui.app.job.setting import fixed_arguments
from lumitui.app.scale.scaling.model import Estimate
from lumitui.app.scale.scaling.sent_work import training_keys
from lumitui.remote.site.errors import LumiError
from lumitui.remote.site.states import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lumitui.app.history.history import History
    from lumitui.app.history.run import Run
    from lumitui.app.job.launch import Launch
    from lumitui.app.scale.scaling.studies import Scalings

_LOOKED = 200
"""Number of a site's newest runs to search for one of the same work."""


@dataclass(frozen=True)
class Forecast:
    """A job's likely cost, in the unit of its price."""

    amount: Estimate
    run: str
    """The newest run it is based on."""
    runs: int
    """Number of runs it is based on."""
    other_size: bool
    """Whether that run had a different number of nodes, so that its scaling is used."""


def forecast(launch: Launch, history: History, scalings: Scalings) -> Forecast | None:
    """Return the likely cost of `launch`; None if no run of that name did the same work."""
    if not launch.price.amount:
        return None
    named = [
        run
        for run in history.page(limit=_LOOKED, site=launch.spec.site, state=State.DONE)
        if run.name == launch.spec.name and run.resumed_from is None and _readable(run)
    ]
    nodes = launch.layout.nodes
    work = _work(launch, sized=True)
    equal = [one for one in named if one.layout.nodes == nodes and _work(one, sized=True) == work]
    if same := [one for one in equal if one.snapshot == equal[0].snapshot]:
        took = [one.ran(time.time()) for one in same]
        return _found(launch, Estimate(min(took), max(took), None), same, other_size=False)
    work = _work(launch, sized=False)
    alike = (one for one in named if one.layout.nodes != nodes and _work(one, sized=False) == work)
    other = next(alike, None)
    return _by_scaling(launch, other, scalings) if other else None


def _readable(run: Run) -> bool:
    try:
        return bool(run.spec.name)
    except LumiError:
        return False


def _work(item: Launch | Run, *, sized: bool) -> dict[str, object]:
    """Return the work of a job and its kind of node.

    Unless `sized`, omits batch and learning rate, which a `scale:` rule changes with the nodes.
    """
    args = item.spec.args if sized else fixed_arguments(item.spec)
    return training_keys(item.spec) | {"args": args, "ranks": item.layout.ranks_per_node}


def _by_scaling(launch: Launch, run: Run, scalings: Scalings) -> Forecast | None:
    from lumitui.app.scale.scaling.studies import ScalingQuestion

    try:
        ratio = scalings.work_of(launch, run)
        question = ScalingQuestion(nodes=(launch.layout.nodes,), times=ratio)
        scaling = scalings.of(run.id, question)
    except LumiError:
        return None
    size = next((one for one in scaling.sizes if one.nodes == launch.layout.nodes), None)
    if ratio is None or size is None or size.whole is None or not scaling.knows_work:
        return None
    return _found(launch, size.whole.seconds, [run], other_size=True)


def _found(
    launch: Launch, seconds: Estimate, runs: Sequence[Run], *, other_size: bool
) -> Forecast | None:
    """Return the forecast; None if it is not below the cost at the time limit."""
    amount = seconds.each(lambda each: each * launch.price.per_hour / 3600)
    if not 0 < amount.middle < launch.price.amount:
        return None
    return Forecast(amount, runs[0].id, len(runs), other_size)
