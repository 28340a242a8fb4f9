"""The columns of the table of runs, and a run as such a row: all follow from the fields of `Run`.

Each of its fields is a column here; the field's type determines how it is declared, written and
read.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import Field, asdict, dataclass, fields
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin

from lumitui.app.history.kept_spec import KeptSpec
from lumitui.app.history.run import Provenance, Run, Text
from lumitui.app.history.strict import check_of, from_json
from lumitui.app.job.launch import Price, RankLayout
from lumitui.remote.site.gpu_use import GpuUse
from lumitui.remote.site.reading.writer import installed
from lumitui.remote.site.states import State

Column = str | int | float | None
Part = KeptSpec | RankLayout | Price
"""The content of a text in lists."""
_KEYWORDS = {"commit": "git_commit"}
"""Fields whose names are SQL keywords."""
_SQL = {int: "INTEGER", bool: "INTEGER", float: "REAL"}
"""The SQL types of columns that are not TEXT."""


@dataclass(frozen=True)
class RunColumn:
    """One column of the table of runs."""

    name: str
    place: str
    """The path of the run's field: `note`, `provenance.branch`."""
    declared: str
    """Its SQL type; the column of a stored text contains its number."""
    text: Text | None
    """The reader of a stored text; None if the column contains the value itself."""
    empty: str | None
    """The value of a text that was not read."""
    read: Callable[[Any, str], Any]
    """Return the field's value from a column or stored text; raise ValueError with the place."""
    of: Callable[[Run], object]
    """Return the field of a run."""


def _column(item: Field[Any], prefix: str = "") -> RunColumn:
    kind, text = item.type, None
    if get_origin(kind) is Annotated:
        kind, text = get_args(kind)
    name, place = _KEYWORDS.get(item.name, item.name), prefix + item.name
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    declared = f"{name} {_SQL.get(kinds[0], 'TEXT')}"
    declared += "" if NoneType in kinds else " NOT NULL"
    declared = f"{name} INTEGER" if text else declared
    empty = None if NoneType in kinds else ""
    return RunColumn(name, place, declared, text, empty, _reader(kind), attrgetter(place))


def _reader(kind: Any) -> Callable[[Any, str], Any]:
    if kind is State or kind is bool:
        return lambda value, place: kind(value)
    if kind is object:  # a job file, read late
        return lambda value, place: value if isinstance(value, KeptSpec) else KeptSpec(value)
    if kind == GpuUse | None:
        of_use = check_of(GpuUse)
        return lambda value, place: None if value is None else from_json(of_use, value, place)
    check = check_of(kind)
    if kind in (RankLayout, Price):
        return lambda value, place: (
            value if isinstance(value, kind) else from_json(check, value, place)
        )
    if get_origin(kind) in (dict, tuple):
        return lambda value, place: from_json(check, value, place)
    return check


_OF_CODE = [_column(item, "provenance.") for item in fields(Provenance)]
_OF_RUN = [_column(item) for item in fields(Run) if item.name != "provenance"]
COLUMNS = (*_OF_RUN, *_OF_CODE)
_READ_RUN = [(column.name, column.place, column.read) for column in _OF_RUN]
_READ_CODE = [(column.name, column.place, column.read) for column in _OF_CODE]
PLAIN = tuple(column.name for column in COLUMNS if not column.text)
"""The columns that contain a value themselves, not the number of a text."""
TEXTS = {column.name: column.text for column in COLUMNS if column.text}
"""The columns that contain the number of a text."""
PARTS = tuple(name for name, text in TEXTS.items() if text.listed)
"""The texts without which a run is unreadable."""
NUMBERS = ("nodes", "gpus", "ranks", "rate", "most")
"""The columns with numbers from layout and price, which SQL cannot read inside a text."""
EMPTY = {column.name: column.empty for column in COLUMNS if column.text}
"""The value of a text that was not read."""


def written(value: object) -> Column:
    """Return a field's column value: parts as JSON, text without lone surrogates.

    A file name that is not UTF-8 has such surrogates, which SQLite refuses.
    """
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return str(value).encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, tuple):
        return json.dumps([asdict(item) for item in value])
    if isinstance(value, RankLayout | Price | GpuUse):
        return json.dumps(asdict(value))
    return json.dumps(value)


def to_row(run: Run) -> dict[str, Column]:
    """Return `run` as columns, with the texts themselves."""
    row = {column.name: written(column.of(run)) for column in COLUMNS if column.name != "spec"}
    # An older lumitui names the one that wrote it, see `KeptSpec`.
    spec = {"lumitui": installed()} | run.spec.model_dump(mode="json", exclude_defaults=True)
    return row | {"spec": json.dumps(spec)}


def numbers_of(run: Run) -> dict[str, Column]:
    """Return the NUMBERS columns of `run`, by which lists are filtered and sorted."""
    layout, price = run.layout, run.price
    sizes = (layout.nodes, layout.gpus_per_node, layout.ranks_per_node)
    numbers = (*sizes, price.per_hour, price.amount)
    return {
        name: float(number) if math.isfinite(number) else 0.0
        for name, number in zip(NUMBERS, numbers, strict=True)
    }


def part_of(kind: str, text: str) -> Part:
    """Return the content of a text in lists; ValueError, with the field, if it is unreadable."""
    part: Part = next(column for column in COLUMNS if column.name == kind).read(text, kind)
    return part


def from_row(row: Mapping[str, Any], *, late: bool = False) -> Run:
    """Return the run in these columns; texts that were not read are empty.

    The parts are JSON, or results of `part_of`. With `late`, the job file is read on the first use
    of `spec`.

    Raises:
        ValueError: another version wrote a value that this one cannot read; the message names the
            field.
    """
    try:
        values = {place: read(row[name], place) for name, place, read in _READ_RUN}
        if not late:
            values["spec"] = values["spec"].spec
        code = Provenance(*[read(row[name], place) for name, place, read in _READ_CODE])
        return Run(**values, provenance=code)
    except KeyError as error:
        raise ValueError(f"the column {error} is missing") from error
