"""A text of bash as a syntax tree, with offsets in characters."""

from collections.abc import Iterator

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from lumitui.app.lint.bash.words.source import Source
from lumitui.app.lint.model.position import Position

_LANGUAGE = Language(tree_sitter_bash.language())


class Tree:
    """The syntax tree of a source."""

    def __init__(self, source: Source) -> None:
        """Parse `source`; odd text becomes nodes of the type ERROR."""
        self.source = source
        data = source.text.encode(errors="replace")
        self.root: Node = Parser(_LANGUAGE).parse(data).root_node
        self._chars = None if len(data) == len(source.text) else _char_of_byte(source.text)

    def span(self, node: Node) -> tuple[int, int]:
        """Return the offsets of a node's first character, and behind its last."""
        start, end = node.start_byte, node.end_byte
        if self._chars is not None:
            start, end = self._chars[start], self._chars[end]
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


def _char_of_byte(text: str) -> list[int]:
    found = [
        number
        for number, char in enumerate(text)
        for _ in range(len(char.encode(errors="replace")))
    ]
    return [*found, len(text)]
