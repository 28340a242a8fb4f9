"""Counts, sizes, times, prices and reasons in words, the same in CLI and TUI. Pure."""

import math
import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lumitui.remote.site import walltime
from lumitui.remote.site.core_sets import format_cores
from lumitui.remote.site.states import State

if TYPE_CHECKING:
    # These import pydantic, which takes longer than a short CLI verb.
    from lumitui.app.history.run import Run
    from lumitui.app.job.launch import Price, RankLayout, RankMemory
    from lumitui.remote.site.finding import Finding
    from lumitui.remote.site.profile import Site

_MOST_FOUND = 3  # maximum warnings and notes listed in a question

# -- counts and sizes


def count(number: int, noun: str) -> str:
    """Return `1 node`, `2 nodes`, `1,024 nodes`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def number(value: float | None, unit: str = "") -> str:
    """Return a number with five digits or without an exponent, and `unit`; `-` for None."""
    if value is None:
        return "-"
    # %g would write 123456 as 1.2346e+05.
    whole = 99_999.5 <= abs(value) < 1e15
    return (f"{value:,.0f}" if whole else f"{value:.5g}") + unit


def rate(value: float | None) -> str:
    """Return samples or tokens per second, the same everywhere: `8.12`, `640`, `6,267`."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if 99.95 <= value < 1e15 else f"{value:.3g}"


def size(count: int) -> str:
    """Return a number of bytes in at most eight characters: `812 B`, `1.4 kB`, `23 MB`."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 999.5 or unit == "GB":
            break
        amount /= 1000.0
    return f"{amount:.0f} {unit}" if amount >= 9.95 or unit == "B" else f"{amount:.1f} {unit}"


def file_heading(name: str) -> str:
    """Return the heading of one of several files, as a shell comment."""
    return f"# ======== {name} ========"


def layout_size(layout: "RankLayout") -> str:
    """Return `2 nodes, 16 ranks, 16 GPUs`, or `2 nodes, 4 ranks on CPU`."""
    ranks = f"{count(layout.nodes, 'node')}, {count(layout.world_size, 'rank')}"
    gpus = layout.nodes * layout.gpus_per_node
    return f"{ranks} on CPU" if layout.on_cpu else f"{ranks}, {layout.device.some(gpus)}"


def rank_memory(memory: "RankMemory") -> str:
    """Return the GPU memory that a rank needs: `about 41 of 64 GiB`."""
    return f"about {memory.gib} of {memory.of >> 30} GiB"


MOST_RANGES = 8
"""Maximum number of ranges of ranks in a sentence; 8,192 ranks would fill a screen."""


def ranks_named(ranks: Iterable[int]) -> str:
    """Return `Rank 3`, `Ranks 3, 8-15`, or the first of many: `Ranks 0, 8, … (1,024 ranks)`."""
    named = set(ranks)
    ranges = format_cores(named).split(",")
    shown = ", ".join(ranges[:MOST_RANGES])
    more = f", … ({count(len(named), 'rank')})" if len(ranges) > MOST_RANGES else ""
    return f"Rank{'s' if len(named) > 1 else ''} {shown}{more}"


# -- times

_LONGEST = 1e11
"""Maximum duration in seconds (some 3,000 years)."""


def clock(moment: float | None) -> str:
    """Return an epoch time as local date and time; '' for None and 0."""
    if not moment:
        return ""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))
    except (OverflowError, ValueError, OSError):  # from a broken clock: no calendar has it
        return "no date"


def recent_clock(moment: float, now: float) -> str:
    """Return an epoch time as a time of today or with its date; `never` for 0."""
    if not moment:
        return "never"
    day, _, of_day = clock(moment).partition(" ")
    return of_day if clock(now).startswith(day) else f"{day} {of_day[:5]}"


def as_of(run: "Run", now: float) -> str:
    """Return `as of 13:02` for a run whose site has been silent since then; '' for all others."""
    moment = run.as_of(now)
    return "" if moment is None else f"as of {minute(moment, now)}"


def heard(run: "Run", now: float) -> str:
    """Return `12:44` for an unfinished run whose site has been silent since then; else ''."""
    moment = run.heard(now)
    return "" if moment is None else minute(moment, now)


CLOCK_ERROR = 60.0
"""Seconds by which a time in the future may be one of a clock that was slightly wrong."""
_RECENT = 10.0
"""Seconds after which an answer of a site is shown with its age."""


def seen(run: "Run", now: float) -> str:
    """Return `30 s ago`, if an unfinished run's site reported it then; '' if just now."""
    return f"{length(now - run.updated)} ago" if run.unreported_since(now - _RECENT) else ""


def minute(moment: float, now: float) -> str:
    """Return an epoch time to the minute: `13:02` if today, else with its date."""
    day, _, of_day = clock(moment).partition(" ")
    return of_day[:5] if clock(now).startswith(day) else f"{day} {of_day[:5]}"


def _whole(seconds: float) -> int:
    """Return whole seconds, at least 0; results of a broken clock stay printable."""
    return int(min(seconds, _LONGEST)) if seconds > 0 else 0


def length(seconds: float) -> str:
    """Return a duration in words: `45 s`, `1 min 42 s`, `12 min`, `3 h 05 min`.

    Below ten minutes it has seconds: `1 min` may be nearly two.
    """
    whole = _whole(seconds)
    minutes, rest = divmod(whole, 60)
    if minutes < 1:
        return f"{whole} s"
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes < 10 and rest else f"{minutes} min"
    if whole < 86400:
        return f"{whole // 3600} h {minutes % 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600:02d} h"


def _unit(seconds: int) -> int:
    """Return the seconds of the smallest unit that `length` shows of a time this long."""
    return 1 if seconds < 600 else 60 if seconds < 86400 else 3600


def limit(seconds: int) -> str:
    """Return a time limit in words with all its parts: `length` would round it down."""
    rest = seconds % _unit(seconds)
    return length(seconds) + (f" {limit(rest)}" if rest else "")


def time_limit(run: "Run") -> str:
    """Return a run's time limit in words."""
    return limit(run.limit)


def short_length(seconds: float) -> str:
    """Return a duration in at most six characters: `45s`, `1m42`, `12m`, `3h05`, `2d04`."""
    whole = _whole(seconds)
    minutes, rest = divmod(whole, 60)
    if minutes < 1:
        return f"{whole}s"
    if minutes < 60:
        return f"{minutes}m{rest:02d}" if minutes < 10 and rest else f"{minutes}m"
    if whole < 86400:
        return f"{whole // 3600}h{minutes % 60:02d}"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}"


def elapsed_of_limit(run: "Run", now: float) -> str:
    """Return the job's elapsed time and its time limit, rounded up: `12m/1h00`."""
    ran, times = _time_and_times(run, now)
    seconds = times * run.limit
    most = seconds + -seconds % _unit(seconds)
    return f"{short_length(ran) if ran or run.started else '-'}/{short_length(most)}"


def clock_of_limit(run: "Run", now: float) -> str:
    """Return elapsed time as Slurm and limit as the job file write it: `00:12:00/1:00:00`.

    The limit of a whole chain is that of all its attempts: `00:12:00/4x1:00:00`.
    """
    ran, times = _time_and_times(run, now)
    return f"{walltime.text_of(int(ran))}/{f'{times}x' if times > 1 else ''}{run.brief.time}"


def _time_and_times(run: "Run", now: float) -> tuple[float, int]:
    """Return how long the job ran, and in how many limits; an ended or waiting chain has all."""
    if run.attempts and (run.state.is_final or run.between_attempts):
        return run.ran(now), run.brief.chain
    return run.elapsed(now), 1


def ahead(moment: float, now: float) -> str:
    """Return a local time, with the time until or since then."""
    # A poll that is a few seconds late is not a delay.
    if now - moment >= 60:
        return f"{clock(moment)}, {length(now - moment)} ago"
    return f"{clock(moment)}, {'in ' + length(moment - now) if moment > now else 'due now'}"


def price(value: float) -> str:
    """Return a billed amount in the common format: `0.67`, `1.33`, `16`, `1,234`."""
    if 0 < value < 0.005:
        return f"{value:.1g}"
    return f"{value:,.0f}" if value >= 999.995 else f"{value:.2f}".removesuffix(".00")


def most(value: float) -> str:
    """Return an upper limit in the format of `price`: 0.3333 is at most `0.34`."""
    if not 1e-99 < value < math.inf:
        return price(value)
    step = 10 ** max(2, -math.floor(math.log10(value))) if value < 999.995 else 1
    # Without the factor, 0.1 + 0.2 would be 0.31.
    return price(math.ceil(value * step * (1 - 1e-12)) / step)


def units(value: str, unit: str) -> str:
    """Return a price and its unit, which is plural in profiles: `2 GPU-hours`, `1 GPU-hour`."""
    return f"{value} {re.sub('(?<=hour|unit)s$', '', unit) if value == '1' else unit}"


def amount(paid: "Price") -> str:
    """Return the cost if the job runs to its time limit: `32 GPU-hours`, `nothing`."""
    return units(most(paid.amount), paid.unit) if paid.amount else "nothing"


def price_limit(paid: "Price") -> str:
    """Return `at most 32 GPU-hours`, `nothing`."""
    return f"at most {amount(paid)}" if paid.amount else "nothing"


def price_sentence(paid: "Price") -> str:
    """Return `billed at most 32 GPU-hours`, `nothing is billed`."""
    return f"billed {price_limit(paid)}" if paid.amount else "nothing is billed"


def site_names(sites: Iterable["Site"]) -> str:
    """Return the names of the sites, each once."""
    return ", ".join(dict.fromkeys(site.name for site in sites))


def billing_notes(paid: Iterable[tuple["Price", "Site"]]) -> list[str]:
    """Return how each site counts what it bills; if several differ, with the sites' names."""
    notes = {site.name: site.billing_note for price, site in paid if price.amount}
    named = {note: f"{name}: {note}" for name, note in notes.items() if note}
    return list(named.values() if len(named) > 1 else named)


def billed(run: "Run", now: float) -> str:
    """Return the cost of a run, or its cost so far, and its maximum.

    For a requeued job without `chain:`, only the last attempt's time is known.
    """
    if run.price.amount == 0:
        return "nothing"
    limit = most(run.price.amount)
    spent = run.billed(now)
    about = f"about {units(price(spent), run.price.unit)}"
    if run.attempt > 1 and spent and not run.attempts:
        about += " in its last attempt"
    if run.state.is_final and spent > run.price.amount and most(spent) != limit:
        return f"{about} ({limit} for its time limit, which it exceeded)"
    if run.state.is_final:
        return f"{about if spent else 'nothing'} (of at most {limit})"
    so_far = as_of(run, now) or "so far"
    return f"{about} {so_far}, at most {limit}" if spent else price_limit(run.price)


def scheduler_reason(run: "Run") -> str:
    """Return the scheduler's reason in one line; '' if it gives none."""
    words = " ".join(run.reason.split())
    return "" if words.lower() == "none" else words


def reason(run: "Run") -> str:
    """Return why the run is in its state, in one line; for a failure, the rank and its exit code.

    For a chain that ended although its program did not fail: why no attempt follows.
    """
    words = chain_end(run)
    if words:
        return words
    words = scheduler_reason(run)
    if run.state is not State.FAILED or not run.rc:
        return words
    rank = f"rank {run.failed_rank}, " if run.failed_rank is not None else ""
    # Slurm's NonZeroExitCode adds nothing to it.
    return f"{rank}exit {run.rc}" + (f", {words}" if words not in ("", "NonZeroExitCode") else "")


_STOPPED = 85
"""The exit code of an attempt that saved after a stop request (templates/job/chain.sh)."""


def chain_end(run: "Run") -> str:
    """Return why a chain ended before its training was complete; '' for any other run."""
    if not run.attempts:
        return ""
    last = run.attempts[-1]
    at = f"saved at step {last.step:,}" if last.step is not None else "a checkpoint is kept"
    if run.state is State.CANCELLED and run.between_attempts and last.end == "requeue":
        return f"before attempt {last.number + 1} started; {at}"
    if run.state is not State.FAILED or run.rc != _STOPPED:
        return ""
    if last.end == "used-up":
        return f"all {run.brief.chain} time limits are used; {at}"
    if last.end == "refused":
        return f"its requeue was refused; {at}"
    if last.end == "unsaved":
        return "it exited with 85, the code for a save, but saved nothing"
    return "no progress: it trained nothing new" if last.end == "no-progress" else ""


def after_cancel(run: "Run") -> str:
    """Return the result of a cancel that the site confirmed."""
    if run.state is State.FINISHING:
        return f"{run.id} is cancelled; Slurm is ending its job."
    if run.state.is_final:
        return f"{run.id} is {run.state}."
    return f"{run.id} is cancelled; its last known state is {run.state}."


def no_cause(run: "Run") -> str:
    """Return the message if the end of a log shows no cause."""
    if run.state.is_final:
        return "lumitui found no likely cause."
    return f"It is {run.state}, and the end of its log shows no failure."


def finding(found: "Finding") -> str:
    """Return a finding in one line."""
    where = source(found.source)
    return f"{found.severity}: {found.message} {found.do} [{found.rule}; {where}]"


def finding_rows(findings: Iterable["Finding"]) -> list[tuple[str, str]]:
    """Return a (label, message) row for each of the first warnings and notes, then a count."""
    told = dict.fromkeys((str(one.severity), one.message) for one in findings)
    rows = [row for severity in ("warning", "note") for row in told if row[0] == severity]
    more = len(rows) - _MOST_FOUND
    return [*rows[:_MOST_FOUND], ("", f"… and {more} more")] if more > 0 else rows


def source(text: str) -> str:
    """Return a rule's source, with the command that prints lumitui's own page."""
    return re.sub(r"(^|; )docs/(\w+)\.md", r"\1lumitui docs \2", text)
