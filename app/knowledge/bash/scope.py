"""The variables and functions of a shell while its script is read."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from lumitui.app.knowledge.bash.origins import Pieces, plain
from lumitui.app.knowledge.bash.parsed_text import Tree

_LONGEST = 65_536
"""Maximum length of a value in characters; a longer one (repeated `X=$X$X`) counts as unknown."""


@dataclass(frozen=True)
class Value:
    """The value of a variable."""

    pieces: Pieces | None
    """None if the script sets it to an unknowable value."""
    items: tuple[Pieces, ...] | None = None
    """The items of an array, otherwise None."""
    exported: bool = False

    @property
    def _written(self) -> str:
        if self.items is not None:
            return "\0".join(plain(item) for item in self.items)
        return "" if self.pieces is None else plain(self.pieces)


UNKNOWN = Value(None)


@dataclass
class Scope:
    """One shell's state at a position in its script."""

    values: dict[str, Value] = field(default_factory=dict)
    functions: dict[str, tuple[Tree, Node]] = field(default_factory=dict)
    exported_functions: set[str] = field(default_factory=set)
    """Functions that bash passes to the shells it starts (`export -f`)."""
    positional: tuple[Pieces, ...] | None = None
    """`$1` and so on; None if unknown."""
    export_all: bool = False
    """After `set -a`."""
    changing: frozenset[str] = frozenset()
    """Variables whose values bash changes, or that refer to others: `declare -i -u -l -n`."""

    def copy(self) -> "Scope":
        """Return an independent copy, as for a subshell."""
        return Scope(
            dict(self.values), dict(self.functions), set(self.exported_functions),
            self.positional, self.export_all, self.changing,
        )  # fmt: skip

    def child(self) -> "Scope":
        """Return the scope of a program that this shell starts: only the exported names."""
        kept = self.exported_functions & self.functions.keys()
        return Scope(
            {name: each for name, each in self.values.items() if each.exported},
            {name: self.functions[name] for name in kept},
            set(kept),
        )

    def set(self, name: str, value: Value) -> None:
        """Set a variable, which stays exported if it was."""
        before = self.values.get(name)
        if name in self.changing:
            value = replace(value, pieces=None, items=None)
        size = sum(len(piece.text) for piece in value.pieces or ())
        if size > _LONGEST or len(value.pieces or ()) > 1_000:
            value = replace(value, pieces=None)
        exported = value.exported or self.export_all or bool(before and before.exported)
        self.values[name] = replace(value, exported=exported)

    def export(self, name: str, *, given: bool = True) -> None:
        """Mark a variable as exported to programs, or as no longer exported."""
        before = self.values.get(name)
        if before is not None:
            self.values[name] = replace(before, exported=given)

    def join(self, ends: Iterable["Scope"]) -> None:
        """Merge the scopes at the ends of branches: the values they agree on are known."""
        scopes = list(ends)
        for name in {name for scope in scopes for name in scope.values}:
            found = [scope.values[name] for scope in scopes if name in scope.values]
            same = len({(each._written, each.pieces is None) for each in found}) == 1
            exported = any(each.exported for each in found)
            chosen = found[0] if same else UNKNOWN
            self.values[name] = replace(chosen, exported=exported)
        for scope in scopes:
            self.functions.update(scope.functions)
            self.exported_functions |= scope.exported_functions
