"""A shell while its script is read: the job as read so far, and the shell's variables."""

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from lumitui.app.knowledge.bash.command_line import CommandLine
from lumitui.app.knowledge.bash.expand import ExpandedWord, Expander, quotes_of
from lumitui.app.knowledge.bash.origins import File, ParsedSource, Pieces, plain, unsplit
from lumitui.app.knowledge.bash.parsed_text import Tree
from lumitui.app.knowledge.bash.scope import UNKNOWN, Scope, Value
from lumitui.app.knowledge.script_job import Command, JobStep, Shell, Trouble, Variable
from lumitui.remote.site.source_position import Position

_NO_WORDS = {"comment", "file_redirect", "herestring_redirect", "heredoc_redirect"}
_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*):?=")
_OF_SLURM = ("SLURM", "SBATCH")
_TARGETS = (">", ">|", ">>", "&>")
_NO_SHELL = (".py", ".json", ".yaml", ".txt")
"""Suffixes of files that no shell reads, even if the script writes them."""


@dataclass
class Reading:
    """The parts of a job read so far."""

    files: Mapping[str, str]
    variables: list[Variable] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    steps: list[JobStep] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    written: dict[str, ParsedSource] = field(default_factory=dict)
    """Files that the script writes with a heredoc."""
    at_exit: list[ExpandedWord] = field(default_factory=list)
    """Commands that `trap … EXIT` runs when the script ends."""
    loops: int = 0
    """Number of loops around the current position."""
    count: int = 0

    def script(self, word: str) -> ParsedSource | None:
        """Return the text of the script that a word names, or None if it is unavailable."""
        path = _normal(word)
        for name in (*self.written, *self.files):
            if _normal(name) == path and not name.endswith(_NO_SHELL):
                return self.written.get(name) or ParsedSource.of(
                    File(self.files[name].replace("\r\n", "\n"), name)
                )
        return None


def _normal(path: str) -> str:
    path = re.sub(r"^(\$PWD|\$\{PWD\}|\$\{?SLURM_SUBMIT_DIR\}?|\$\(pwd\))/", "", path)
    return posixpath.normpath(path)


@dataclass
class ShellState:
    """One shell of a job at one position: its variables, and the expansion of words there."""

    reading: Reading
    tree: Tree
    scope: Scope
    shell: Shell = "batch"
    depth: int = 0
    outer: JobStep | None = None
    """The step around this shell; None in the batch script."""
    substitution: bool = False
    """Whether it runs inside `$(…)`, where no command is a step."""
    background: bool = False
    """Whether the current statement runs in the background, because of `&`."""
    branches: int = 0
    """Number of branches around the current position: of an `if` or `case`, or after `&&`."""
    locals: dict[str, Value | None] = field(default_factory=dict)
    """The local variables of the current function, with their values outside it."""

    @property
    def step(self) -> int | None:
        """The number of the step that the shell belongs to; None for the batch script."""
        return None if self.outer is None or self.substitution else len(self.reading.steps)

    def expander(self) -> Expander:
        """Return an expander for words at the current position."""
        return Expander(self.tree, self.scope, self.shell)

    def note(
        self, name: str, words: Sequence[ExpandedWord], at: Position, shell: Shell | None = None
    ) -> None:
        """Record a command."""
        held = tuple(each.word for each in words)
        command = Command(name, held, at, shell or self.shell, self.step)
        self.reading.commands.append(command)

    def assignments(self, node: Node) -> None:
        """Execute the assignments of a statement."""
        for child in [node] if node.type == "variable_assignment" else node.named_children:
            if child.type == "variable_assignment":
                self.assign(child)

    def assign(self, node: Node, *, exported: bool = False) -> None:
        """Set one variable and record it."""
        name, value = self._assigned(node)
        if not name:
            return
        self.scope.set(name, replace(value, exported=exported))
        self._record(node, name, self.scope.values[name], step=self.step)

    def defaults(self, word: Node) -> None:
        """Set the variables that `: "${X:=value}"` sets."""
        waiting = [word]
        while waiting:
            node = waiting.pop()
            match = _DEFAULT.match(self.tree.text(node)) if node.type == "expansion" else None
            waiting.extend(node.named_children)
            if match is None or self.tree.source.made_outside(self.tree.span(node)[0]):
                continue
            name, held = match[1], self.scope.values.get(match[1])
            if (held is None and not name.startswith(_OF_SLURM)) or (held and held.pieces == ()):
                value = self.expander().value(node)
                exported = bool(held and held.exported)
                self.scope.set(name, Value(value, exported=exported))
                self.reading.variables.append(
                    Variable(name, plain(value), self.tree.position(node), self.shell,
                             exported, "", self.step)
                )  # fmt: skip

    def _assigned(self, node: Node) -> tuple[str, Value]:
        target, word = node.child_by_field_name("name"), node.child_by_field_name("value")
        if target is None:
            return "", UNKNOWN
        name = self.tree.text(target)
        before = self.scope.values.get(name.partition("[")[0])
        more = any(child.type == "+=" for child in node.children)
        if target.type == "subscript":
            return name.partition("[")[0], UNKNOWN
        if word is not None and word.type == "array":
            items = self.expander().items(word)
            if more and before is not None and before.items is not None:
                items = (*before.items, *items)
            return name, Value(None, items)
        pieces = self.expander().value(word)
        if more and before is not None:
            return name, Value(None if before.pieces is None else before.pieces + pieces)
        return name, Value(pieces)

    def _record(self, node: Node, name: str, value: Value, *, step: int | None) -> None:
        word = node.child_by_field_name("value")
        if value.items is not None:
            text = " ".join(plain(item) for item in value.items)
        else:
            text = plain(value.pieces) if value.pieces is not None else ""
            if value.pieces is None and word is not None:
                text = self.tree.text(word)
                if name in self.scope.changing:
                    text = f"$(declare {name}={text})"  # known only to bash
        self.reading.variables.append(
            Variable(
                name, text, self.tree.position(node), self.shell, value.exported,
                quotes_of(word), step, self.branches > 0,
                None if value.items is None else len(value.items),
            )
        )  # fmt: skip

    def declaration(self, node: Node) -> None:
        """Execute an `export`, `declare`, `local` or `readonly`."""
        keyword = self.tree.text(node.children[0]) if node.children else ""
        flags = [self.tree.text(each) for each in node.named_children if each.type == "word"]
        exported = keyword == "export" or any(f.startswith("-") and "x" in f for f in flags)
        exported = exported and not any(f.startswith("-") and "n" in f for f in flags)
        of_functions = any(f.startswith("-") and "f" in f for f in flags)
        named = {self._declared(child) for child in node.named_children} - {""}
        if keyword != "export" and any(re.match(r"-\w*[iulcn]", flag) for flag in flags):
            self.scope.changing |= named
        everywhere = any(re.match(r"-\w*g", flag) for flag in flags)
        if keyword == "local" or (keyword in ("declare", "typeset") and not everywhere):
            for name in named:
                self.locals.setdefault(name, self.scope.values.get(name))
        for child in node.named_children:
            if child.type == "variable_assignment":
                self.assign(child, exported=exported)
            elif exported and of_functions:
                self.scope.exported_functions.add(self.tree.text(child))
            elif child.type == "variable_name" and exported:
                self._export(self.tree.text(child))
            elif child.type == "variable_name" and keyword == "export":
                self._export(self.tree.text(child), given=False)  # `export -n`
        words = [
            argument
            for child in node.named_children
            for argument in self.expander().arguments(child)
        ]
        self.note(keyword, words, self.tree.position(node))

    def _declared(self, node: Node) -> str:
        """Return the variable that a part of a declaration names, or ""."""
        name = node.child_by_field_name("name") if node.type == "variable_assignment" else node
        told = name is not None and node.type in ("variable_assignment", "variable_name")
        return self.tree.text(name).partition("[")[0] if told and name is not None else ""

    def _export(self, name: str, *, given: bool = True) -> None:
        self.scope.export(name, given=given)
        held = self.scope.values.get(name)
        if held is not None:
            last = next((v for v in reversed(self.reading.variables) if v.name == name), None)
            if last is not None and last.step == self.step:
                self.reading.variables.append(replace(last, exported=given))

    def prefixed(
        self, prefixes: Sequence[Node], line: CommandLine, index: int
    ) -> tuple[Scope, list[Variable]]:
        """Return the scope of the program that a line starts, with `A=1 srun` and `env A=1`."""
        scope = self.scope.copy()
        recorded: list[Variable] = []
        for node in prefixes:
            name, value = self._assigned(node)
            scope.set(name, replace(value, exported=True))
            text = plain(value.pieces or ())
            recorded.append(
                Variable(name, text, self.tree.position(node), self.shell, True,
                         quotes_of(node.child_by_field_name("value")), index)
            )  # fmt: skip
        for name, pieces, at in line.sets:
            scope.set(name, Value(unsplit(pieces), exported=True))
            recorded.append(Variable(name, plain(pieces), at, line.shell, True, "", index))
        return scope, recorded

    def command_parts(self, node: Node) -> tuple[list[Node], list[Node], Node]:
        """Return the assignments before a command, its words, and its first word."""
        prefixes: list[Node] = []
        words: list[Node] = []
        for child in node.named_children:
            if child.type == "variable_assignment" and not words:
                prefixes.append(child)
            elif child.type not in _NO_WORDS:
                words.append(child)
        # tree-sitter-bash attributes assignments of the lines above to a command.
        while prefixes and words and self._line_ends(prefixes, words):
            self.assign(prefixes.pop(0))
        return prefixes, words, words[0] if words else node

    def _line_ends(self, prefixes: Sequence[Node], words: Sequence[Node]) -> bool:
        following = [*prefixes[1:], words[0]]
        text = self.tree.source.text
        return any(
            re.search(r"(?<!\\)\n", text[self.tree.span(a)[1] : self.tree.span(b)[0]])
            for a, b in zip(prefixes, following, strict=True)
        )

    def redirects(self, nodes: Sequence[Node]) -> dict[str, Pieces]:
        """Return the redirections: the files written (`>`) and the text read (`<`)."""
        texts: dict[str, Pieces] = {}
        for node in nodes:
            if node.type == "file_redirect" and node.children:
                operator = next((c.type for c in node.children if not c.is_named), "")
                target = node.child_by_field_name("destination")
                if operator in _TARGETS and target is not None:
                    texts[">"] = self.expander().value(target)
            elif node.type == "herestring_redirect":
                texts["<"] = self.expander().value(node.named_children[-1])
            elif node.type == "heredoc_redirect":
                texts |= self.redirects(node.named_children)
                texts["<"] = self._heredoc(node)
        return texts

    def _heredoc(self, node: Node) -> Pieces:
        start = next((each for each in node.children if each.type == "heredoc_start"), None)
        body = next((each for each in node.children if each.type == "heredoc_body"), None)
        if body is None:
            return ()
        if start is not None and set(self.tree.text(start)) & set("'\"\\"):
            return self.tree.source.cut(*self.tree.span(body))
        return self.expander().heredoc(body)
