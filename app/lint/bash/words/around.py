"""What the shell does around one line of a script: functions, conditions, loops, pipes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tree_sitter import Node

from lumitui.app.lint.bash.words.source import File, Source
from lumitui.app.lint.bash.words.tree import Tree
from lumitui.app.lint.model.position import Position

Kind = Literal["function", "condition", "loop", "piped in", "piped out", "redirection"]
_KINDS: dict[str, Kind] = {
    "function_definition": "function", "if_statement": "condition", "case_statement": "condition",
    "for_statement": "loop", "while_statement": "loop", "c_style_for_statement": "loop",
}  # fmt: skip
_REDIRECTS = {"file_redirect", "heredoc_redirect", "herestring_redirect"}
_MOST_NODES = 20_000


@dataclass(frozen=True)
class Part:
    """One thing that the shell does."""

    kind: Kind
    text: str
    """Its first line, as written."""


def around(text: str, at: Position) -> Iterator[Part]:
    """Yield a script's functions, conditions and loops, and pipes and redirections of one line."""
    tree = Tree(Source.of(File(text.replace("\r\n", "\n").replace("\r", " ").replace("\0", " "))))
    waiting, count = [tree.root], 0
    while waiting and count < _MOST_NODES:
        node = waiting.pop()
        count += 1
        if node.type in _KINDS:
            yield Part(_KINDS[node.type], _first(node, tree))
        elif node.type == "pipeline":
            yield from _pipe(node, tree, at)
        elif node.type in _REDIRECTS and node.parent and _holds(node.parent, tree, at):
            yield Part("redirection", _first(node, tree))
        if node.type not in ("command_substitution", "process_substitution"):
            waiting.extend(reversed(node.children))


def _first(node: Node, tree: Tree) -> str:
    return tree.text(node).split("\n")[0].strip()


def _holds(node: Node, tree: Tree, at: Position) -> bool:
    """Whether a statement has the line in it."""
    own = tree.position(node)
    start = (at.line, at.column)
    return (own.line, own.column) <= start < (own.end_line, own.end_column)


def _pipe(node: Node, tree: Tree, at: Position) -> Iterator[Part]:
    parts = node.named_children
    for number, part in enumerate(parts):
        if _holds(part, tree, at):
            yield from (Part("piped in", _first(each, tree)) for each in parts[:number])
            yield from (Part("piped out", _first(each, tree)) for each in parts[number + 1 :])
