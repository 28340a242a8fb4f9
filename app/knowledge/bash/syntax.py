"""What bash would refuse of a script's text, and what the parser alone does not understand."""

import re
from collections.abc import Iterator

from tree_sitter import Node

from lumitui.app.knowledge.bash.words.parsed_text import Tree
from lumitui.app.knowledge.bash.words.slips import slips_of
from lumitui.app.knowledge.script_job import Trouble

_OPENS = {
    "if": "fi", "for": "done", "while": "done",
    "until": "done", "case": "esac", "{": "}",
}  # fmt: skip
"""What begins a part, and what ends it."""
_CLOSERS = {"fi", "done", "esac", "}", ")"}
_PARTS = {
    "if_statement", "do_group", "case_statement", "compound_statement", "subshell",
    "command_substitution",
}  # fmt: skip
"""What bash, too, reads up to its end; of `${…}` and `((…))` the parser does not know all forms."""
_MOST = 20


def troubles_of(tree: Tree) -> Iterator[Trouble]:
    """Yield what is wrong with a text: quotes and parts that nothing closes, and what is odd.

    An error of the parser that ends before the text does is one of bash's rarer forms more often
    than a mistake: it is no more than `not-understood`. What follows from a slip is not said.
    """
    slips = list(slips_of(tree))
    yield from slips
    opened = min((each.at.line for each in slips if each.id == "heredoc-open"), default=None)
    for number, node in enumerate(tree.errors()):
        if number > _MOST:
            return
        trouble = _trouble(node, tree)
        swallowed = opened is not None and trouble.at.line >= opened
        if not swallowed and not (slips and trouble.id == "not-understood"):
            yield trouble


def _trouble(node: Node, tree: Tree) -> Trouble:
    start, end = tree.span(node)
    text = tree.source.text[start:end].lstrip()
    begin = end - len(text) if not node.is_missing else start
    at = tree.source.position(begin, min(begin + 1, len(tree.source.text)))
    if node.is_missing:
        if node.type in "\"'`":
            return Trouble("unclosed-quote", f"A `{node.type}` is missing here.", at)
        if node.type in _CLOSERS and node.parent is not None and node.parent.type in _PARTS:
            return _unclosed(node, tree)
        return Trouble("not-understood", f"A `{node.type}` is missing here.", at)
    if text[:1] in ("'", '"', "`"):
        return Trouble("unclosed-quote", f"The quote {text[:1]} is not closed.", at)
    if text.startswith("<<"):
        word = text.split("\n")[0][:40]
        return Trouble("unclosed-quote", f"The text that `{word}` begins has no end.", at)
    if not tree.source.text[end:].strip() and (found := _swallows(node, tree)):
        return found
    return Trouble("not-understood", "This was not understood as bash.", at)


def _unclosed(node: Node, tree: Tree) -> Trouble:
    """Return the message about a part without its end: the parser knows which part it is."""
    part = node.parent
    opener = part.children[0] if part is not None and part.children else node
    if part is not None and part.type == "do_group" and part.parent is not None:
        opener = part.parent.children[0]
    return _missing(node.type, opener, tree)


def _missing(what: str, opener: Node, tree: Tree) -> Trouble:
    at = tree.position(opener)
    word = tree.text(opener)
    message = f"The `{word}` of line {at.line} has no `{what}`: bash refuses the script."
    nested = _else_if(tree) if what == "fi" else ""
    return Trouble("syntax-error", f"{message}{nested}", at, "elif" if nested else what)


def _else_if(tree: Tree) -> str:
    lines = tree.source.text.split("\n")
    number = next((n for n, text in enumerate(lines, 1) if re.match(r"\s*else\s+if\b", text)), 0)
    return f" `else if` in line {number} begins an `if` of its own." if number else ""


def _swallows(node: Node, tree: Tree) -> Trouble | None:
    """Return the message about an error that reaches the end of the text."""
    kinds = [child.type for child in node.children]
    if ";&" in tree.text(node) or ";;&" in tree.text(node):
        return None  # valid in bash, and unknown to the grammar (0.25.1)
    if "if" in kinds and "then" not in kinds:
        return _missing("then", node.children[kinds.index("if")], tree)
    if {"for", "while", "until"} & set(kinds) and "do" not in kinds:
        number = next(n for n, kind in enumerate(kinds) if kind in ("for", "while", "until"))
        return _missing("do", node.children[number], tree)
    open_parts: list[Node] = []
    for number, child in enumerate(node.children):
        function = child.type == "{" and kinds[number - 1 : number] == [")"]
        if child.type in ("if", "for", "while", "until", "case") or function:
            open_parts.append(child)
        elif child.type in _CLOSERS and open_parts:
            open_parts.pop()
    if not open_parts:
        return None
    return _missing(_OPENS[open_parts[-1].type], open_parts[-1], tree)
