"""The `metrics:` patterns of a job file, searched in a log for a bounded time.

Users write these regular expressions, and one like `(a|aa)+$` would take years on a line of sixty
characters. Python's `re` cannot be stopped and holds the interpreter's lock; `regex` stops at a
time limit and lets other threads run meanwhile.
"""

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import regex

from lumitui.app.follow.results.summary import SPEEDS, Figures, figures_from
from lumitui.app.history.history import History
from lumitui.app.history.metric_points import parse_line
from lumitui.app.history.run import Run
from lumitui.app.launch.draft.printed_series import logged_speed
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.states import State

SECONDS = 3.0
"""Time limit for all patterns of a job on one piece of its log, in seconds; usually they take
milliseconds."""
LOG_BYTES = 262_144
"""Bytes to search at the end of a log."""
_LOG_LINE = 2000
"""Characters to search in each line."""
_COUNT = r"((?>\d{1,3}(?:[,_]\d{3})+|\d+))(?![\w%]|\.\d| m?s\b)"  # not 5%, 5k, 5 ms
_AFTER = r"s?(?:\(train\))?[ \t:=#\[(\"']*"
_STEP = re.compile(
    r"(?:(?<![\w/])(?:(?:global|train)[_ ])?|(?<!\w)(?:global|optimizer)_)"
    rf"(?:step|iter(?:ation)?|num_update){_AFTER}{_COUNT}(?: ?/ ?{_COUNT})?"
    rf"|(?<![\d.]){_COUNT}/{_COUNT} \[\d+:\d\d(?::\d\d)?<"  # a progress bar of tqdm
    r"|(?<![\d.])(\d+)it \[\d+:\d\d",  # the same, of an unknown length
    re.IGNORECASE,
)
_EPOCH = re.compile(rf"(?<!\w)epoch{_AFTER}{_COUNT}", re.IGNORECASE)
_BATCH = re.compile(rf"[\[(] *{_COUNT} ?/ ?{_COUNT}[\])]")
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""A colour, or another sequence for the terminal, which may part a word from its number."""
_GROUPED = re.compile(r"[-+]?(?!0)\d{1,3}(?:,\d{3})+(?:\.\d*)?")
_THOUSANDS = {"k": 1e3, "K": 1e3, "M": 1e6}
_Found = Mapping[str, Sequence[tuple[str, int, float]]]
"""For each series, its lines, their places in the log, and their values."""


@dataclass(frozen=True)
class LogFigures:
    """The values of the job file's `metrics:` at the end of the log."""

    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    lines: Sequence[bytes] = ()
    """The values as lines of metrics.jsonl."""
    warning: str = ""
    """Why the log could not be searched."""
    speed: str = ""
    """A sentence on the speed that the log prints, if no pattern is for it."""
    figures: Figures = field(default_factory=lambda: figures_from(()))
    """The values as those of a metrics.jsonl."""


def log_figures_of(run: Run, read: Callable[[int], tuple[int, bytes] | None]) -> LogFigures:
    """Search the end of a run's log for the patterns of its job file's `metrics:`.

    `read` returns the requested number of bytes from the log's end, with their offset, or None if
    there is no log; it is called at most once.
    """
    try:
        if (end := read(LOG_BYTES)) is None:
            return LogFigures()
        text = _ESCAPE.sub("", end[1].decode("utf-8", "replace"))
        found = _found(text, run.spec.metrics)
        lines = _lines_of(found)
        points = [point for line in lines if (point := parse_line(line))]
        speed = "" if any(found.get(name) for name in SPEEDS) else logged_speed(text)
        return LogFigures(_values(found), lines, speed=speed, figures=figures_from(points))
    except LumiError as error:
        return LogFigures(warning=f"lumitui cannot read `metrics:` from the log: {error}")


def keep_log_figures(history: History, run: Run, figures: LogFigures) -> None:
    """Store the values found in a run's log, unless it wrote metrics.jsonl.

    Those of a running run are replaced by the next ones, or by its metrics.jsonl.
    """
    # The offset ensures that only one of two processes adds them.
    if run.state.is_final and figures.lines:
        history.metrics.add(run.id, figures.lines, (0, sum(map(len, figures.lines))))
    elif run.state is State.RUNNING and (size := log_bytes(run)):
        history.metrics.add(run.id, figures.lines, (0, -size))


def log_bytes(run: Run) -> int:
    """Return the bytes of a run's logs at the last poll."""
    return sum(run.log_sizes.values())


def series_of(
    text: str, patterns: Mapping[str, str], *, seconds: float = SECONDS
) -> dict[str, list[float]]:
    """Return the numbers that each pattern's group finds in `text`, at most one per line.

    A match that is not a number is omitted. An invalid regular expression gives an empty series;
    the job file's check refuses it.

    Raises:
        InputError: a pattern takes too long; the message names it.
    """
    return _values(_found(text, patterns, seconds))


def _values(found: _Found) -> dict[str, list[float]]:
    return {name: [value for _, _, value in matches] for name, matches in found.items()}


def _found(text: str, patterns: Mapping[str, str], seconds: float = SECONDS) -> _Found:
    deadline = time.monotonic() + seconds
    found: dict[str, list[tuple[str, int, float]]] = {}
    for name, pattern in patterns.items():
        try:
            speed = name.endswith("per_s")
            found[name] = list(_matches(text, pattern, deadline, speed=speed))
        except TimeoutError as error:
            raise InputError(
                f"The pattern {name} under `metrics:` needs more than {seconds:g} s on the log.",
                "Write it without alternatives inside repeats, such as (a|aa)+.",
            ) from error
    return found


def _lines_of(found: _Found) -> list[bytes]:
    """Return the values as lines of metrics.jsonl, one per logged step.

    A step is the number in the log's line or, if they have none that grows, counts the lines. Then,
    matches are paired from the end, because the beginning of the log may be missing.
    """
    named = {"samples_per_s" if name in SPEEDS else name: some for name, some in found.items()}
    count, points = max(map(len, named.values()), default=0), list[dict[str, float | str]]()
    steps, counts = ({}, "") if named.get("step") else _steps_of(found)
    if steps:
        unit: dict[str, float | str] = {} if counts == "step" else {"counts": counts}
        by_step: dict[int, dict[str, float | str]] = {}
        for name, matches in named.items():
            for _, place, value in matches:
                if (step := steps.get(place)) is not None:
                    by_step.setdefault(step, unit | {"step": step})[name] = value
        points = [by_step[step] for step in sorted(by_step)]
    else:
        points = [{"step": at + 1, "counts": "line"} for at in range(count)]
        for name, matches in named.items():
            for point, (_, _, value) in zip(points[count - len(matches) :], matches, strict=True):
                point[name] = value
                if name == "step":
                    point.pop("counts", None)
    return [json.dumps(point).encode() for point in points]


def _steps_of(found: _Found) -> tuple[dict[int, int], str]:
    """Return the step of each matched line by its place, and what it counts; {} if unknown.

    A line without a number belongs to the step of the one before. A count that would give two
    values of a series to one step is not used, unless ranks repeat the same line.
    """
    names = [(place, name) for name, some in found.items() for _, place, _ in some]
    lines = sorted({place: line for some in found.values() for line, place, _ in some}.items())
    epochs = [_whole(match[1]) for _, line in lines if (match := _EPOCH.search(line))]
    first = min([1, *epochs])
    for unit, read in _READERS:
        steps: dict[int, int] = {}
        told, last = 0, None
        own: dict[int, int | None] = {}  # what tells lines of one step apart
        for place, line in lines:
            if (step := read(line, first)) is not None:
                told, last = told + 1, step
            if last is not None:
                steps[place] = last
                own[place] = -1 - place if step is None else _step(line, first)
        numbers = list(steps.values())
        grows = len(lines) == 1 or (numbers and numbers[0] < numbers[-1])
        rare = 3 * told < len(lines) or (unit == "epoch" and 2 * len(set(numbers)) < len(lines))
        if not numbers or not grows or rare or numbers != sorted(numbers):
            continue
        seen: dict[tuple[int, str], int | None] = {}
        at_once = (((steps[place], name), own[place]) for place, name in names if place in steps)
        if all(seen.setdefault(key, step) == step for key, step in at_once):
            return steps, unit
    return {}, ""


def _step(line: str, _first: int) -> int | None:
    match = _STEP.search(line)
    return _whole(match[1] or match[3] or match[5]) if match else None


def _step_of_epoch(line: str, first: int) -> int | None:
    """Return the step over all epochs, from an epoch and a position: `Epoch 3 … [120/500]`."""
    if not (epoch := _EPOCH.search(line)):
        return None
    match = _STEP.search(line)
    place = [number for number in match.groups() if number] if match else []
    if len(place) < 2:
        place = list(batch.groups()) if (batch := _BATCH.search(line, epoch.end())) else []
    return (_whole(epoch[1]) - first) * _whole(place[1]) + _whole(place[0]) if place else None


def _epoch(line: str, _first: int) -> int | None:
    match = _EPOCH.search(line)
    return _whole(match[1]) if match else None


def _whole(digits: str) -> int:
    return int(re.sub("[,_]", "", digits)[:18])


_READERS = (("step", _step), ("step", _step_of_epoch), ("epoch", _epoch))


def _matches(
    text: str, pattern: str, deadline: float, *, speed: bool
) -> Iterator[tuple[str, int, float]]:
    try:
        compiled = regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError):
        return
    if not compiled.groups:
        return
    for place, line in enumerate(text.splitlines()):
        rest = deadline - time.monotonic()
        if rest <= 0:
            raise TimeoutError
        match = compiled.search(line[:_LOG_LINE], timeout=rest, concurrent=True)
        if not match:
            continue
        word = match[1] or ""
        if speed and match.end() == match.end(1) and re.match(r"[kKM]\b", line[match.end() :]):
            word += line[match.end()]
        if (number := _parsed(word, _THOUSANDS if speed else {})) is not None:
            yield line[:_LOG_LINE], place, number


def _parsed(word: str, units: Mapping[str, float]) -> float | None:
    """Return the number that a word is: `1,200.5`, `0,5` or, with its unit, `1.2k`."""
    word = word.strip().rstrip(",")
    factor = units.get(word[-1:], 1.0)
    word = word if factor == 1.0 else word[:-1]
    decimal = word.count(",") == 1 and "." not in word and not _GROUPED.fullmatch(word)
    try:
        number = float(word.replace(",", "." if decimal else "")) * factor
    except ValueError:
        return None
    return number if math.isfinite(number) else None
