"""A run as columns of the history's file; which columns there are follows from `Run`."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import lru_cache
from typing import Any

from lumitui.app.history.attempts import AttemptRecord
from lumitui.app.history.kept_spec import KeptSpec
from lumitui.app.history.rows.strict import check_of, from_json
from lumitui.app.history.run import Provenance, Run
from lumitui.app.history.texts.packing import unpack
from lumitui.app.history.texts.text_table import OF_RUNS, Column
from lumitui.app.job.launch import Layout, Price
from lumitui.remote.site.reading.writer import installed
from lumitui.remote.site.states import State

Part = KeptSpec | Layout | Price
PARTS = ("spec", "layout", "price")
"""The texts without which there is no run."""
_NAMES = tuple(item.name for item in fields(Run) if item.name != "provenance")
COLUMNS = (*(name for name in _NAMES if name not in OF_RUNS), "git_commit", "branch", "dirty")
"""The columns that hold a value themselves, not the number of a text."""
_CHECKS = [
    (item.name, check_of(item.type))
    for item in fields(Run)
    if item.name not in ("provenance", "state", "log_sizes", "attempts", *PARTS)
]
_PARTS = {"layout": check_of(Layout), "price": check_of(Price)}
_LOG_SIZES = check_of(dict[int, int])
_ATTEMPTS = check_of(tuple[AttemptRecord, ...])
_CODE = [(item.name, check_of(item.type)) for item in fields(Provenance)]


def column(value: object) -> Column:
    """Return a field's value as a column holds it: parts as JSON, text without lone surrogates.

    A file name that is not UTF-8 has such surrogates, and SQLite takes none.
    """
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return str(value).encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, tuple):
        return json.dumps([asdict(item) for item in value])
    if isinstance(value, Layout | Price):
        return json.dumps(asdict(value))
    return json.dumps(value)


def to_row(run: Run) -> dict[str, Column]:
    """Return `run` as columns, with the texts themselves."""
    row = {name: column(getattr(run, name)) for name in _NAMES if name != "spec"}
    # An older lumitui names the one that wrote it, see `KeptSpec`.
    spec = {"lumitui": installed()} | run.spec.model_dump(mode="json", exclude_defaults=True)
    row["spec"] = json.dumps(spec)
    code = run.provenance
    row |= {"git_commit": column(code.commit), "branch": column(code.branch)}
    return row | {"patch": column(code.patch), "dirty": int(code.dirty)}


@lru_cache(maxsize=2048)
def part_of(kind: str, packed: object, digest: object) -> Part:
    """Return what a kept text says: many runs share one, which is read once.

    Raises:
        LostText: the disk has not kept it.
        ValueError: another version wrote it; the message names the field.
    """
    return _part(kind, unpack(packed, digest).decode("utf-8", "replace"))


def from_row(row: Mapping[str, Any], *, late: bool = False) -> Run:
    """Return the run of columns; a text that was not read is empty.

    The parts are JSON, or what `part_of` returned. `late` leaves the job file unread until
    the run is asked for its `spec`.

    Raises:
        ValueError: another version wrote something that this one cannot read; it names the field.
    """
    try:
        values = {name: check(row[name], name) for name, check in _CHECKS}
        for kind in PARTS:
            part = row[kind]
            values[kind] = part if isinstance(part, Part) else _part(kind, part)
        if not late:
            values["spec"] = values["spec"].spec
        values["log_sizes"] = from_json(_LOG_SIZES, row["log_sizes"], "log_sizes")
        values["attempts"] = from_json(_ATTEMPTS, row["attempts"], "attempts")
        values["state"] = State(row["state"])
        code = {"commit": row["git_commit"], "dirty": bool(row["dirty"])}
        code |= {name: row[name] for name in ("branch", "patch")}
        known = {name: check(code[name], f"provenance.{name}") for name, check in _CODE}
        return Run(**values, provenance=Provenance(**known))
    except KeyError as error:
        raise ValueError(f"the column {error} is missing") from error


def _part(kind: str, text: str) -> Part:
    if kind == "spec":
        return KeptSpec(text)
    found: Part = from_json(_PARTS[kind], text, kind)
    return found
