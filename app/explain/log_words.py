"""The state of a followed log, and its failed rank, in words. Pure."""

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
"""Seconds of silence too short to show: a growing log arrives at such intervals."""
QUIET = 20
"""Seconds without a new line that are shown: Python and its imports may take a minute."""
OFFLINE = NEWS_SECONDS
"""Seconds without an answer after which a link is no longer expected back immediately."""

_FAILED = (State.FAILED, State.OUT_OF_MEMORY, State.NODE_FAILED)
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Timeout|Expired)(?::|$)")


@dataclass(frozen=True)
class RankMark:
    """A message about one rank, with its number."""

    rank: int
    words: str
    failed: bool
    """Whether this rank is known to have ended the run."""


def failed_rank(run: Run) -> int | None:
    """Return the rank that failed first, from the run's exit; None if the run did not fail.

    A rank may also raise an error, handle it and succeed.
    """
    return run.failed_rank if run.state in _FAILED else None


def rank_mark(failed: int | None, errors: Sequence[LogError] | None) -> RankMark | None:
    """Return the mark for the rank that `failed` first, else for that of the log's first error."""
    if failed is not None:
        return RankMark(failed, "failed first", failed=True)
    if not errors or (rank := errors[0].rank) is None:
        return None
    words = "traceback" if _RAISED.match(errors[0].text) else "error"
    return RankMark(rank, words, failed=False)


def link(heard: float | None, lost: float | None, now: float) -> str:
    """Return the state of a log's link, with its sign; all times are epoch seconds.

    Args:
        heard: time of the site's last sign; None for a link that cannot be lost.
        lost: time since when it does not answer, None while it answers; minus infinity without a
            connection.
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


def silence(grown: float, now: float) -> str:
    """Return how long a followed log has had no new line, if that may look like a stop."""
    tens = int(now - grown) // 10 * 10
    return f"no new line for {words.short_length(tens)}" if tens >= QUIET else ""


def awaited(request: float, now: float) -> str:
    """Return the words for a log that lumitui requested at `asked` (epoch) and still waits for."""
    return f"◌ waiting for an answer {words.short_length(max(0.0, now - request))}"


def below(lines: int | None, size: int, new: int, *, ended: bool) -> str:
    """Return how much of a log is below the screen while it is not followed.

    Args:
        lines: lines below; None if not all of them have been read.
        size: bytes of the log below.
        new: lines added since the user scrolled up.
        ended: whether the log is complete.
    """
    if lines == 0:
        return "at the end" if ended else "paused (G follows)"
    there = f"{words.count(lines, 'line')} below" if lines else f"{words.size(size)} below"
    return f"{there}{f', {new:,} new' if new and not ended else ''} (G)"


def position(line: int | None, at: int, size: int) -> str:
    """Return the position of the screen in a log.

    Args:
        line: number of the last line on the screen; None if unknown, because the log was not read
            from its start.
        at: bytes up to the end of that line.
        size: bytes of the log.
    """
    share = "" if at >= size else f", {100 * at // max(size, 1)} %"
    where = f"{words.size(at)} of {words.size(size)}" if at < size else words.size(size)
    return f"line {line:,} ({where}{share})" if line is not None else where + share
