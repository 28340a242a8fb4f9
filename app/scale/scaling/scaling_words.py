"""The scaling of a training run as rows and sentences, the same in CLI and TUI. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import compress

from lumitui.app.explain import words
from lumitui.app.scale.scaling.model import Estimate
from lumitui.app.scale.scaling.size_advice import SizeAdvice
from lumitui.app.scale.scaling.step_time import StepModel
from lumitui.app.scale.scaling.study import Cost, Scaling, ScalingSize

PREDICTED = "predicted"
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class ScalingTable:
    """A row for each size."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def table(scaling: Scaling, *, speed_up: bool = True) -> ScalingTable:
    """Return a row for each size, with the time and price of `scaling.whole`.

    `speed_up`: also show this column. The hours of GPUs are shown only if nothing is billed: sites
    count what they bill in other hours, such as those of a card with two GPUs.
    """
    titles = (
        "nodes", scaling.device.plural, "samples/s", "between", "speed-up", "eff.", "time",
        scaling.device.hours, "billed", "measured from",
    )  # fmt: skip
    rows = tuple(_row(size) for size in scaling.sizes)
    priced = any(size.offer and size.offer.per_hour for size in scaling.sizes)
    dropped = {scaling.device.hours if priced else "billed", "" if speed_up else "speed-up"}
    kept = [title not in dropped for title in titles]
    return ScalingTable(
        tuple(compress(titles, kept)), tuple(tuple(compress(row, kept)) for row in rows)
    )


def _row(size: ScalingSize) -> tuple[str, ...]:
    start = (f"{size.nodes:,}", f"{size.gpus:,}")
    if size.speed is None or size.whole is None:
        return (*start, *("-",) * 7, size.refused or "-")
    wide = size.speed.high / size.speed.low > 1.0005
    return (
        *start,
        _speed(size),
        f"{short(size.speed.low)}-{short(size.speed.high)}" if wide else "-",
        f"{expected(size, size.speed_up, short)} x",
        efficiency(size),
        expected(size, size.whole.seconds, time_text),
        expected(size, size.whole.gpu_hours, price_cell),
        expected(size, size.whole.price, price_cell) if size.offer and size.offer.per_hour else "-",
        size.source or size.refused or PREDICTED,
    )


def efficiency(size: ScalingSize) -> str:
    """Return the efficiency; a prediction is an interval, because one number looks certain."""
    value = size.efficiency
    if value is None or size.measured:
        return percent(value)
    return percent(Estimate(value.low, value.high, None))


def _speed(size: ScalingSize) -> str:
    if size.speed is None or size.speed.likely is None:
        return "-"
    return expected(size, size.speed, words.rate if size.measured else short)


def heading(scaling: Scaling) -> str:
    """Return the work and the baseline of the table."""
    if not scaling.measured:
        return scaling.unmeasured
    first = scaling.measured[0]
    priced = any(size.offer and size.offer.per_hour for size in scaling.sizes)
    columns = f"Time and billed {scaling.unit} are" if priced else "Time is"
    return (
        f"{columns} for {scaling.whole.words}; speed-up and efficiency over all "
        f"runs on {words.count(first.nodes, 'node')}; ~: predicted."
    )


def basis(scaling: Scaling) -> str:
    """Return the basis of the predictions in one or two sentences."""
    count, share = len({size.gpus for size in scaling.measured}), scaling.serial_share
    if not count:
        return ""
    if scaling.steps is not None:
        text = _step_basis(scaling.steps, scaling.measured[0])
        return f"{text} {_under_way(scaling) or 'To check it, run one more size.'}"
    if count == 1 or share is None:
        return (
            "Only one size was measured, so each other size is a range from no speed-up to ideal "
            f"scaling. {_under_way(scaling) or 'Run one more size for a prediction.'}"
        )
    if scaling.falls:
        speeds = [(size.speed.middle, size.nodes) for size in scaling.measured if size.speed]
        (best, nodes), (last, most) = max(speeds), speeds[-1]
        return (
            f"More nodes are slower: {words.rate(best)} samples/s on "
            f"{words.count(nodes, 'node')}, {words.rate(last)} on {most:,}. Larger sizes are "
            "therefore a range up to the latter speed."
        )
    percent = float(f"{100 * share:.2g}")  # 100, where `.2g` alone says 1e+02
    still = f"{percent:g} % of the time on {words.count(scaling.measured[0].nodes, 'node')}"
    law = f"The prediction is Amdahl's law, fitted to {_number(count)} sizes: {still} stays, "
    law += f"however many {scaling.device.plural} there are."
    if count == 2:
        do = _under_way(scaling) or "Run a third size to check it."
        return f"{law} With two, other sizes are a rough guess. {do}"
    return f"{law} 8 of 10 runs should lie within its interval."


def _under_way(scaling: Scaling) -> str:
    """Return which further sizes are sent already; '' if none is."""
    return f"Another size is under way: {', '.join(scaling.awaited)}." if scaling.awaited else ""


def _step_basis(steps: StepModel, size: ScalingSize) -> str:
    step, exchange = steps.calibrated, steps.exchange
    text = f"A step on {words.count(size.nodes, 'node')} takes {_milliseconds(step.seconds)}"
    each = exchange.bytes * exchange.passes / 1e6
    in_node, between = exchange.links.in_node, exchange.links.between_nodes
    rates = f"{in_node:g} GB/s in a node and {between:g} GB/s between nodes"
    links = f", at {rates}."
    if steps.measured.wire is not None:
        text += f", of which the run waited {_milliseconds(step.exposed)} for gradients, as "
        text += f"measured ({_milliseconds(step.exchange)} of exchange)"
        longer = f"{short(exchange.slower)} times as long as at {rates}"
        links = f". This took {longer}, and lumitui expects the same of other sizes."
    elif step.exchange:
        added = _milliseconds(step.exposed)
        text += f", of which the exchange adds {added}, according to the profile's links"
    return (
        f"{text}; computation takes {_milliseconds(step.compute)}. lumitui predicts other sizes "
        f"from this one: each rank sends {short(each)} MB per step{links} 8 of 10 published "
        "training runs lie within the interval."
    )


def _milliseconds(seconds: float) -> str:
    return f"{short(seconds * 1000)} ms"


def recommendation(scaling: Scaling, advice: SizeAdvice) -> str:
    """Return the recommended size, the reason, and its time and price."""
    chosen = next((size for size in scaling.sizes if size.nodes == advice.nodes), None)
    if chosen is None or chosen.whole is None:
        return advice.sentence
    nodes = words.count(chosen.nodes, "node")
    takes = f"On {nodes}, {'the work takes' if chosen.measured else 'the prediction is'}"
    late = " That is longer than the time limit." * (chosen.over_limit and scaling.knows_work)
    # The steps of a short trial may scale well without making the whole faster.
    idle = (chosen.start_up or 0.0) > 0.5 * chosen.whole.seconds.middle
    little = (
        " Most of this is start, tests and checkpoints: this many nodes pay off only "
        "for longer training."
    ) * (idle and chosen.nodes > 1)
    return (
        f"Take {nodes}. {takes} {cost_text(chosen.whole, scaling.unit)}.{late}{little} "
        f"{advice.sentence}{_move(scaling, chosen)}"
    )


def _move(scaling: Scaling, size: ScalingSize) -> str:
    other = scaling.moves_to(size)
    return f" The job moves to {other}{_idle(size)}." if other else ""


def _idle(size: ScalingSize) -> str:
    if size.offer is None or not size.offer.idle:
        return ""
    gpus = words.count(size.offer.idle, "GPU")
    return f", where {gpus} of each node {'stays' if size.offer.idle == 1 else 'stay'} idle"


def _moves(scaling: Scaling) -> Iterator[str]:
    """Yield, for each other partition, the sizes that move there."""
    moved = [size for size in scaling.sizes if scaling.moves_to(size)]
    for other in dict.fromkeys(map(scaling.moves_to, moved)):
        there = [size for size in moved if scaling.moves_to(size) == other]
        nodes = ", ".join(f"{size.nodes:,}" for size in there)
        yield (
            f"On {nodes} nodes, the job moves to {other}{_idle(there[-1])}: lumitui recommends "
            "such a size only for a deadline or a budget."
        )


def notes(scaling: Scaling) -> Iterator[str]:
    """Yield further remarks, one sentence each."""
    yield from _moves(scaling)
    yield from _start_ups(scaling)
    for argument in scaling.assumed:
        yield (
            f"lumitui counts `{argument}` as the samples of each rank. If it counts those of all "
            "ranks, set `scale.batch.arg_is: global`."
        )
    yield from _bills(scaling)
    if scaling.epoch and scaling.whole.samples != scaling.epoch:
        yield f"{scaling.part.words.replace('an epoch of', 'An epoch has')}."
    for size in scaling.measured:
        if size.efficiency and (size.efficiency.likely or 0.0) >= 100.5:
            nodes = words.count(size.nodes, "node")
            yield (
                f"The {percent(size.efficiency)} of {nodes} is more than ideal: this is noise "
                "from few or uneven steps, or the smaller share of work fits caches better."
            )
    for why in dict.fromkeys(item.why for item in scaling.doubts):
        runs = [item.run for item in scaling.doubts if item.why == why]
        verb = "differ" if " and " in why or "arguments" in why or runs[1:] else "differs"
        what = why.replace("its ", "their ") if runs[1:] else why
        yield f"{', '.join(runs)} {'are' if runs[1:] else 'is'} compared although {what} {verb}."
    yield from omissions(scaling)


def _start_ups(scaling: Scaling) -> Iterator[str]:
    """Yield how long start, tests and checkpoints take, and which other sizes are given whose."""
    own = [size for size in scaling.measured if size.start_up_of == size.nodes]
    told = [(words.count(size.nodes, "node"), size.start_up or 0.0) for size in own]
    if not told:
        if scaling.measured:
            yield "No run has reported its start-up yet, so times cover only the training steps."
        return
    if max(seconds for _, seconds in told) < 1:
        return
    each = ", ".join(f"{length(seconds)} on {nodes}" for nodes, seconds in told)
    text = f"Times include start, tests and checkpoints: {each}."
    for nodes in dict.fromkeys(size.start_up_of for size in scaling.sizes):
        others = [f"{size.nodes:,}" for size in scaling.sizes
                  if size.start_up_of == nodes and size.nodes != nodes]  # fmt: skip
        if nodes and others:
            noun = "node" if others == ["1"] else "nodes"
            of = f"On {', '.join(others)} {noun}, lumitui assumes the start-up of "
            text += f" {of}{words.count(nodes, 'node')}."
    yield text


def _bills(scaling: Scaling) -> Iterator[str]:
    """Yield how the site counts, and the bills of measured runs that differ from their rows."""
    if scaling.billing_note and any(size.offer and size.offer.per_hour for size in scaling.sizes):
        yield scaling.billing_note
    for size in scaling.measured:
        bill, row = size.bill, size.whole.price.middle if size.whole else 0.0
        if bill and row and words.price(bill.amount) != words.price(row):
            work = f" for {bill.samples:,} samples" if bill.samples else ""
            yield f"{bill.run} was billed {words.price(bill.amount)} {scaling.unit}{work}."


def omissions(scaling: Scaling) -> Iterator[str]:
    """Yield a sentence for each run that is not compared."""
    for item in scaling.left_out:
        yield f"{item.run} is left out: {item.why}."


def cost_text(cost: Cost, unit: str) -> str:
    """Return `34 min (30 min to 41 min), 16 GPU-hours (14 to 19)`."""
    parts = [_with_interval(cost.seconds, length)]
    if cost.price.high > 0:
        value, _, rest = _with_interval(cost.price, words.price).partition(" (")
        parts.append(f"{words.units(value, unit)}{f' ({rest}' if rest else ''}")
    return ", ".join(parts)


def _with_interval(value: Estimate, text: Callable[[float], str]) -> str:
    low, high = text(value.low), text(value.high)
    if low == high or value.high < value.low * 1.01:
        return text(value.middle)
    between = f"{low} to {high}"
    return between if value.likely is None else f"{text(value.likely)} ({between})"


def expected(size: ScalingSize, value: Estimate | None, text: Callable[[float], str]) -> str:
    """Return `middle`, with `~` if it is a predicted number."""
    sign = "~" if value is not None and value.likely is not None and not size.measured else ""
    return sign + middle(value, text)


def middle(value: Estimate | None, text: Callable[[float], str]) -> str:
    """Return the likely value, or the interval if no value is more likely."""
    if value is None:
        return "-"
    if value.likely is not None:
        return text(value.likely)
    low, high = text(value.low), text(value.high)
    return low if low == high else f"{low}-{high}"


def percent(value: Estimate | None) -> str:
    """Return whole percentages: `94 %`, `49-100 %`, or `100+ %` if the upper end is unknown."""
    if value is not None and value.likely is None and value.high > 2 * value.low >= 100:
        return f"{value.low:.0f}+ %"
    return "-" if value is None else f"{middle(value, lambda each: f'{each:.0f}')} %"


def short(value: float) -> str:
    """Return a number with three digits, without an exponent in the usual range."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if 100 <= rounded < 1e12 else f"{rounded:.3g}"


def price_cell(value: float) -> str:
    """Return a price or hours for a column: two decimals below 1,000 (`0.67`, `1.33`, `16.00`)."""
    text = words.price(value)
    return text if "." in text or "e" in text or value >= 999.995 else f"{text}.00"


def length(seconds: float) -> str:
    """Return a duration in words, with decimals below ten seconds: `1.2 s`, `1 min 46 s`."""
    return f"{seconds:.2g} s" if seconds < 9.95 else words.length(seconds + 0.5)


def time_text(seconds: float) -> str:
    """Return a duration for a table, with decimals below ten seconds: `1.2s`, `1m46`."""
    return f"{seconds:.2g}s" if seconds < 9.95 else words.short_length(seconds + 0.5)


def _number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else f"{count:,}"
