"""Comparison of two to four runs: job file, script, code and metrics."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from lumitui.app.explain import words
from lumitui.app.follow.results.job_rows import differing_rows, value_words
from lumitui.app.follow.results.summary import Curve, curve, summarize
from lumitui.app.history.history import History
from lumitui.app.history.metric_points import MetricPoint
from lumitui.app.history.run import Run
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.run_folder import CODE
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.transfer.snapshots.snapshot_store import read_sums
from lumitui.remote.transport.transport import Transport

MOST_RUNS = 4


@dataclass(frozen=True)
class Contrast:
    """One difference between runs."""

    what: str
    values: tuple[str, ...]
    """One value per run; `-` if it has none."""


@dataclass(frozen=True)
class RunComparison:
    """The differences between runs, according to the history."""

    runs: tuple[Run, ...]
    fields: tuple[Contrast, ...]
    """Differences between the job files."""
    code: tuple[Contrast, ...]
    metrics: tuple[Contrast, ...]
    """Time, cost and metrics of all runs, even if equal."""
    scripts: tuple[tuple[str, ...], ...]
    """For each run but the first: the lines of a unified diff against the first run's script."""
    losses: tuple[Curve, ...]
    """One for each run."""
    speeds: tuple[Curve, ...]
    """Samples per second, one for each run."""


@dataclass(frozen=True)
class FileChange:
    """One code file that differs between two runs."""

    path: str
    what: Literal["added", "removed", "changed"]


@dataclass(frozen=True)
class CodeChange:
    """The code files in which a run differs from the first run."""

    run: str
    files: tuple[FileChange, ...] = ()
    unknown: str = ""
    """Why the files are unknown; empty if they are known."""


class Comparisons:
    """Compares runs of a history."""

    def __init__(self, history: History, transport: Callable[[Run], Transport]) -> None:
        """Read from `history`; `transport` gives the connection to a run's site."""
        self._history = history
        self._transport = transport

    def of(self, run_ids: Sequence[str]) -> RunComparison:
        """Return the differences between two to four runs, without querying a site."""
        if not 2 <= len(run_ids) <= MOST_RUNS:
            chosen = words.count(len(run_ids), "run")
            raise InputError(f"{chosen} cannot be compared.", f"Mark two to {MOST_RUNS} runs.")
        runs = tuple(self._history.get(run_id) for run_id in run_ids)
        points = [self._history.metrics.of(run.id) for run in runs]
        return RunComparison(
            runs,
            contrasted_fields(runs),
            _code(runs),
            (
                *map(Contrast, ("ran", "billed"), zip(*map(_spent, runs), strict=True)),
                *_metrics(points, runs),
            ),
            tuple(_script(runs[0], other) for other in runs[1:]),
            tuple(curve(some) for some in points),
            tuple(curve(some, of="samples_per_s") for some in points),
        )

    def code(self, run_ids: Sequence[str]) -> tuple[CodeChange, ...]:
        """Return the code files in which each run differs from the first.

        The site is queried once for each file list that the history lacks.

        Raises:
            InputError: no such run.
        """
        runs = [self._history.get(run_id) for run_id in run_ids]
        by_snapshot: dict[tuple[str, str, str | None], dict[str, str]] = {}
        troubles: dict[tuple[str, str], str] = {}
        for run in runs:
            place = (run.site, run.root)
            if run.snapshot and (*place, run.snapshot) not in by_snapshot:
                snapshots = {one.snapshot for one in runs if (one.site, one.root) == place}
                try:
                    for snapshot, files in self._files(run, snapshots).items():
                        by_snapshot[*place, snapshot] = files
                except LumiError as error:
                    troubles[place] = str(error)
        return tuple(_changed(runs[0], run, by_snapshot, troubles) for run in runs[1:])

    def _files(self, run: Run, snapshots: set[str | None]) -> dict[str, dict[str, str]]:
        """Return the files of the `snapshots` snapshots of the folder that `run` is in."""
        by_snapshot: dict[str, dict[str, str]] = {}
        text = self._history.snapshots.manifest(run.site, run.root)
        if text is not None:
            manifest = Manifest.parse(text)
            by_snapshot[manifest.id] = {one.path: one.sha256 for one in manifest.files}
        missing = sorted(one for one in snapshots if one and one not in by_snapshot)
        if missing:
            by_snapshot |= read_sums(self._transport(run), f"{run.root}/{CODE}", missing)
        return by_snapshot


def _changed(
    first: Run,
    run: Run,
    by_snapshot: dict[tuple[str, str, str | None], dict[str, str]],
    troubles: dict[tuple[str, str], str],
) -> CodeChange:
    if run.snapshot and run.snapshot == first.snapshot:
        return CodeChange(run.id)  # a snapshot's id names exactly its files
    for one in (first, run):
        if (one.site, one.root, one.snapshot) not in by_snapshot:
            why = troubles.get((one.site, one.root)) or "its list of files is not on the site"
            why = why if one.snapshot else "none was sent"
            return CodeChange(run.id, unknown=f"The code of {one.id} is unknown: {why}.")
    old = by_snapshot[first.site, first.root, first.snapshot]
    return CodeChange(run.id, tuple(changes(old, by_snapshot[run.site, run.root, run.snapshot])))


def changes(old: dict[str, str], new: dict[str, str]) -> list[FileChange]:
    """Return the files that differ between two lists of hashes by path, sorted by path."""
    return [
        FileChange(path, "added" if path not in old else "changed" if path in new else "removed")
        for path in sorted({*old, *new})
        if old.get(path) != new.get(path)
    ]


def contrasted_fields(runs: Sequence[Run]) -> tuple[Contrast, ...]:
    """Return the keys in which the job files of runs differ."""
    return tuple(Contrast(*row) for row in differing_rows([run.spec for run in runs]))


def _code(runs: Sequence[Run]) -> tuple[Contrast, ...]:
    rows: list[tuple[str, Sequence[object]]] = [
        ("commit", [run.provenance.commit for run in runs]),
        ("branch", [run.provenance.branch for run in runs]),
        ("uncommitted changes", [run.provenance.dirty for run in runs]),
        ("snapshot", [run.snapshot for run in runs]),
    ]
    return tuple(
        Contrast(what, tuple(map(value_words, values)))
        for what, values in rows
        if any(value != values[0] for value in values)
    )


def _spent(run: Run) -> tuple[str, str]:
    """Return how long a run ran and what it cost, as far as its site has told."""
    ran, cost = run.ran(run.updated), run.billed(run.updated)
    billed = words.units(words.price(cost), run.price.unit) if cost else "-"
    return words.length(ran) if ran else "-", billed


def _metrics(points: Sequence[Sequence[MetricPoint]], runs: Sequence[Run]) -> tuple[Contrast, ...]:
    sums = [summarize(some) for some in points]
    if not any(total.steps for total in sums):
        return ()
    names = dict.fromkeys(name for run in runs for name in run.spec.metrics)
    own = [(name, [_last(some, name) for some in points]) for name in names]
    rows: list[tuple[str, list[float | None]]] = [
        (f"{sums[0].unit}s", [total.steps for total in sums]),
        ("loss", [total.last_loss for total in sums]),
        ("samples/s", [total.samples_per_s for total in sums]),
        ("test accuracy", [total.test_accuracy for total in sums]),
        ("seconds", [total.seconds for total in sums]),
        *(row for row in own if any(value is not None for value in row[1])),
    ]
    texts = {"samples/s": words.rate}
    return tuple(
        Contrast(what, tuple(map(texts.get(what, words.number), values))) for what, values in rows
    )


def _last(points: Sequence[MetricPoint], name: str) -> float | None:
    """Return the last value of the job file's metric `name`."""
    values = (point.extra.get(name) for point in reversed(points))
    return next((value for value in values if isinstance(value, float)), None)


def _script(one: Run, two: Run) -> tuple[str, ...]:
    old, new = one.script.splitlines(), two.script.splitlines()
    return tuple(difflib.unified_diff(old, new, one.id, two.id, lineterm="", n=1))
