"""A syntax tree of bash text, with offsets in characters."""

import re
from collections.abc import Iterator

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from lumitui.app.knowledge.bash.origins import ParsedSource
from lumitui.remote.site.source_position import Position

_LANGUAGE = Language(tree_sitter_bash.language())
_NO_ASCII = re.compile(r"[^\x00-\x7f]")
_ASSIGNED = re.compile(r"\b\w+\+?=[^\s\"'`;|&(){}]*\$[^\s\"'`;|&(){}]*")
_REMARK = re.compile(r"(?<=[ \t])`[ \t]*#[^`\n\\]*`(?=[ \t\n]|$)")
_AFTER_NAME = re.compile(r"(\$\w+)[-/.,+]")


class Tree:
    """The syntax tree of a source."""

    def __init__(self, source: ParsedSource) -> None:
        """Parse `source`; invalid text becomes nodes of type ERROR."""
        self.source = source
        # To bash, all of these are letters. The grammar's scanner (0.25.1) calls C's isalpha(),
        # which reads outside its table from U+0100 on: `{` and U+F7DC0 crash the process.
        clean = _NO_ASCII.sub("x", source.text)
        # The grammar parses `A=$B/$C/d` as two words and a command, but `A=$B%$C%d` as one
        # assignment. Texts of nodes come from the source, so they stay as written. bash ends the
        # comment in `# why` at the backtick; the grammar ends it with the line.
        clean = _REMARK.sub(lambda match: " " * len(match[0]), clean)
        data = _ASSIGNED.sub(lambda match: _AFTER_NAME.sub(r"\1%", match[0]), clean).encode()
        self.root: Node = Parser(_LANGUAGE).parse(data).root_node

    def span(self, node: Node) -> tuple[int, int]:
        """Return the offsets of a node's first character and of the one after its last."""
        start, end = node.start_byte, node.end_byte
        # The grammar counts a space in front of `${…}` in quotes as part of it.
        while node.type == "expansion" and start < end and self.source.text[start] in " \t\n":
            start += 1
        return start, end

    def text(self, node: Node) -> str:
        """Return a node's text as written."""
        start, end = self.span(node)
        return self.source.text[start:end]

    def position(self, node: Node) -> Position:
        """Return the position at which a node was written."""
        return self.source.position(*self.span(node))

    def errors(self) -> Iterator[Node]:
        """Yield the outermost nodes that are errors or missing."""
        if not self.root.has_error:
            return
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if node.is_error or node.is_missing:
                yield node
            elif node.has_error:
                waiting.extend(reversed(node.children))


def flat(node: Node) -> list[Node]:
    """Return the statements of `a && b && c`, which the tree nests to the left, in order."""
    if node.type != "list":
        return node.children
    found: list[Node] = []
    current: Node | None = node
    while current is not None and current.type == "list":
        found = [*current.children[1:], *found] if current.children else found
        current = current.children[0] if current.children else None
    return [*([current] if current is not None else []), *found]
