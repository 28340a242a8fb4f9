"""The state of a followed log, and the rank that stands out, in words. Pure."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lumitui.app.explain import words
from lumitui.app.history.run import NEWS_SECONDS, Run
from lumitui.app.knowledge.log_lines import LogError
from lumitui.remote.site.states import State

FRESH = 10.0
"""Seconds since the last sign of life for which a link counts as live."""
_NOW = 2.0
"""Seconds of silence too short to show: a growing log arrives in pieces at such intervals."""
OFFLINE = NEWS_SECONDS
"""Seconds without an answer after which a link is no longer expected back immediately."""

_FAILED = (State.FAILED, State.OUT_OF_MEMORY, State.NODE_FAILED)
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Timeout|Expired)(?::|$)")


@dataclass(frozen=True)
class RankMark:
    """The message about one rank beside its number."""

    rank: int
    words: str
    failed: bool
    """Whether it is known to have ended the run."""


def failed_rank(run: Run) -> int | None:
    """Return the rank that failed first, according to the run's exit; None if the run did not fail.

    A rank that raises an error may handle it, and its run may end well.
    """
    return run.failed_rank if run.state in _FAILED else None


def rank_mark(failed: int | None, errors: Sequence[LogError] | None) -> RankMark | None:
    """Return the rank that `failed` first, or else the rank of the log's first error."""
    if failed is not None:
        return RankMark(failed, "failed first", failed=True)
    if not errors or (rank := errors[0].rank) is None:
        return None
    words = "traceback" if _RAISED.match(errors[0].text) else "error"
    return RankMark(rank, words, failed=False)


def link(heard: float | None, lost: float | None, now: float) -> str:
    """Return the state of a log's link, with its sign; all times are epoch seconds.

    Args:
        heard: when the site was heard last; None where no link can be lost.
        lost: since when it does not answer, None while it does; minus infinity without a
            connection, which a user may have to open.
        now: the time.
    """
    if lost is None and heard is None:
        return "● live"
    since = lost if lost is not None else heard
    assert since is not None
    if math.isinf(since):
        return "○ waiting"
    age = max(0.0, now - since)
    if lost is None and age < _NOW:
        return "● live"
    if lost is None and age < FRESH:
        return f"● live {words.short_length(age)} ago"
    if age < OFFLINE:
        return f"◌ reconnecting {words.short_length(age)}"
    return f"○ offline since {words.minute(since, now)}"


def awaited(request: float, now: float) -> str:
    """Return that lumitui requested a log at the epoch `asked` and still waits for the answer."""
    return f"◌ waiting for an answer {words.short_length(max(0.0, now - request))}"


def below(lines: int | None, size: int, new: int, *, ended: bool) -> str:
    """Return how much of a log is below the screen while its end is not followed.

    Args:
        lines: lines below; None where only some of them have been read.
        size: bytes of the log below.
        new: lines that came since a user left the end.
        ended: whether no more will come.
    """
    if lines == 0:
        return "at the end" if ended else "paused (f follows)"
    there = f"{words.count(lines, 'line')} below" if lines else f"{words.size(size)} below"
    return f"{there}{f', {new:,} new' if new and not ended else ''} (G)"


def position(line: int | None, at: int, size: int) -> str:
    """Return where in a log the screen is.

    Args:
        line: number of the last line on the screen; None where lines cannot be counted,
            since the log is not read from its beginning.
        at: bytes up to the end of that line.
        size: bytes of the log.
    """
    share = "" if at >= size else f", {100 * at // max(size, 1)} %"
    where = f"{words.size(at)} of {words.size(size)}" if at < size else words.size(size)
    return f"line {line:,} ({where}{share})" if line is not None else where + share
