"""The points of each run's metrics.jsonl: parsed, stored, and their speed.

A row of a list shows a look at them, for which SQLite reads only loss and speed;
`results.summary` reads them all.
"""

import json
import math
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from threading import Lock
from typing import Any

from lumitui.app.history.file.sqlite_file import Database
from lumitui.app.history.run import unknown_run

MOST_POINTS = 20_000
"""Maximum stored points of a run, about 3 MB. Above that, every second step is dropped."""
_WHOLE_ENDS = 1000
"""Points at either end that are never dropped, so that the newest ones are complete."""
WARM_UP_STEPS = 5
"""Steps of each attempt that say nothing about speed: kernels are compiled, caches fill."""
_LINE_BYTES = 65536
_LONGEST_TEXT = 2000


@dataclass(frozen=True)
class MetricPoint:
    """One line of metrics.jsonl (trainers/engine/reporting.py writes them)."""

    event: str = "step"
    """`start`, `step`, `eval`, `checkpoint`, `stop`, `end`; a line without one is a step."""
    step: int | None = None
    epoch: int | None = None
    loss: float | None = None
    lr: float | None = None
    samples_per_s: float | None = None
    seconds: float | None = None
    """Since this attempt began."""
    test_accuracy: float | None = None
    world_size: int | None = None
    global_batch: int | None = None
    extra: dict[str, float | str] = field(default_factory=dict)
    """Other values of the line."""


_WHOLE = frozenset({"step", "epoch", "world_size", "global_batch"})
_KNOWN = frozenset(item.name for item in fields(MetricPoint)) - {"event", "extra"}


def parse_line(line: bytes) -> MetricPoint | None:
    """Return the point of one line; None for anything that is not a JSON object. Never raises."""
    if len(line) > _LINE_BYTES:
        return None
    try:
        data = json.loads(line)
    # RecursionError: a line of thousands of opening brackets.
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not data:
        return None
    event = data.pop("event", "step")
    numbers: dict[str, Any] = {}
    extra: dict[str, float | str] = {}
    for name, value in data.items():
        number = _number(value)
        if name in _KNOWN:
            if number is not None:
                numbers[name] = int(number) if name in _WHOLE else number
        elif number is not None:
            extra[name] = number
        elif isinstance(value, str):
            extra[name] = value[:_LONGEST_TEXT]
    event = event[:40] if isinstance(event, str) else "step"
    return MetricPoint(event, **numbers, extra=extra)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def slowest_save(points: Iterable[MetricPoint]) -> float | None:
    """Return the seconds of the slowest save among the points; None if none was measured."""
    took = [point.extra.get("save_s") for point in points if point.event == "checkpoint"]
    return max((float(one) for one in took if isinstance(one, int | float)), default=None)


@dataclass(frozen=True)
class Speeds:
    """The samples a second of a run's steps that say how fast it trains."""

    values: tuple[float, ...]
    warm: bool
    """Whether they are from after the warm-up; False if the run is too short to have others."""


def speeds_of(points: Iterable[MetricPoint]) -> Speeds:
    """Return the speeds of the last world size, after each attempt's warm-up.

    A run resumed on more nodes is not averaged with its beginning.
    """
    attempts: list[list[float]] = [[]]
    world_size = None
    for point in points:
        if point.event == "start":
            if point.world_size is not None and point.world_size != world_size:
                attempts = []
            attempts.append([])
        world_size = point.world_size if point.world_size is not None else world_size
        counted = point.event == "step" and point.step is not None
        if counted and point.samples_per_s is not None and point.samples_per_s > 0:
            attempts[-1].append(point.samples_per_s)
    warm = [speed for attempt in attempts for speed in attempt[WARM_UP_STEPS:]]
    # A run that is too short to warm up: its own speed is better than none.
    return Speeds(tuple(warm or (speed for each in attempts for speed in each)), bool(warm))


class RunMetrics:
    """The metrics of all runs in the history's file."""

    def __init__(self, file: Database) -> None:
        self._file = file

    def add(
        self,
        run_id: str,
        lines: Sequence[bytes],
        span: tuple[int, int] | None = None,
        *,
        instead: int | None = None,
    ) -> int:
        """Append lines of metrics.jsonl; return the number of broken lines, which it skips.

        `span` is the range of bytes that the lines were cut from. With it, the lines are added
        only when the run's `metrics_offset` is the span's start, and the same transaction moves
        the offset to the span's end: two processes that fetched the same bytes add them once.
        `instead` is for a file that was rewritten: the known offset in the old file, whose
        points are removed first. So are the points of a running run's log, if lines replace them;
        their span ends at minus the log's bytes. A run with more than MOST_POINTS keeps every
        second step, then every fourth, and so on; the file at the site has them all.
        """
        texts = [_text(line) for line in lines if line.strip()]
        good = [text for text in texts if parse_line(text.encode("utf-8", "replace"))]
        broken = len(texts) - len(good)
        with self._file.transaction() as db:
            row = db.execute("SELECT metrics_offset FROM runs WHERE id = ?", (run_id,)).fetchone()
            if row is None:
                raise unknown_run(run_id)
            if span is not None and max(0, row[0]) != (span[0] if instead is None else instead):
                return 0
            log_again = row[0] < 0 and span is not None and (good or span[1] >= 0)
            if instead is not None or log_again:
                db.execute("DELETE FROM metrics WHERE run = ?", (run_id,))
                db.execute("UPDATE runs SET broken_metrics = 0 WHERE id = ?", (run_id,))
            append_lines(db, run_id, good)
            while _count(db, run_id) > MOST_POINTS:
                _thin(db, run_id)
            db.execute(
                "UPDATE runs SET broken_metrics = broken_metrics + ?, metrics_offset = ?"
                " WHERE id = ?",
                (broken, row[0] if span is None else span[1], run_id),
            )
        return broken

    def continues(self, run_id: str, offset: int, line: bytes) -> bool:
        """Return whether `line`, which ends at byte `offset` of metrics.jsonl, may be the last one.

        Also True when it cannot be compared: a line that could not be read was not kept, and
        another process may have added more since.
        """
        newest = self._file.rows(
            "SELECT metrics_offset, (SELECT line FROM metrics WHERE run = id"
            " ORDER BY ordinal DESC LIMIT 1) FROM runs WHERE id = ?",
            (run_id,),
        )
        same = not newest or newest[0][0] != offset or newest[0][1] == _text(line)
        return same or parse_line(line) is None

    def of(self, run_id: str, *, last: int | None = None) -> list[MetricPoint]:
        """Return the run's points in the order they were written; only the `last` ones if given."""
        rows = self._file.rows(
            "SELECT line FROM metrics WHERE run = ? ORDER BY ordinal DESC LIMIT ?",
            (run_id, -1 if last is None else max(0, last)),
        )
        points = (parse_line(str(row[0]).encode()) for row in reversed(rows))
        return [point for point in points if point is not None]

    def slowest_save(self, run_id: str) -> float | None:
        """Return the seconds of the run's slowest save; None if none was measured."""
        rows = self._file.rows(
            "SELECT line FROM metrics WHERE run = ? AND instr(line, '\"checkpoint\"')", (run_id,)
        )
        return slowest_save(point for row in rows if (point := parse_line(str(row[0]).encode())))

    def global_batch(self, run_id: str) -> int | None:
        """Return the samples of a step that the run reported last; None if it reported none."""
        rows = self._file.rows(
            "SELECT line FROM metrics WHERE run = ? AND instr(line, '\"global_batch\"')"
            " ORDER BY ordinal DESC LIMIT 1",
            (run_id,),
        )
        point = parse_line(str(rows[0][0]).encode()) if rows else None
        return point.global_batch if point else None

    def figures(self, run_id: str) -> list[MetricPoint]:
        """Return the run's points with only loss and speed, in a fraction of the time of `of`.

        SQLite takes the values from the lines; its JSON has no NaN.
        """
        rows = self._file.rows(
            "SELECT json_extract(line, '$.event'), json_extract(line, '$.step'),"
            " json_extract(line, '$.world_size'), json_extract(line, '$.loss'),"
            " json_extract(line, '$.samples_per_s')"
            " FROM (SELECT ordinal, replace(line, 'NaN', 'null') AS line FROM metrics"
            " WHERE run = ?) WHERE json_valid(line) ORDER BY ordinal",
            (run_id,),
        )
        return [
            MetricPoint(event or "step", step=step, world_size=world_size, loss=_number(loss),
                        samples_per_s=_number(speed))
            for event, step, world_size, loss, speed in rows
        ]  # fmt: skip

    def broken(self, run_id: str) -> int:
        """Return how many lines of the run's metrics.jsonl could not be read."""
        query = "SELECT CAST(broken_metrics AS INTEGER) FROM runs WHERE id = ?"
        rows = self._file.rows(query, (run_id,))
        return int(rows[0][0]) if rows else 0


def append_lines(db: sqlite3.Connection, run_id: str, lines: Iterable[str]) -> None:
    """Add lines after the last one of a run."""
    (first,) = db.execute(
        "SELECT coalesce(max(ordinal) + 1, 0) FROM metrics WHERE run = ?", (run_id,)
    ).fetchone()
    rows = ((run_id, at, line) for at, line in enumerate(lines, first))
    db.executemany("INSERT INTO metrics VALUES (?, ?, ?)", rows)


def _count(db: sqlite3.Connection, run_id: str) -> int:
    (count,) = db.execute("SELECT count(*) FROM metrics WHERE run = ?", (run_id,)).fetchone()
    return int(count)


def _thin(db: sqlite3.Connection, run_id: str) -> None:
    """Drop every second step between the ends, but not an attempt's last one.

    Other events stay, unless there are so many that the points would not become fewer.
    """
    ordinals, events = [], []
    for ordinal, line in db.execute(
        "SELECT ordinal, line FROM metrics WHERE run = ? ORDER BY ordinal", (run_id,)
    ):
        point = parse_line(str(line).encode())
        ordinals.append(ordinal)
        events.append(point.event if point else "")
    ends = min(_WHOLE_ENDS, len(ordinals) // 4)
    middle = range(ends, len(ordinals) - ends)
    steps = [at for at in middle if events[at] == "step" and events[at + 1] != "start"]
    dropped = (steps if len(steps) * 2 > len(middle) else middle)[::2]
    db.executemany(
        "DELETE FROM metrics WHERE run = ? AND ordinal = ?",
        [(run_id, ordinals[at]) for at in dropped],
    )


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip()


SHAPE = 24
"""Number of points in the loss curve's preview."""
_KEPT = 4000
"""Number of runs whose preview is cached."""

GlanceKey = tuple[str, int]
"""A run, and the bytes of its metrics that are in history: with more, it is inspected again."""


@dataclass(frozen=True)
class Glance:
    """The part of a run's metrics shown in a row."""

    loss: tuple[float, ...] = ()
    last_loss: float | None = None
    samples_per_s: float | None = None
    """The median step after the warm-up, as a summary has it."""


def glance_of(points: Sequence[MetricPoint]) -> Glance:
    """Return the preview of a run's points."""
    from statistics import median

    losses = [point.loss if point.event == "step" else None for point in points]
    speeds = speeds_of(points).values
    last = len(points) - 1
    places = sorted({last * at // (SHAPE - 1) for at in range(SHAPE)}) if points else []
    return Glance(
        tuple(loss for at in places if (loss := losses[at]) is not None),
        next((loss for loss in reversed(losses) if loss is not None), None),
        median(speeds) if speeds else None,
    )


class Glances:
    """Cached previews of the runs. Thread-safe."""

    def __init__(self, metrics: RunMetrics) -> None:
        self._metrics = metrics
        self._kept: OrderedDict[GlanceKey, Glance] = OrderedDict()
        self._lock = Lock()

    def latest(self, key: GlanceKey) -> Glance | None:
        """Return the cached preview of a run, or else the one from before it had more points."""
        with self._lock:
            same = (one for one in reversed(self._kept) if one[0] == key[0])
            return self._kept.get(key) or self._kept.get(next(same, key))

    def known(self, key: GlanceKey) -> Glance | None:
        """Return the cached preview of a run, without reading anything."""
        with self._lock:
            return self._kept.get(key)

    def take(self, keys: Iterable[GlanceKey]) -> None:
        """Preview runs; HistoryError if the history cannot be read."""
        for key in keys:
            if self.known(key) is None:
                glance = glance_of(self._metrics.figures(key[0]))
                with self._lock:
                    self._kept[key] = glance
                    while len(self._kept) > _KEPT:
                        self._kept.popitem(last=False)
