"""The variables and functions that a shell knows while its script is read."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from lumitui.app.knowledge.bash.origins import Pieces, plain
from lumitui.app.knowledge.bash.parsed_text import Tree

_LONGEST = 65_536
"""Characters of a value; a longer one (`X=$X$X` in a row) counts as not known."""


@dataclass(frozen=True)
class Value:
    """What a variable holds."""

    pieces: Pieces | None
    """None: the script sets it to something that nobody can know."""
    items: tuple[Pieces, ...] | None = None
    """Of an array."""
    exported: bool = False

    @property
    def _written(self) -> str:
        if self.items is not None:
            return "\0".join(plain(item) for item in self.items)
        return "" if self.pieces is None else plain(self.pieces)


UNKNOWN = Value(None)


@dataclass
class Scope:
    """One shell's state at a place of its script."""

    values: dict[str, Value] = field(default_factory=dict)
    functions: dict[str, tuple[Tree, Node]] = field(default_factory=dict)
    exported_functions: set[str] = field(default_factory=set)
    """Those that bash hands on to the shells it starts (`export -f`)."""
    positional: tuple[Pieces, ...] | None = None
    """`$1` and so on; None: not known."""
    export_all: bool = False
    """After `set -a`."""
    changing: frozenset[str] = frozenset()
    """Variables that bash changes when they are set, or that name others: `declare -i -u -l -n`."""

    def copy(self) -> "Scope":
        """Return a copy that changes by itself: of a subshell."""
        return Scope(
            dict(self.values), dict(self.functions), set(self.exported_functions),
            self.positional, self.export_all, self.changing,
        )  # fmt: skip

    def child(self) -> "Scope":
        """Return the scope of a program that this shell starts: what is exported, alone."""
        kept = self.exported_functions & self.functions.keys()
        return Scope(
            {name: each for name, each in self.values.items() if each.exported},
            {name: self.functions[name] for name in kept},
            set(kept),
        )

    def set(self, name: str, value: Value) -> None:
        """Set a variable; one that was exported stays so."""
        before = self.values.get(name)
        if name in self.changing:
            value = replace(value, pieces=None, items=None)
        size = sum(len(piece.text) for piece in value.pieces or ())
        if size > _LONGEST or len(value.pieces or ()) > 1_000:
            value = replace(value, pieces=None)
        exported = value.exported or self.export_all or bool(before and before.exported)
        self.values[name] = replace(value, exported=exported)

    def export(self, name: str, *, given: bool = True) -> None:
        """Mark a variable as one that programs get, or no longer get."""
        before = self.values.get(name)
        if before is not None:
            self.values[name] = replace(before, exported=given)

    def join(self, ends: Iterable["Scope"]) -> None:
        """Go on after branches that ended in these scopes: what they agree on is known."""
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
