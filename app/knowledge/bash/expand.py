"""Expansion of a command line's words: quotes, variables, arithmetic and word splitting."""

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import translate
from typing import Literal

from tree_sitter import Node

from lumitui.app.knowledge.bash.origins import Piece, Pieces, known, plain, span, unsplit
from lumitui.app.knowledge.bash.parsed_text import Tree
from lumitui.app.knowledge.bash.scope import Scope, Value
from lumitui.app.knowledge.program.syntax_tree import tree_of
from lumitui.app.knowledge.script_job import CommandWord, Shell
from lumitui.remote.site.source_position import Position

_MOST = 10**15
_BINARY: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def evaluate(text: str, names: Mapping[str, str]) -> int | None:
    """Return the value of the arithmetic expression `text` with these `names`; None if unknown."""
    if len(text) > 200:
        return None
    try:
        tree = tree_of(text.replace("$", "").replace("{", "").replace("}", "").strip(), "eval")
        return _value(tree.body, names, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr, names: Mapping[str, str], depth: int) -> int | None:
    if depth > 30:
        return None
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int and abs(node.value) < _MOST else None
    if isinstance(node, ast.Name):
        held = names.get(node.id, "").strip()
        return (
            int(held)
            if (held.isdecimal() and len(held) < 16 and not held.startswith("0")) or held == "0"
            else None
        )
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand, names, depth + 1)
        return None if inner is None else -inner
    if not isinstance(node, ast.BinOp):
        return None
    left = _value(node.left, names, depth + 1)
    right = _value(node.right, names, depth + 1)
    if left is None or right is None:
        return None
    result = _combined(node.op, left, right)
    return result if result is not None and abs(result) < _MOST else None


def _combined(kind: ast.operator, left: int, right: int) -> int | None:
    if isinstance(kind, (ast.Div, ast.Mod)):
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if isinstance(kind, ast.Div) else left - quotient * right
    calculate = _BINARY.get(type(kind))
    return calculate(left, right) if calculate else None


_LONGEST_TRIMMED = 1_000
"""Maximum length of a value to trim by a pattern, in characters: every position is tried."""


def changed(text: str, operator: str) -> str | None:
    """Return `text` after `%.py`, `##*/`, `/a/b`, `:0:4`, `^^` or `,,`, or None if unsupported."""
    if match := re.fullmatch(r"(%%?|##?)([^$]*)", operator, re.DOTALL):
        return _trimmed(text, match[1], match[2].strip("\"'"))
    if match := re.fullmatch(r"(//?)([^/$*?\[]+)/?([^$]*)", operator, re.DOTALL):
        return text.replace(match[2], match[3], -1 if match[1] == "//" else 1)
    if match := re.fullmatch(r": ?(-?\d{1,6})(?::(\d{1,6}))?", operator):
        start = int(match[1])
        rest = text[start:]
        return rest[: int(match[2])] if match[2] else rest
    return {"^^": text.upper(), ",,": text.lower()}.get(operator)


def _trimmed(text: str, operator: str, pattern: str) -> str | None:
    if len(text) > _LONGEST_TRIMMED or pattern.count("*") > 4:
        return None
    matches = re.compile(translate(pattern)).match
    cuts = range(len(text) + 1)
    if operator[0] == "%":
        fits = [cut for cut in cuts if matches(text[cut:])]
        return text[: (fits[-1] if operator == "%" else fits[0])] if fits else text
    fits = [cut for cut in cuts if matches(text[:cut])]
    return text[(fits[0] if operator == "#" else fits[-1]) :] if fits else text


MOST = 2_000
"""Maximum number of words of a command."""


def splitting(pieces: Pieces) -> Pieces:
    """Return an unquoted value, which white space splits into words."""
    return tuple(
        replace(piece, kind="split") if piece.kind == "literal" else piece for piece in pieces
    )


def listed(items: tuple[Pieces, ...], *, quoted: bool) -> Pieces:
    """Return `"${A[@]}"`, in which each item is a word.

    Without quotes, bash also splits the text of a `bash -c` and runs only its first word. This
    function keeps the text whole, as its author meant it; `command-split` reports the mistake.
    """
    pieces: list[Piece] = []
    whole = shell_text(items)
    for number, item in enumerate(items):
        if pieces:
            pieces.append(replace(pieces[-1], text="", kind="break"))
        pieces += item if quoted or number == whole else splitting(item)
    return tuple(pieces)


def shell_text(words: Sequence[Pieces]) -> int | None:
    """Return the index of the text after `bash -c` in `words`, or None if it contains no blanks."""
    texts = [plain(word) for word in words]
    for number, text in enumerate(texts[:-1]):
        if re.fullmatch(r"-[a-z]*c", text) and number and " " in texts[number + 1].strip():
            shell = any(re.fullmatch(r"(.*/)?(ba|da|z)?sh", each) for each in texts[:number])
            return number + 1 if shell else None
    return None


def divided(pieces: Pieces) -> list[Pieces]:
    """Split pieces into words, as bash does after its expansions."""
    words: list[Pieces] = []
    current: list[Piece] = []
    for piece in pieces:
        if piece.kind == "break":
            words.append(tuple(current))
            current = []
            continue
        if piece.kind != "split":
            current.append(piece)
            continue
        at = 0
        for match in re.finditer(r"\s+", piece.text):
            if match.start() > at:
                current.append(_cut(piece, at, match.start()))
            if current:
                words.append(tuple(current))
                current = []
            at = match.end()
        if at < len(piece.text):
            current.append(_cut(piece, at, len(piece.text)))
    if current:
        words.append(tuple(current))
    return words[:MOST]


def _cut(piece: Piece, start: int, end: int) -> Piece:
    return replace(piece, text=piece.text[start:end], start=piece.start + start)


_DEEPEST = 40
"""Maximum nesting of expansions; deeper ones count as unknown."""
_PARAMETER = re.compile(
    r"\$\{(?P<sign>[!#]?)(?P<name>\w+|[@*])(?P<index>\[[^]]*\])?(?P<operator>[^}].*)?\}", re.DOTALL
)
_EXPANSIONS = {
    "simple_expansion", "expansion", "command_substitution", "arithmetic_expansion",
    "process_substitution",
}  # fmt: skip
_ESCAPED_IN_QUOTES = '$`"\\\n'
_ANSI = {
    "n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b",
    "e": "\33", "E": "\33", "f": "\f", "v": "\v", "?": "?",
}  # fmt: skip
_ANSI_ESCAPE = re.compile(
    r"\\(?:x(?P<hex>[0-9A-Fa-f]{1,2})|(?P<octal>[0-7]{1,3})|u(?P<short>[0-9A-Fa-f]{1,4})"
    r"|U(?P<long>[0-9A-Fa-f]{1,8})|c(?P<control>.)|(?P<one>.))",
    re.DOTALL,
)
"""Escape sequences in `$'…'`."""


@dataclass(frozen=True)
class ExpandedWord:
    """A word of a command, and the pieces it consists of."""

    word: CommandWord
    pieces: Pieces

    @property
    def text(self) -> str:
        """The value, with unknown parts as written."""
        return plain(self.pieces)

    @property
    def at(self) -> Position:
        """The word's position."""
        return self.word.at


class Expander:
    """Expands the words of one tree in one scope, in the role of `shell`."""

    def __init__(self, tree: Tree, scope: Scope, shell: Shell) -> None:
        self.tree, self.scope, self.shell = tree, scope, shell

    def arguments(self, node: Node) -> list[ExpandedWord]:
        """Return the words, possibly none, that a word of a command expands to."""
        pieces = self._pieces(node, quoted=False, depth=0)
        groups = divided(pieces)[:MOST]
        if not groups and node.type in ("string", "raw_string", "ansi_c_string"):
            groups = [()]
        if len(groups) == 1 and not any(piece.kind == "break" for piece in pieces):
            return [self._argument(groups[0], self.tree.position(node), self._unquoted(node), node)]
        return [self._argument(group, span(group), plain(group), node) for group in groups]

    def value(self, node: Node | None) -> Pieces:
        """Return the value of a variable that is set to this word."""
        return unsplit(self._pieces(node, quoted=False, depth=0)) if node else ()

    def items(self, node: Node) -> tuple[Pieces, ...]:
        """Return the items of an array, `(a "b c")`."""
        return tuple(
            unsplit(argument.pieces)
            for child in node.named_children
            if child.type != "comment"
            for argument in self.arguments(child)
        )[:MOST]

    def heredoc(self, node: Node) -> Pieces:
        """Return the text of a heredoc whose delimiter has no quotes."""
        start, end = self.tree.span(node)
        return unsplit(self._within(node, start, end, depth=0))

    def _argument(self, pieces: Pieces, at: Position, text: str, node: Node) -> ExpandedWord:
        unknown = [piece for piece in pieces if piece.kind == "unknown"]
        inert = any(piece.inert and "$" in piece.text for piece in pieces)
        expanded: Shell = unknown[0].shell if unknown else "never" if inert else self.shell
        held = unsplit(pieces)
        return ExpandedWord(CommandWord(text, at, quotes_of(node), expanded, known(held)), held)

    # Convert nodes to pieces.

    def _pieces(self, node: Node, *, quoted: bool, depth: int) -> Pieces:
        start, end = self.tree.span(node)
        kind = node.type
        if depth > _DEEPEST:
            return (self.tree.source.unknown(start, end, self.shell),)
        if kind in _EXPANSIONS:
            return self._expansion(node, quoted=quoted, depth=depth + 1)
        if kind == "raw_string":
            return self.tree.source.cut(start + 1, end - 1, inert=True)
        if kind == "string":
            return self._within(node, start + 1, end - 1, depth=depth + 1)
        if kind == "ansi_c_string":
            return tuple(
                replace(piece, text=_ANSI_ESCAPE.sub(_ansi, piece.text))
                for piece in self.tree.source.cut(start + 2, end - 1, inert=True)
            )
        if kind in ("command_name", "translated_string", "concatenation"):
            pieces: list[Piece] = []
            for child in node.children if kind != "translated_string" else node.named_children:
                pieces += self._pieces(child, quoted=quoted, depth=depth + 1)
            return tuple(pieces)
        return self._bare(start, end)

    def _bare(self, start: int, end: int) -> Pieces:
        """Return the pieces of an unquoted word, whose backslashes escape the next character."""
        text = self.tree.source.text
        home = re.match(r"~(?=/|$)", text[start:end])
        if home and not (start and text[start - 1] in "=:\"'}") and not self._outside(start):
            rest = self._bare(start + 1, end) if end > start + 1 else ()
            return (self.tree.source.unknown(start, start + 1, self.shell), *rest)
        return self._escaped(start, end, None)

    def _outside(self, start: int) -> bool:
        return self.tree.source.made_outside(start)

    def _escaped(self, start: int, end: int, only: str | None) -> Pieces:
        """Cut a stretch, dropping backslashes before characters of `only` (None: any character)."""
        source, text = self.tree.source, self.tree.source.text
        pieces: list[Piece] = []
        at = start
        while (slash := text.find("\\", at, end)) >= 0 and slash + 1 < end:
            following = text[slash + 1]
            if only is not None and following not in only:
                pieces += source.cut(at, slash + 2)
            else:
                pieces += source.cut(at, slash)
                if following != "\n":
                    pieces += source.cut(slash + 1, slash + 2, inert=True)
            at = slash + 2
        return (*pieces, *source.cut(at, end))

    def _within(self, node: Node, start: int, end: int, depth: int) -> Pieces:
        """Return the pieces of double-quoted text or a heredoc: literal text and expansions."""
        pieces: list[Piece] = []
        at = start
        for child in node.named_children:
            if child.type in _EXPANSIONS:
                low, high = self._extent(child)
                if low < at:
                    continue
                pieces += self._escaped(at, low, _ESCAPED_IN_QUOTES)
                pieces += self._expansion(child, quoted=True, depth=depth + 1)
                at = high
        return (*pieces, *self._escaped(at, end, _ESCAPED_IN_QUOTES))

    # Expansions.

    def _extent(self, node: Node) -> tuple[int, int]:
        """Return an expansion's offsets, without a blank before `$` that the grammar includes."""
        start, end = self.tree.span(node)
        text = self.tree.source.text
        while start < end and text[start].isspace():
            start += 1
        return start, end

    def _expansion(self, node: Node, *, quoted: bool, depth: int) -> Pieces:
        start, end = self._extent(node)
        unknown = (self.tree.source.unknown(start, end, self.shell),)
        if depth > _DEEPEST or self._outside(start):
            return unknown
        text = self.tree.source.text[start:end]
        if node.type == "simple_expansion":
            return self._variable(text[1:], "", unknown, quoted=quoted)
        if node.type == "arithmetic_expansion":
            return self._number(text, unknown)
        match = _PARAMETER.fullmatch(text) if node.type == "expansion" else None
        if match is None or match["sign"] == "!":
            return unknown
        value = self._variable(match["name"], match["index"] or "", unknown, quoted=quoted)
        if match["sign"] == "#":
            return self._length(match["name"], match["index"] or "", value, unknown)
        if not match["operator"]:
            return value
        return self._operated(node, match, value, unknown, quoted=quoted, depth=depth)

    def _variable(self, name: str, index: str, unknown: Pieces, *, quoted: bool) -> Pieces:
        if name.isdecimal() or name in "@*":
            return self._positional(name, unknown, quoted=quoted)
        held = self.scope.values.get(name)
        if held is None:
            return unknown
        if index in ("[@]", "[*]"):
            items = held.items if held.items is not None else (held.pieces or unknown,)
            return listed(items, quoted=quoted and index == "[@]")
        pieces = held.pieces
        if held.items is not None:
            number = index.strip("[]") or "0"
            known_place = number.isdecimal() and int(number) < len(held.items)
            pieces = held.items[int(number)] if known_place else None
        if pieces is None or _opaque(pieces):
            return unknown
        return pieces if quoted else splitting(pieces)

    def _positional(self, name: str, unknown: Pieces, *, quoted: bool) -> Pieces:
        held = self.scope.positional
        if held is None:
            return unknown
        if name in "@*":
            return listed(held, quoted=quoted)
        number = int(name) if len(name) < 6 else 0
        if number == 0 or number > len(held):
            return unknown if number == 0 else ()
        return held[number - 1] if quoted else splitting(held[number - 1])

    def _number(self, text: str, unknown: Pieces) -> Pieces:
        names = {
            name: found
            for name, value in self.scope.values.items()
            if value.pieces is not None and (found := known(value.pieces)) is not None
        }
        result = evaluate(re.sub(r"^\$?\(\(|\)\)$|^\$\[|\]$", "", text), names)
        if result is None:
            return unknown
        return (replace(unknown[0], text=str(result), kind="literal"),)

    def _length(self, name: str, index: str, value: Pieces, unknown: Pieces) -> Pieces:
        held = self.scope.values.get(name)
        if index and held is not None and held.items is not None:
            count: int | None = len(held.items)
        elif name in "@*":
            count = None if self.scope.positional is None else len(self.scope.positional)
        else:
            text = known(value)
            count = None if text is None else len(text)
        if count is None:
            return unknown
        return (replace(unknown[0], text=str(count), kind="literal"),)

    def _operated(
        self,
        node: Node,
        match: re.Match[str],
        value: Pieces,
        unknown: Pieces,
        *,
        quoted: bool,
        depth: int,
    ) -> Pieces:
        """Apply `${X:-default}` or another operator to a value."""
        operator = match["operator"]
        head = re.match(r":?[-=+?]", operator)
        if head:
            start, end = self._extent(node)
            operand = self._within(node, start + match.start("operator") + len(head[0]), end - 1,
                                   depth=depth + 1)  # fmt: skip
            operand = tuple(piece for piece in operand if piece.text not in ('"', "'"))
            held = self.scope.values.get(match["name"])
            return _defaulted(head[0][-1], match["name"], held, value, operand, unknown, quoted)
        text = known(value)
        result = None if text is None else changed(text, operator)
        if result is None:
            return unknown
        return (replace(unknown[0], text=result, kind="literal" if quoted else "split"),)

    def _unquoted(self, node: Node) -> str:
        """Return a word as written, without its quotes and backslashes."""
        return plain(Expander(self.tree, Scope(), self.shell)._pieces(node, quoted=True, depth=0))


def _defaulted(
    operator: str, name: str, held: Value | None, value: Pieces, operand: Pieces,
    unknown: Pieces, quoted: bool,
) -> Pieces:  # fmt: skip
    given = operand if quoted else splitting(unsplit(operand))
    if operator == "?":
        return value
    if held is None:
        # Slurm sets SLURM_*; other variables that the script never sets are rarely set outside.
        from_slurm = name.startswith(("SLURM", "SBATCH")) or name.isdecimal()
        return unknown if from_slurm or operator == "+" else given
    empty = held.pieces == () or (held.pieces is not None and not plain(held.pieces))
    if operator == "+":
        return () if empty else given
    return given if empty else value


def _ansi(match: re.Match[str]) -> str:
    if match["one"]:
        return _ANSI.get(match["one"], match[0])
    if match["control"]:
        return chr(ord(match["control"]) & 0x1F)
    digits, base = (match["octal"], 8) if match["octal"] else (match[0][2:], 16)
    number = int(digits, base) & (0xFF if match["octal"] else -1)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else match[0]


def _opaque(pieces: Pieces) -> bool:
    """Return whether a value is just one command's output: its variable's name tells more."""
    return len(pieces) == 1 and pieces[0].kind == "unknown" and pieces[0].text[:2] in ("$(", "`")


def quotes_of(node: Node | None) -> Literal["", "'", '"', "mixed"]:
    """Return how a whole word is quoted."""
    if node is None:
        return ""
    if node.type in ("raw_string", "ansi_c_string"):
        return "'"
    if node.type in ("string", "translated_string"):
        return '"'
    if node.type == "command_name" and node.children:
        return quotes_of(node.children[0])
    inner = {child.type for child in node.children}
    return "mixed" if inner & {"string", "raw_string", "ansi_c_string"} else ""
