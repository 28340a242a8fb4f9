"""Phrases on parts of a run: chain, price, speed, transfers. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumitui.app.explain import words
from lumitui.app.explain.words import short_length, size
from lumitui.app.history.run import KILLED, SAVED, AttemptRecord, Run, saved, trained
from lumitui.app.job.launch import Price
from lumitui.remote.site import walltime
from lumitui.remote.site.states import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lumitui.app.explain.training_summary import Throughput
    from lumitui.app.job.launch import Launch
    from lumitui.remote.transfer.contents.shipment_progress import ShipmentProgress

_ENDS = {
    "requeue": "saved{at}, requeued",
    "done": "done{at}",
    "failed": "failed{at} with exit {rc}",
    "used-up": "saved{at}; all time limits are used",
    "no-progress": "ended: it trained nothing new",
    "unsaved": "exited with 85{at}, saved nothing",
    "cancelled": "did not run: the run was cancelled",
    "refused": "saved{at}; its requeue was refused",
    KILLED: "killed: node failure, requeue or preemption",
}
"""Short: at 80 columns, 50 characters fit."""


def time_limit(launch: Launch) -> str:
    """Return `01:00:00`, or `4 x 01:00:00`; if seconds of it are billed, how Slurm rounds them."""
    spec, seconds = launch.spec, walltime.seconds_of(launch.spec.time)
    text = f"{spec.chain} x {spec.time}" if spec.chain > 1 else spec.time
    if not launch.price.amount or not seconds % 60:
        return text
    return f"{text} (Slurm rounds up to {walltime.text_of(seconds + -seconds % 60)})"


def attempt(run: Run) -> str:
    """Return `attempt 2`, or `attempt 2 of at most 4`."""
    most = run.brief.chain
    number = run.attempt
    if run.between_attempts and not run.state.is_final:
        number = run.attempts[-1].number + 1
    return f"attempt {number}" + (f" of at most {most}" if most > 1 else "")


def chain_outlook(run: Run, planned: int | None) -> str:
    """Return how far a chain comes at its pace if that is not to its end; '' if it is, or unknown.

    `planned`: the steps of the whole training.
    """
    ended = [item for item in run.attempts if item.end and item.step is not None]
    new = [steps for item, steps in trained(ended, resumed=run.resumed_from is not None) if steps]
    if run.state.is_final or planned is None or not new:
        return ""
    left = run.brief.chain - sum(bool(item.end) for item in run.attempts)
    reached = (ended[-1].step or 0) + left * sum(new) // len(new)
    if reached >= planned:
        return ""
    return f"at this pace {reached:,} of {planned:,} steps by the last attempt"


def began(record: AttemptRecord) -> str:
    """Return a sentence on an attempt's start: its job and nodes."""
    where = f" on {record.nodes}" if record.nodes else ""
    return f"attempt {record.number} started as job {record.job_id}{where}"


def ended(record: AttemptRecord, steps: int | None) -> str:
    """Return how an attempt ended, and the number of steps it trained, if known."""
    at = f" at step {record.step:,}" if record.step is not None else ""
    at += f" ({steps:,} new)" if at and steps is not None else ""
    words = f" ({record.said})" if record.said else ""
    return f"attempt {record.number} {_ENDS[record.end].format(at=at, rc=record.rc)}{words}"


def may_go_on(run: Run) -> bool:
    """Return whether a chain ended well and only lacks a further attempt."""
    if run.state is State.CANCELLED:
        return saved(run.attempts)
    return bool(run.attempts) and run.attempts[-1].end in ("used-up", "refused")


def kept(run: Run) -> str:
    """Return what remains of a chain after a cancel; '' if no attempt saved."""
    steps = [item.step for item in run.attempts if item.end in SAVED and item.step is not None]
    if not saved(run.attempts):
        return ""
    return f"{f'step {steps[-1]:,}' if steps else 'its checkpoint'} is saved and kept"


@dataclass(frozen=True)
class Outlook:
    """What is known about a job's price; None or "": unknown."""

    price: Price
    about: str = ""
    """The amount if it runs like an earlier run; "" if it would exceed the time limit."""
    like: str = ""
    """That run."""
    other_size: bool = False
    """Whether that run had a different size, so that this one's time is predicted."""
    takes: str = ""
    """The time that the job then takes."""
    left: float | None = None
    """The remaining budget of its account."""
    limit: float | None = None
    """The granted budget."""
    asked: float | None = None
    """Time of the site's answer, in epoch seconds."""


def price_outlook(outlook: Outlook, now: float) -> str:
    """Return the price, its likely amount, and the remaining budget.

    Like `at most 32 GPU-hours, about 6.10 in 50 min if it runs like ab12; 812 of 1,000 GPU-hours
    left (asked 3 min ago)`.
    """
    text = words.price_limit(outlook.price)
    like = f"if it {'scales as' if outlook.other_size else 'runs like'} {outlook.like}"
    if outlook.about:
        took = f" in {outlook.takes}" if outlook.takes else ""
        text += f", about {outlook.about}{took} {like}"
    elif outlook.takes:
        text += f"; {like}, it takes {outlook.takes}, over the time limit"
    if outlook.left is not None:
        text += f"; {_left(outlook)} left"
        if outlook.asked is not None:
            text += f" (queried {words.length(max(0.0, now - outlook.asked))} ago)"
    return text


def price_outlook_sentence(outlook: Outlook, now: float) -> str:
    """Return the same as a sentence's end: `billed at most 32 GPU-hours …`."""
    if not outlook.price.amount:
        return "nothing is billed"
    return f"billed {price_outlook(outlook, now)}"


def _left(outlook: Outlook) -> str:
    left = words.price(outlook.left or 0.0) if (outlook.left or 0.0) > 0 else "nothing"
    if outlook.limit is None:
        return words.units(left, outlook.price.unit)
    return f"{left} of {words.units(words.price(outlook.limit), outlook.price.unit)}"


_PARTS = {
    "data_s": "data",
    "forward_backward_s": "forward and backward",
    "optimizer_s": "optimizer",
}
_WITHIN = {"communication_s": "exchanging gradients", "exposed_s": "waiting for gradients"}
"""Parts of the backward pass; the second is part of the first."""

_SAME = 0.02
"""Two speeds that differ by less are shown as one."""


def samples(of_median: float | None, speed: Throughput) -> str:
    """Return the overall speed, and that of the median step if stalls separate them."""
    median, over_all = words.rate(of_median), speed.over_all
    if over_all is None:
        return f"{median} samples/s (median after warm-up)"
    steady = of_median is not None and abs(over_all - of_median) < _SAME * of_median
    rest = "" if steady else f"; median step {median}"
    return f"{words.rate(over_all)} samples/s overall{rest}"


def compute(speed: Throughput) -> list[tuple[str, float | None, str]]:
    """Return rows of the trainer's GPU use, with their values."""
    compute = words.number(_short(speed.tflops), " TFLOP/s per rank")
    if speed.mfu is not None:
        of = words.number(speed.peak_tflops, f" ({speed.precision})")
        compute += f", MFU {100 * speed.mfu:.1f} % of {of}"
    return [
        ("tokens", speed.tokens_per_s, f"{words.rate(speed.tokens_per_s)} tokens/s"),
        ("compute", speed.tflops, compute),
        ("memory", speed.memory_gib, words.number(_short(speed.memory_gib), " GiB at most")),
        ("a step's time", speed.parts[0][1] if speed.parts else None, _split(speed.parts)),
    ]


def _split(parts: Sequence[tuple[str, float]]) -> str:
    """Return the parts of a step, which add up to it, then the parts within a part."""

    def listed(names: Mapping[str, str], chosen: Iterable[tuple[str, float]]) -> str:
        return ", ".join(f"{names.get(name, name)} {100 * share:.0f} %" for name, share in chosen)

    whole = listed(_PARTS, (part for part in parts if part[0] not in _WITHIN))
    within = listed(_WITHIN, (part for part in parts if part[0] in _WITHIN))
    if not within:
        return whole
    shares = dict(parts)
    if _WITHIN.keys() <= shares.keys():
        within = within.replace(", ", ", of which ", 1)
    return f"{whole}; the backward pass includes: {within}"


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


_CELLS = 8


def progress_line(progress: ShipmentProgress) -> str:
    """Return one line on a running transfer, 60 characters long if its name is short."""
    if progress.phase == "asking":
        return f"staging {progress.name}: checking what the site has"
    verb = "reading" if progress.phase == "reading" else "staging"
    done, total = progress.done, progress.total
    share = min(1.0, done / total) if total else 1.0
    full = int(share * _CELLS)
    bar = "#" * full + "." * (_CELLS - full)
    line = f"{verb} {progress.name} [{bar}] {share:4.0%} {size(done)} of {size(total)}"
    if progress.rate and done < total:
        line += f" {size(int(progress.rate))}/s"
        if progress.seconds_left is not None:
            line += f" {short_length(progress.seconds_left)} left"
    return line
