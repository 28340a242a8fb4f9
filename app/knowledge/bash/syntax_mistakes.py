"""Parts of a script that bash would refuse, or read differently than intended."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from tree_sitter import Node

from lumitui.app.knowledge.bash.parsed_text import Tree
from lumitui.app.knowledge.script_job import Trouble
from lumitui.remote.site.source_position import Position

_OPENS = {
    "if": "fi", "for": "done", "while": "done",
    "until": "done", "case": "esac", "{": "}",
}  # fmt: skip
"""Words that begin a part, with those that end it."""
_CLOSERS = {"fi", "done", "esac", "}", ")"}
_PARTS = {
    "if_statement", "do_group", "case_statement", "compound_statement", "subshell",
    "command_substitution",
}  # fmt: skip
"""Parts that bash also reads to their end; the parser does not know all of `${…}` and `((…))`."""
_MOST_ERRORS = 20


def troubles_of(tree: Tree) -> Iterator[Trouble]:
    """Yield the mistakes in a text: unclosed quotes and parts, and unknown syntax.

    A parser error that ends before the text is more often rare bash syntax than a mistake, so it is
    only `not-understood`. Consequences of a mistake are omitted.
    """
    mistakes = list(mistakes_of(tree))
    yield from mistakes
    opened = min((each.at.line for each in mistakes if each.id == "heredoc-open"), default=None)
    for number, node in enumerate(tree.errors()):
        if number > _MOST_ERRORS:
            return
        trouble = _trouble(node, tree)
        swallowed = opened is not None and trouble.at.line >= opened
        if not swallowed and not (mistakes and trouble.id == "not-understood"):
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
        return Trouble("unclosed-quote", f"The heredoc that `{word}` begins has no end.", at)
    if not tree.source.text[end:].strip() and (found := _swallows(node, tree)):
        return found
    return Trouble("not-understood", "lumitui cannot parse this as bash.", at)


def _unclosed(node: Node, tree: Tree) -> Trouble:
    """Return the message about an unclosed part that the parser identified."""
    part = node.parent
    opener = part.children[0] if part is not None and part.children else node
    if part is not None and part.type == "do_group" and part.parent is not None:
        opener = part.parent.children[0]
    return _missing(node.type, opener, tree)


def _missing(what: str, opener: Node, tree: Tree) -> Trouble:
    at = tree.position(opener)
    word = tree.text(opener)
    message = f"The `{word}` on line {at.line} has no `{what}`: bash refuses the script."
    nested = _else_if(tree) if what == "fi" else ""
    return Trouble("syntax-error", f"{message}{nested}", at, "elif" if nested else what)


def _else_if(tree: Tree) -> str:
    lines = tree.source.text.split("\n")
    number = next((n for n, text in enumerate(lines, 1) if re.match(r"\s*else\s+if\b", text)), 0)
    return f" `else if` on line {number} begins another `if`." if number else ""


def _swallows(node: Node, tree: Tree) -> Trouble | None:
    """Return the message about an error that reaches the end of the text."""
    kinds = [child.type for child in node.children]
    if ";&" in tree.text(node) or ";;&" in tree.text(node):
        return None  # valid in bash but unknown to the grammar (0.25.1)
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


_MOST_NODES = 100_000
_MOST_BRACKETS = 300
_LARGE = 65_536
"""Length from which brackets are not checked in a text with errors: each takes long there."""
_MOST = 20
"""Maximum number of reported mistakes per script."""
_TEXTS = frozenset({
    "raw_string", "string", "heredoc_body", "comment", "ansi_c_string", "regex", "case_item",
    "array", "subscript",
})  # fmt: skip
"""Nodes in which a bracket is an ordinary character."""
_GLUED = re.compile(
    r"(?:^|[;&|(!]|\b(?:if|elif|while|until|then|do|else))[ \t]*(\[\[?)(?=[$\"'])"
    r"(?!\S*\]\+?=|[\"']\S*\))",
    re.MULTILINE,
)
"""Does not match `["a"]=1` of an array or `["a"]*)` of a case."""
_KEYWORD = re.compile(r"^[ \t]*(if|elif|while|until)(\[\[?)(?=[ \t])", re.MULTILINE)


@dataclass(frozen=True)
class _Heredoc:
    word: str
    tabs: bool
    """Whether tabs may precede its end marker: `<<-`."""
    line: int
    """The 0-based line on which it begins."""
    offset: int
    """The offset of its `<<`."""


def mistakes_of(tree: Tree) -> Iterator[Trouble]:
    """Yield the parts that bash reads differently than intended, up to the script's end."""
    end = early_end(tree)
    for each in islice(chain(_open_heredocs(tree), _brackets(tree)), _MOST):
        if end is None or each.at < end:  # below may be another language: `exec julia "$0"`
            yield each


def _nodes(tree: Tree, kind: str, *, not_in: tuple[str, ...] = ()) -> Iterator[Node]:
    """Yield the nodes of a type in the order of the text."""
    waiting, count = [tree.root], 0
    while waiting and count < _MOST_NODES:
        node = waiting.pop()
        count += 1
        if node.type == kind:
            yield node
        if node.type not in not_in:
            waiting.extend(reversed(node.children))


# Heredocs.


def _open_heredocs(tree: Tree) -> Iterator[Trouble]:
    text = tree.source.text
    if "<<" not in text:
        return
    lines = text.split("\n")
    behind = 0
    for each in _heredocs(tree):
        start = max(behind, _last_line(lines, each.line) + 1)
        end = next((n for n in range(start, len(lines)) if _ends(lines[n], each)), None)
        if end is None:
            yield _open(each, lines, start, tree)
            return  # the rest is text
        behind = end + 1


def _heredocs(tree: Tree) -> Iterator[_Heredoc]:
    """Yield the heredocs; those within `$(…)` may also end at its `)`."""
    text = tree.source.text
    for node in _nodes(tree, "heredoc_start", not_in=("command_substitution", "string")):
        operator = node.prev_sibling
        begin, end = tree.span(node)
        word = re.sub(r"['\"\\]", "", text[begin:end])
        if operator is not None and re.fullmatch(r"[\w.-]+", word):
            line = text.count("\n", 0, begin)
            yield _Heredoc(word, operator.type == "<<-", line, operator.start_byte)


def _last_line(lines: list[str], line: int) -> int:
    """Return the last line of a command that backslashes continue."""
    while line + 1 < len(lines) and re.search(r"(?<!\\)(?:\\\\)*\\$", lines[line]):
        line += 1
    return line


def _ends(line: str, heredoc: _Heredoc) -> bool:
    return (line.lstrip("\t") if heredoc.tabs else line) == heredoc.word


def _open(heredoc: _Heredoc, lines: list[str], start: int, tree: Tree) -> Trouble:
    word, begin = heredoc.word, heredoc.offset
    newline = tree.source.text.find("\n", begin)
    at = tree.source.position(begin, len(tree.source.text) if newline < 0 else newline)
    nearly = next((n for n in range(start, len(lines)) if lines[n].strip() == word), None)
    message = (
        f"No line consists only of `{word}`, so all lines below are text, and bash runs none of "
        "them."
    )
    if nearly is not None:
        message = f"There are spaces around the `{word}` on line {nearly + 1}, so it does not end "
        message += "the heredoc: bash runs none of the lines below."
    return Trouble("heredoc-open", message, at, "" if nearly is None else str(nearly + 1))


# Brackets.


def _brackets(tree: Tree) -> Iterator[Trouble]:
    text = tree.source.text
    if "[" not in text or (len(text) > _LARGE and tree.root.has_error):
        return
    for match in islice(_GLUED.finditer(text), _MOST_BRACKETS):
        start, end = match.span(1)
        if not _is_text(tree, start):
            word = re.match(r"\S*", text[start:])
            name = word[0][:30] if word else ""
            message = f"bash takes `{name}` for a program, and does not find it."
            yield Trouble("bracket-without-blank", message, tree.source.position(start, end))
    for match in islice(_KEYWORD.finditer(text), _MOST_BRACKETS):
        start, end = match.span(2)
        if not _is_text(tree, match.start(1), _TEXTS - {"subscript"}):
            message = f"bash takes `{match[1]}{match[2]}` for a program."
            at = tree.source.position(start, end)
            yield Trouble("bracket-without-blank", message, at, "before")
    for node in _nodes(tree, "test_command"):
        if len(node.children) < 3 or node.children[-1].type not in ("]", "]]"):
            continue
        start, end = tree.span(node.children[-1])
        if text[start - 1] not in " \t\n\\" and not node.has_error:
            message = f"`{text[start:end]}` is part of the word before it: the test has no end."
            at = tree.source.position(start, end)
            yield Trouble("bracket-without-blank", message, at, "before")


def _is_text(tree: Tree, offset: int, texts: frozenset[str] = _TEXTS) -> bool:
    """Return whether a character is in a string, a heredoc, a comment or a pattern."""
    node: Node | None = tree.root.descendant_for_byte_range(offset, offset + 1)
    while node is not None:
        if node.type in texts and (node.type != "case_item" or _is_pattern(node, offset)):
            return True
        node = node.parent
    return False


def _is_pattern(node: Node, offset: int) -> bool:
    """Return whether a character of a case item is in its pattern, not in its commands."""
    closing = next((each for each in node.children if each.type == ")"), None)
    return closing is None or offset < closing.start_byte


# Early ends.


def early_end(tree: Tree) -> Position | None:
    """Return the `exit` or `exec` that always runs, or None."""
    for node in tree.root.named_children:
        command = node.child_by_field_name("body") if node.type == "redirected_statement" else node
        if command is None or command.type != "command":
            continue
        words = [each for each in command.named_children if each.type != "comment"]
        name = tree.text(words[0]) if words else ""
        runs = [tree.text(each) for each in words[1:] if each.type != "file_redirect"]
        following = node.next_sibling
        joined = following is not None and following.type in ("&&", "||", "|", "&")
        replaced = name == "exec" and runs and not runs[0].startswith(("{", "-"))
        if (name == "exit" or replaced) and not joined:
            return tree.position(command)
    return None
