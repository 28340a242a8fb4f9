"""A run as columns of the history's file; which columns there are follows from `Run`."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lumitui.app.history.run import Provenance, Run
from lumitui.app.job.launch import Layout, Price
from lumitui.app.job.spec import JobSpec
from lumitui.remote.scheduler.protocol import State

Column = str | int | float | None

_RUN = TypeAdapter(Run)
_JSON: dict[str, TypeAdapter[Any]] = {
    "spec": TypeAdapter(JobSpec),
    "layout": TypeAdapter(Layout),
    "price": TypeAdapter(Price),
    "log_sizes": TypeAdapter(dict[int, int]),
}
"""The fields that a column holds as JSON; of the others it holds the value."""
_NAMES = tuple(item.name for item in fields(Run) if item.name != "provenance")


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
    """Return `run` as columns."""
    row = {name: column(getattr(run, name)) for name in _NAMES}
    code = run.provenance
    row |= {"git_commit": column(code.commit), "branch": column(code.branch)}
    return row | {"patch": column(code.patch), "dirty": int(code.dirty)}


def from_row(row: Mapping[str, Any]) -> Run:
    """Return the run of columns; a text that was not read is empty.

    Raises:
        ValueError: another version wrote something that this one cannot read; it names the field.
    """
    name = ""
    try:
        values = {name: row[name] for name in _NAMES}
        for name, part in _JSON.items():
            values[name] = part.validate_json(row[name])
        name = ""
        values["state"] = State(row["state"])
        code = Provenance(row["git_commit"], row["branch"], row["patch"], bool(row["dirty"]))
        return _RUN.validate_python(Run(**values, provenance=code))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in (name, *first["loc"]) if part != "")
        raise ValueError(f"{place}: {first['msg']}") from error
    except KeyError as error:
        raise ValueError(f"the column {error} is missing") from error
