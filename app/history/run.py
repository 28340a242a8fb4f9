"""What the laptop remembers of a run: one record, as history keeps it and screens show it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypedDict, get_args, get_type_hints

from lumitui.app.job.launch import Layout, Price
from lumitui.app.job.spec import JobSpec
from lumitui.remote import walltime
from lumitui.remote.errors import HistoryError, InputError
from lumitui.remote.scheduler.protocol import State
from lumitui.remote.site.yaml_document import SEPARATOR, UNSEEN

_LONGEST_NOTE = 200


@dataclass(frozen=True)
class Provenance:
    """Which code was sent, as git knows it; all empty outside a repository."""

    commit: str | None
    branch: str | None
    """None also on a detached head."""
    patch: str
    """The uncommitted changes and the names of untracked files; `''` when there are none."""
    dirty: bool


@dataclass(frozen=True)
class Run:
    """One launch a person made, and what is known of it. Times are epoch seconds."""

    id: str
    name: str
    site: str
    created: float
    parent: str | None
    """The run it resubmits or scales."""
    spec: JobSpec
    script: str
    """job.sh as it was composed."""
    command: str
    layout: Layout
    price: Price
    global_batch: int | None
    deepspeed_config: str | None
    """The DeepSpeed configuration that was sent, with its batch fields."""
    project: str
    """The project's folder on the laptop."""
    job_file: str | None
    folder: str
    """The run's folder on the site."""
    root: str
    """The project's folder on the site; snapshots are in `root`/code."""
    token: str
    provenance: Provenance
    state: State
    snapshot: str | None = None
    job_id: str | None = None
    reason: str = ""
    word: str = ""
    """The scheduler's own word for the state."""
    rc: int | None = None
    failed_rank: int | None = None
    attempt: int = 1
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    updated: float = 0.0
    """When the site last told something; 0 before it did."""
    nodes_used: str = ""
    log_sizes: dict[int, int] = field(default_factory=dict)
    """Attempt to bytes."""
    binding: str | None = None
    """binding.json as the job wrote it."""
    metrics_offset: int = 0
    """Bytes of metrics.jsonl already here."""
    exits: int = 0
    """Attempts whose exit file is already here."""
    resumed_from: str | None = None
    note: str = ""
    expected_start: float | None = None
    """When the scheduler thinks that a queued job starts; it often starts earlier."""
    expected_end: float | None = None
    """When the time limit ends it, as the scheduler says; None once it has ended."""

    @property
    def latest_end(self) -> float | None:
        """When the time limit ends the job; None where that is not known, or it has ended."""
        if self.state.is_final or self.expected_end:
            return None if self.state.is_final else self.expected_end
        start = self.started or self.expected_start
        return start + walltime.seconds_of(self.spec.time) if start else None

    def billed(self, now: float) -> float:
        """Return about what its last attempt has cost so far, in the unit of its price."""
        return min(self.price.per_hour * self.elapsed(now) / 3600, self.price.amount)

    def elapsed(self, now: float) -> float:
        """Return the seconds the job has been running, or ran; 0 before it starts."""
        if self.started is None:
            return 0.0
        end = now
        if self.state.is_final or self.state is State.UNKNOWN:
            # An end nobody saw: the last news bounds it.
            end = self.updated if self.ended is None else self.ended
        return max(0.0, end - self.started)


class Changes(TypedDict, total=False):
    """What may change in a run after it was made."""

    state: State
    job_id: str | None
    reason: str
    word: str
    rc: int | None
    failed_rank: int | None
    attempt: int
    submitted: float | None
    started: float | None
    ended: float | None
    updated: float
    nodes_used: str
    log_sizes: dict[int, int]
    binding: str | None
    metrics_offset: int
    exits: int
    snapshot: str | None
    note: str
    folder: str
    resumed_from: str | None
    expected_start: float | None
    expected_end: float | None


UNFINISHED = tuple(state.value for state in State if not state.is_final)
"""The states in which something may still happen to a run."""

_PLAIN = tuple(
    item.name
    for item in fields(Run)
    if item.name not in ("spec", "layout", "price", "provenance", "state", "log_sizes")
)
"""The fields that a column holds as they are."""


def _types(hint: object) -> tuple[type, ...]:
    found = tuple(item for item in get_args(hint) or (hint,) if isinstance(item, type))
    return (*found, int) if float in found else found


_TYPES = {name: _types(hint) for name, hint in get_type_hints(Run).items() if name in _PLAIN}


def one_line(note: str) -> str:
    """Return `note` when it is one line of at most 200 characters that steers no terminal.

    Raises:
        InputError: it is not.
    """
    if UNSEEN.search(note) or SEPARATOR.search(note) or {"\n", "\t"} & set(note):
        raise InputError("A note is one line without control characters.", "Write it in one line.")
    if len(note) > _LONGEST_NOTE:
        raise InputError(
            f"The note has {len(note)} characters, more than {_LONGEST_NOTE}.", "Shorten it."
        )
    return note


def unknown_run(run_id: str) -> HistoryError:
    """Return the error for an id that is not in the history."""
    return HistoryError(
        f"The history has no run {run_id!r}.",
        "Look at the list of runs; `lumitui history --recover SITE` rebuilds what was lost.",
    )


def column(value: object) -> str | int | float | None:
    """Return a field's value as a column holds it: parts as JSON, text without lone surrogates.

    A file name that is not UTF-8 has such surrogates, and SQLite takes none.
    """
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return str(value).encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, JobSpec):
        return json.dumps(value.model_dump(mode="json", exclude_defaults=True))
    if isinstance(value, Layout | Price):
        return json.dumps(asdict(value))
    return json.dumps(value)


def to_row(run: Run) -> dict[str, str | int | float | None]:
    """Return `run` as columns."""
    row = {name: column(getattr(run, name)) for name in _PLAIN}
    row |= {name: column(getattr(run, name)) for name in ("spec", "layout", "price", "log_sizes")}
    row["state"] = run.state.value
    row["git_commit"], row["branch"] = run.provenance.commit, run.provenance.branch
    row["patch"] = column(run.provenance.patch)
    row["dirty"] = int(run.provenance.dirty)
    return row


def from_row(row: Mapping[str, Any]) -> Run:
    """Return the run of columns; a text that was not read is empty.

    Raises:
        ValueError: another version wrote what this one cannot read.
    """
    try:
        layout = json.loads(row["layout"])
        for name in ("masks", "planned_cores"):
            layout[name] = tuple(layout[name])
        plain = {name: row[name] for name in _PLAIN}
        for name, value in plain.items():
            # SQLite keeps what a column is given, and a failing disk gives anything.
            if not isinstance(value, _TYPES[name]):
                raise ValueError(f"{name} is {type(value).__name__}")
        return Run(
            **plain,
            spec=JobSpec.model_validate_json(row["spec"]),
            layout=Layout(**layout),
            price=Price(**json.loads(row["price"])),
            provenance=Provenance(
                row["git_commit"], row["branch"], row["patch"], bool(row["dirty"])
            ),
            state=State(row["state"]),
            log_sizes={int(key): size for key, size in json.loads(row["log_sizes"]).items()},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
