"""The sizes offered for a resubmission, in words. Pure."""

from dataclasses import dataclass

from lumitui.app.explain.run_phrases import Outlook
from lumitui.app.explain.words import most, price
from lumitui.app.history.run import Run
from lumitui.app.job.launch import Launch
from lumitui.app.scale.scaling import scaling_words
from lumitui.app.scale.scaling.model import Estimate
from lumitui.app.scale.scaling.study import Scaling, ScalingSize
from lumitui.remote.site.states import State


@dataclass(frozen=True)
class Rung:
    """A size at which a run can be sent."""

    nodes: int
    cells: tuple[str, ...]
    """One per title."""
    refused: str = ""
    """Why the run cannot be sent on this number of nodes."""


def titles(scaling: Scaling) -> tuple[str, ...]:
    """Return the column headings of the rungs."""
    is_billed = any(size.offer and size.offer.most for size in scaling.sizes)
    price_title = scaling.unit if is_billed else "price"
    return ("nodes", scaling.device.plural, "time", "eff. %", price_title, "")


def rungs_of(scaling: Scaling) -> list[Rung]:
    """Return the sizes that the site offers, with time, efficiency and price of a run."""
    return [
        Rung(size.nodes, _cells(size, scaling), size.refused)
        for size in scaling.sizes
        if size.offer is not None and size.offer.offered
    ]


def basis(scaling: Scaling) -> str:
    """Return the work behind time and price, and the basis of the prediction."""
    if not scaling.measured:
        return " ".join((scaling.unmeasured, *scaling_words.omissions(scaling)))
    if scaling.changed:
        what = " and ".join(scaling.changed)
        return f"Time and price are unknown, because this resubmission changes {what}."
    if not scaling.knows_work:
        sentence = (
            "The number of samples is unknown, so lumitui cannot predict a time. If an argument "
            "sets the batch size, name it: `scale: {batch: {arg: --batch-size}}`."
        )
        return f"{sentence} {scaling_words.basis(scaling)}"
    ratios = {size.offer.work for size in scaling.sizes if size.offer and not size.refused}
    works = "the samples that each job trains" if ratios - {1.0, None} else scaling.whole.words
    if None in ratios:
        works += "; lumitui does not know how many a job will train"
    return f"Time and price are for {works}. {scaling_words.basis(scaling)}"


def likely_price(scaling: Scaling, launch: Launch) -> Estimate | None:
    """Return the likely price of `launch`; None if unknown, or over the time limit."""
    size = _likely_size(scaling, launch)
    return size.whole.price if size and size.whole and not size.over_limit else None


def outlook_of(scaling: Scaling, parent: Run, launch: Launch) -> Outlook:
    """Return the price of `launch`, which sends `parent` again, with price and time of its rung."""
    size = _likely_size(scaling, launch)
    if size is None or size.whole is None or size.offer is None:
        return Outlook(launch.price)
    return Outlook(
        launch.price,
        "" if size.over_limit else scaling_words.middle(size.whole.price, price),
        parent.id,
        other_size=launch.layout.nodes != parent.layout.nodes or size.offer.work != 1,
        takes=scaling_words.middle(size.whole.seconds, scaling_words.length),
    )


def _likely_size(scaling: Scaling, launch: Launch) -> ScalingSize | None:
    """Return the size of `launch`; None if its price is unknown."""
    layout = launch.layout
    wanted = (layout.nodes, layout.nodes * layout.gpus_per_node)
    size = next((one for one in scaling.sizes if (one.nodes, one.gpus) == wanted), None)
    known = scaling.knows_work and launch.price.amount and size and size.whole and size.offer
    return size if known and size and size.offer and size.offer.work is not None else None


def _cells(size: ScalingSize, scaling: Scaling) -> tuple[str, ...]:
    start = (f"{size.nodes:,}", f"{size.gpus:,}")
    offer = size.offer
    if size.refused or offer is None:
        return (*start, "-", "-", "-", f"refused: {size.refused}")
    efficiency = scaling_words.efficiency(size).removesuffix(" %")
    so_far = " so far" if size.source.endswith(f", {State.RUNNING})") else ""
    ran = size.ran and offer.work is not None
    told = "measured" if ran or not scaling.knows_work else "from its speed"
    origin = f"{told}{so_far}" if size.measured else scaling_words.PREDICTED
    if size.whole is None or not scaling.knows_work:
        limit = f"at most {most(offer.most)}" if offer.most else "nothing"
        return (*start, "-", efficiency, limit, origin if size.whole is not None else "")
    paid = scaling_words.expected(size, size.whole.price, price)
    return (
        *start,
        scaling_words.expected(size, size.whole.seconds, scaling_words.time_text),
        efficiency,
        paid if size.whole.price.high > 0 else "nothing",
        f"{origin}, over the time limit" if size.over_limit else origin,
    )
