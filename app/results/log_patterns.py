"""The `metrics:` patterns of a job file, searched in a log for a bounded time.

A person writes these regular expressions, and one like `(a|aa)+$` would take years on a line of
sixty characters. Python's `re` cannot be stopped and holds the interpreter's lock; `regex` stops
at a time limit and lets other threads run meanwhile.
"""

import math
import time
from collections.abc import Iterator, Mapping

import regex

from lumitui.remote.errors import InputError

SECONDS = 3.0
"""For all patterns of a job on one piece of its log; usual ones take some milliseconds."""
_LOG_LINE = 2000
"""Characters of a line that are searched."""


def series_of(
    text: str, patterns: Mapping[str, str], *, seconds: float = SECONDS
) -> dict[str, list[float]]:
    """Return the numbers that each pattern's one group finds in `text`, a match a line at most.

    A pattern that is no regular expression gives an empty series (the job file refuses it), and
    so does text that is not a number.

    Raises:
        InputError: a pattern takes too long; it is named.
    """
    deadline = time.monotonic() + seconds
    found: dict[str, list[float]] = {}
    for name, pattern in patterns.items():
        try:
            found[name] = list(_numbers(text, pattern, deadline))
        except TimeoutError as error:
            raise InputError(
                f"The pattern {name} under `metrics:` takes more than {seconds:g} s on the log.",
                "Write it without choices inside repeats, such as (a|aa)+.",
            ) from error
    return found


def _numbers(text: str, pattern: str, deadline: float) -> Iterator[float]:
    try:
        compiled = regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError):
        return
    if not compiled.groups:
        return
    for line in text.splitlines():
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        match = compiled.search(line[:_LOG_LINE], timeout=left, concurrent=True)
        if match and (number := _parsed(match[1])) is not None:
            yield number


def _parsed(text: str | None) -> float | None:
    try:
        number = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
