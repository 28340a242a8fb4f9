"""What bash itself does: `source`, `eval`, `read`, `trap`, and texts that go into files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node

from lumitui.app.knowledge.bash.interpreter.shell_state import Running
from lumitui.app.knowledge.bash.request.loaded_modules import loaded
from lumitui.app.knowledge.bash.words.expand import ExpandedWord
from lumitui.app.knowledge.bash.words.origins import ParsedSource, Piece, Pieces, plain
from lumitui.app.knowledge.bash.words.parsed_text import Tree
from lumitui.app.knowledge.bash.words.scope import Value
from lumitui.remote.site.source_position import Position

DEEPEST = 60
"""Statements within statements; what stands deeper is not read."""


@dataclass
class Builtins(Running):
    """A shell that does its own commands."""

    def _statement(self, node: Node, *, background: bool) -> None:
        raise NotImplementedError

    def _builtin(
        self,
        name: str,
        arguments: list[ExpandedWord],
        given: Mapping[str, Pieces],
        at: Position,
        *,
        background: bool,
    ) -> bool:
        """Do what bash itself does; False: it is another program."""
        words = [each.text for each in arguments[1:]]
        if name == "set":
            self._export_all(words)
        elif name in ("module", "ml"):
            if self.outer is None:
                self.reading.modules = loaded(self.reading.modules, name, words)
        elif name in ("source", ".") and words:
            self.note(name, arguments[1:], at)
            self._source(words[0])
            return True
        elif name == "eval" and self.depth < DEEPEST:
            self._eval(arguments[1:], background=background)
            return True
        elif name == "trap" and self.depth and len(words) > 1 and {"EXIT", "0"} & set(words[1:]):
            self.reading.at_exit = arguments[1:2]
        elif name == "shift" and self.scope.positional:
            count = int(words[0]) if words and words[0].isdecimal() else 1
            self.scope.positional = self.scope.positional[count:]
        elif name in ("read", "readarray", "mapfile"):
            names = [word for word in words if re.fullmatch(r"[A-Za-z_]\w*", word)]
            # Of several variables each gets a part of the line.
            whole = given.get("<") if name == "read" and len(names) == 1 else None
            for word in names:
                self.scope.set(word, Value(whole))
        elif name in ("cat", "tee") and given.get("<"):
            target = given.get(">") or (arguments[-1].pieces if name == "tee" and words else ())
            if target:
                self.reading.written[plain(target)] = ParsedSource(given["<"])
        else:
            return False
        self.note(name, arguments[1:], at)
        return True

    def _export_all(self, words: Sequence[str]) -> None:
        """Do `set -a`, `set +a` and their long forms."""
        for number, word in enumerate(words):
            if word == "--":
                return
            following = words[number + 1] if number + 1 < len(words) else ""
            long = re.fullmatch(r"[-+]\w*o", word) and following == "allexport"
            if long or re.match(r"[-+]\w*a", word):
                self.scope.export_all = word.startswith("-")

    def _source(self, path: str) -> None:
        found = self.reading.script(path)
        if found is None or self.depth >= DEEPEST:
            return
        kept = self.tree
        self.tree = Tree(found[1])
        self._statement(self.tree.root, background=False)
        self.tree = kept

    def _eval(self, arguments: Sequence[ExpandedWord], *, background: bool) -> None:
        pieces: list[Piece] = []
        for each in arguments:
            if pieces and each.pieces:
                pieces.append(replace(pieces[-1], text=" ", kind="literal"))
            pieces += each.pieces
        if not pieces:
            return
        kept = self.tree
        self.tree = Tree(ParsedSource(tuple(pieces)))
        self._statement(self.tree.root, background=background)
        self.tree = kept
