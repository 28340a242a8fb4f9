"""The numbers in kept texts that lists need: a layout's nodes and GPUs, and a price.

Many runs share one layout and one price, and a kept text never changes: each is read once.
"""

import json
import math
from collections.abc import Collection
from typing import TYPE_CHECKING

from lumitui.app.history.file.sqlite_file import Database
from lumitui.app.history.rows.kept_texts import unpack

if TYPE_CHECKING:
    from lumitui.app.history.listing.filter_syntax import ShapeTerm, SizeTerm

Row = tuple[float, ...]
_FIELDS = {"layout": ("nodes", "gpus_per_node", "ranks_per_node"), "price": ("per_hour", "amount")}
_COLUMNS = {
    "sizes": ("layout", ("layout", "nodes")),
    "prices": ("price", ("price", "rate", "most")),
}
"""The tables that an order may need: of which texts, and their columns."""


class KeptNumbers:
    """What the layouts and prices of one file say."""

    def __init__(self, file: Database) -> None:
        """Read from `file`, when something asks."""
        self._file = file
        self._opened = 0
        self._known: dict[str, dict[int, Row]] = {kind: {} for kind in _FIELDS}

    def layouts(self, size: "SizeTerm | ShapeTerm") -> Collection[int]:
        """Return the numbers of the layouts that have a size or a shape."""
        from lumitui.app.history.listing.filter_syntax import ShapeTerm

        if isinstance(size, ShapeTerm):
            return [number for number, row in self._of("layout").items() if size.holds(*row)]
        nodes_only = size.of == "nodes"
        return [
            number
            for number, (nodes, gpus, _) in self._of("layout").items()
            if size.holds(int(nodes if nodes_only else nodes * gpus))
        ]

    def table(self, name: str) -> str:
        """Return the table `sizes` or `prices` for SQL, which cannot read the texts itself."""
        kind, columns = _COLUMNS[name]
        rows = [(number, *values)[: len(columns)] for number, values in self._of(kind).items()]
        listed = ", ".join(f"({', '.join(map(repr, row))})" for row in rows)
        empty = f"SELECT {', '.join('NULL' for _ in columns)} WHERE 0"
        return f"{name} ({', '.join(columns)}) AS ({'VALUES ' + listed if rows else empty})"

    def join(self, name: str) -> str:
        """Return how runs `r` find their row of the table."""
        kind = _COLUMNS[name][0]
        return f"LEFT JOIN {name} ON {name}.{kind} = r.{kind}"

    def _of(self, kind: str) -> dict[int, Row]:
        if self._opened != (opened := self._file.version()[0]):
            # Another file has other numbers for its texts.
            self._opened, self._known = opened, {kind: {} for kind in _FIELDS}
        known = self._known[kind]
        rows = self._file.rows(
            "SELECT id, packed, digest FROM blobs WHERE kind = ? AND id > ?",
            (kind, max(known, default=0)),
        )
        for number, packed, digest in rows:
            known[number] = _numbers(kind, packed, digest)
        return known


def _numbers(kind: str, packed: object, digest: object) -> Row:
    """Return the numbers of a text, 0 for what the disk has lost or another version wrote."""
    try:
        data = json.loads(unpack(packed, digest))
        found = tuple(float(data[name]) for name in _FIELDS[kind])
    except (ValueError, TypeError, KeyError, OverflowError):
        return (0.0,) * len(_FIELDS[kind])
    return found if all(map(math.isfinite, found)) else (0.0,) * len(found)
