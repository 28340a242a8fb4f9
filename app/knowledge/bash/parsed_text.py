"""A text of bash as a syntax tree, with offsets in characters."""

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
        """Parse `source`; odd text becomes nodes of the type ERROR."""
        self.source = source
        # To bash all of these are letters. The grammar's scanner (0.25.1) asks C's isalpha() about
        # them, which reads outside of its table from U+0100 on: `{` and U+F7DC0 end the process.
        clean = _NO_ASCII.sub("x", source.text)
        # Of `A=$B/$C/d` it makes two words and a command; of `A=$B%$C%d` one assignment. What a
        # node says is read in the source, so that its text stays as it was written.
        # bash ends the comment in `# why` at the backtick; the grammar ends it with the line.
        clean = _REMARK.sub(lambda match: " " * len(match[0]), clean)
        data = _ASSIGNED.sub(lambda match: _AFTER_NAME.sub(r"\1%", match[0]), clean).encode()
        self.root: Node = Parser(_LANGUAGE).parse(data).root_node

    def span(self, node: Node) -> tuple[int, int]:
        """Return the offsets of a node's first character, and behind its last."""
        start, end = node.start_byte, node.end_byte
        # The grammar counts a space in front of `${…}` in quotes as part of it.
        while node.type == "expansion" and start < end and self.source.text[start] in " \t\n":
            start += 1
        return start, end

    def text(self, node: Node) -> str:
        """Return a node as it is written."""
        start, end = self.span(node)
        return self.source.text[start:end]

    def position(self, node: Node) -> Position:
        """Return where a node was written."""
        return self.source.position(*self.span(node))

    def errors(self) -> Iterator[Node]:
        """Yield the outermost nodes that bash would not understand, and those it misses."""
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
    """Return the statements of `a && b && c`, which is nested to the left, in their order."""
    if node.type != "list":
        return node.children
    found: list[Node] = []
    current: Node | None = node
    while current is not None and current.type == "list":
        found = [*current.children[1:], *found] if current.children else found
        current = current.children[0] if current.children else None
    return [*([current] if current is not None else []), *found]
