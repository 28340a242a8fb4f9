"""A run as columns of the history's file; which columns there are follows from `Run`."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import cache, lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lumitui.app.history.run import Provenance, Run
from lumitui.app.history.texts.packing import unpack
from lumitui.app.history.texts.store import OF_RUNS, Column
from lumitui.app.job.launch import Layout, Price
from lumitui.app.job.spec import JobSpec
from lumitui.remote.scheduler.protocol import State

_JSON: dict[str, Any] = {
    "spec": JobSpec,
    "layout": Layout,
    "price": Price,
    "log_sizes": dict[int, int],
}
"""The fields that are kept as JSON; of the others the value is kept."""
PARTS = ("spec", "layout", "price")
"""The texts without which there is no run."""
_NAMES = tuple(item.name for item in fields(Run) if item.name != "provenance")
COLUMNS = (*(name for name in _NAMES if name not in OF_RUNS), "git_commit", "branch", "dirty")
"""The columns that hold a value themselves, not the number of a text."""


def column(value: object) -> Column:
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


def to_row(run: Run) -> dict[str, Column]:
    """Return `run` as columns, with the texts themselves."""
    row = {name: column(getattr(run, name)) for name in _NAMES}
    code = run.provenance
    row |= {"git_commit": column(code.commit), "branch": column(code.branch)}
    return row | {"patch": column(code.patch), "dirty": int(code.dirty)}


@lru_cache(maxsize=2048)
def part_of(kind: str, packed: object, digest: object) -> JobSpec | Layout | Price:
    """Return what a kept text says: many runs share one, which is read once.

    Raises:
        LostText: the disk has not kept it.
        ValueError: another version wrote it; the message names the field.
    """
    text = unpack(packed, digest).decode("utf-8", "replace")
    found: JobSpec | Layout | Price = _parsed(kind, text)
    return found


def from_row(row: Mapping[str, Any]) -> Run:
    """Return the run of columns; a text that was not read is empty.

    The parts are JSON, or what `part_of` returned.

    Raises:
        ValueError: another version wrote something that this one cannot read; it names the field.
    """
    try:
        values = {name: row[name] for name in _NAMES}
        for name in _JSON:
            if not isinstance(row[name], JobSpec | Layout | Price):
                values[name] = _parsed(name, row[name])
        values["state"] = State(row["state"])
        code = Provenance(row["git_commit"], row["branch"], row["patch"], bool(row["dirty"]))
        run: Run = _adapter(Run).validate_python(Run(**values, provenance=code))
        return run
    except ValidationError as error:
        raise _complaint(error) from error
    except KeyError as error:
        raise ValueError(f"the column {error} is missing") from error


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what reads a type; made late, because it takes 15 ms."""
    return TypeAdapter(kind)


def _parsed(name: str, text: Any) -> Any:
    try:
        return _adapter(_JSON[name]).validate_json(text)
    except ValidationError as error:
        raise _complaint(error, name) from error


def _complaint(error: ValidationError, name: str = "") -> ValueError:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in (name, *first["loc"]) if part != "")
    return ValueError(f"{place}: {first['msg']}")
