"""Every statement of a script except one line."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tree_sitter import Node

from lumitui.app.knowledge.bash.origins import File, ParsedSource
from lumitui.app.knowledge.bash.parsed_text import Tree, flat
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.source_position import NOWHERE, Position

Kind = Literal[
    "function", "condition", "loop", "piped in", "piped out", "redirection", "background",
    "command", "setting", "unsetting", "negation",
]  # fmt: skip
_KINDS: dict[str, Kind] = {
    "function_definition": "function", "if_statement": "condition", "case_statement": "condition",
    "for_statement": "loop", "while_statement": "loop", "c_style_for_statement": "loop",
}  # fmt: skip
_SETTINGS = {"variable_assignment", "variable_assignments", "declaration_command"}
_REDIRECTS = {"file_redirect", "heredoc_redirect", "herestring_redirect"}
_BLOCKS = {
    "program", "list", "compound_statement", "do_group", "subshell", "else_clause", "elif_clause",
    "negated_command", "case_item", *_KINDS,
}  # fmt: skip
_ENDS = {"exit", "return"}
_SURE = re.compile(r"(?:cd|source|\.|module|ml|mkdir|echo|set|ulimit|conda)\s|\$\{?\w+\}?$")
"""Commands before `&&` that are not tests, like `cd src` and `$WITH_CONDA`."""
_DEEPEST = 60


@dataclass(frozen=True)
class OtherStatement:
    """A statement, or a shell construct around the line."""

    kind: Kind
    text: str
    """As written; for a function, condition or loop that contains the line, only its first line."""
    names: tuple[str, ...] = ()
    """The variables that a setting sets, or the programs that a command starts."""
    at: Position = NOWHERE
    whole: bool = True
    """Whether `text` is the whole statement; False for a block that contains the line."""


def other_statements(text: str, at: Position) -> Iterator[OtherStatement]:
    """Yield every statement of a script except the one at `at`, and the constructs around that one.

    A nested statement is part of the outer one, unless the outer one also contains `at`.
    """
    clean = text.replace("\r\n", "\n").replace("\r", " ").replace("\0", " ")
    tree = Tree(ParsedSource.of(File(clean)))
    yield from _StatementReader(tree, at).statements(tree.root)


@dataclass
class _StatementReader:
    tree: Tree
    at: Position

    def statements(self, node: Node, depth: int = 0) -> Iterator[OtherStatement]:
        if not node.is_named or node.type == "comment" or depth > _DEEPEST:
            return
        if not self._holds(node) and (node.type not in ("program", "list") or self._chooses(node)):
            yield self._whole(node)
        elif node.type in _BLOCKS:
            yield from self._block(node, depth)
        elif node.type == "pipeline":
            yield from self._pipe(node, depth)
        elif node.type in ("redirected_statement", "command"):
            for child in node.children:
                if child.type in _REDIRECTS:
                    yield OtherStatement("redirection", self.tree.text(child).strip())
            body = node.child_by_field_name("body")
            if body is not None:
                yield from self.statements(body, depth + 1)
        else:
            yield from self._statements(node, depth)

    def _block(self, node: Node, depth: int) -> Iterator[OtherStatement]:
        if node.type == "negated_command":
            yield OtherStatement("negation", "!")
        if node.type in _KINDS:
            head = self.tree.text(node).split("\n")[0].strip()
            at = self.tree.position(node)
            yield OtherStatement(_KINDS[node.type], head, at=at, whole=False)
        yield from self._statements(node, depth)

    def _statements(self, node: Node, depth: int) -> Iterator[OtherStatement]:
        if node.type in ("function_definition", "for_statement", "c_style_for_statement"):
            body = node.child_by_field_name("body")
            children = [body] if body is not None else []
        elif node.type == "case_item":
            value = node.child_by_field_name("value")
            children = [child for child in node.children if child != value]
        else:
            tests = node.children_by_field_name("condition") if node.type in _KINDS else []
            children = [child for child in node.children if child not in tests]
            children += [child for child in tests if self._holds(child)]
        for number, child in enumerate(children):
            yield from self.statements(child, depth + 1)
            following = children[number + 1].type if number + 1 < len(children) else ""
            if following == "&" and self._holds(child):
                yield OtherStatement("background", "&")

    def _pipe(self, node: Node, depth: int) -> Iterator[OtherStatement]:
        kind: Kind = "piped in"
        for part in node.named_children:
            if self._holds(part):
                kind = "piped out"
                yield from self.statements(part, depth + 1)
            else:
                yield replace(self._whole(part), kind=kind)

    def _whole(self, node: Node) -> OtherStatement:
        text, at = self.tree.text(node).strip(), self.tree.position(node)
        if node.type in _SETTINGS:
            return OtherStatement("setting", text, tuple(self._set_by(node)), at)
        if node.type == "unset_command":
            return OtherStatement(
                "unsetting", text, tuple(map(self.tree.text, node.named_children)), at
            )
        kind = "condition" if node.type == "list" else _KINDS.get(node.type, "command")
        return OtherStatement(kind, text, tuple(self._programs(node)), at)

    def _chooses(self, node: Node) -> bool:
        """Return whether a list sets a variable or tests first: `[ -f x ] && A=1`, `… || exit`.

        `export A=1 && source env.sh && B=2` has no test: all its parts run.
        """
        return (
            node.type == "list"
            and not self._is_sequence(node)
            and any(
                child.type in _SETTINGS or not _ENDS.isdisjoint(self._programs(child))
                for child in flat(node)[1:]
                if child.is_named
            )
        )

    def _is_sequence(self, node: Node) -> bool:
        """Return whether all parts of a list run: `&&` joins them, and only the last can fail."""
        parts = flat(node)
        return all(
            part.type in ("&&", "comment", *_SETTINGS)
            or (part.type == "command" and _SURE.match(self.tree.text(part)) is not None)
            for part in parts[:-1]
        )

    def _set_by(self, node: Node) -> Iterator[str]:
        for child in [node] if node.type == "variable_assignment" else node.named_children:
            if child.type == "variable_assignment":
                name = child.child_by_field_name("name")
                yield self.tree.text(name).partition("[")[0] if name is not None else ""
            elif child.type == "variable_name":
                yield self.tree.text(child)

    def _programs(self, node: Node) -> Iterator[str]:
        waiting = [node]
        while waiting:
            each = waiting.pop()
            if each.type == "command_name":
                yield self.tree.text(each).strip("\"'").rsplit("/", 1)[-1]
            if each.type not in ("command_substitution", "process_substitution"):
                waiting.extend(reversed(each.named_children))

    def _holds(self, node: Node) -> bool:
        """Return whether a statement contains the line."""
        own = self.tree.position(node)
        start = (self.at.line, self.at.column)
        return (own.line, own.column) <= start < (own.end_line, own.end_column)


_FILE = re.compile(r"[\w./+-]+\.(?:py|sh|bash|json|hjson|ya?ml|toml|txt|conf|cfg|env)")
_HERE = re.compile(r"^(?:\$\{?(?:PWD|SLURM_SUBMIT_DIR)\}?|\$\(pwd\))/")
_IMPORT = re.compile(r"^\s*(?:from|import)\s+\.*([A-Za-z_][\w.]*)", re.MULTILINE)


def referenced_files(job: ScriptJob) -> Iterator[str]:
    """Yield the paths, as written, that a job's words and the available files may name.

    Only relative ones: absolute paths are on the cluster.
    """
    seen: set[str] = set()
    for path in _all(job):
        plain = posixpath.normpath(path)
        inside = not plain.startswith(("/", "../", "~", "$")) and plain != ".."
        if inside and path not in seen:
            seen.add(path)
            yield path


def _all(job: ScriptJob) -> Iterator[str]:
    words = [word for command in job.commands for word in command.words]
    words += [step.program for step in job.steps if step.program]
    words += [word for step in job.steps for word in step.arguments]
    for word in words:
        text = _HERE.sub("", word.known.rpartition("=")[2])
        if _FILE.fullmatch(text) or re.fullmatch(r"\./[\w./+-]+", text):
            yield text
    for step in job.steps:
        if step.python and step.program and "." in step.program.known:
            module = step.program.known.replace(".", "/")
            yield from (f"{module}.py", f"{module}/__main__.py")
    for variable in job.variables:
        yield from _FILE.findall(variable.value)
    for path, text in job.files.items():
        if path.endswith(".py"):
            yield from _imported(path, text)


def _imported(path: str, text: str) -> Iterator[str]:
    """Yield the local modules that a program imports, and the configurations it names."""
    folder = posixpath.dirname(path)
    for name in _IMPORT.findall(text):
        module = posixpath.join(folder, name.replace(".", "/"))
        yield from (f"{module}.py", f"{module}/__init__.py")
    for quoted in re.findall(r"""["']([\w./-]+\.(?:json|ya?ml))["']""", text):
        yield posixpath.join(folder, quoted)
