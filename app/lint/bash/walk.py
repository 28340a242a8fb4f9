"""A script read from top to bottom, as if each of its branches ran."""

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from lumitui.app.lint.bash.launch import Line, name_of, read_line
from lumitui.app.lint.bash.request.modules import loaded
from lumitui.app.lint.bash.words.expand import Argument, Expander, quotes_of
from lumitui.app.lint.bash.words.scope import UNKNOWN, Scope, Value
from lumitui.app.lint.bash.words.source import File, Piece, Pieces, Source, plain, span, unsplit
from lumitui.app.lint.bash.words.tree import Tree
from lumitui.app.lint.model.job import Trouble
from lumitui.app.lint.model.position import Position
from lumitui.app.lint.model.steps import Command, Step
from lumitui.app.lint.model.words import Shell, Variable

_DEEPEST = 60
"""Statements within statements; what stands deeper is not read."""
_MOST = 5_000
"""Commands of one job, with those of functions each time they are called."""
_BLOCKS = {
    "program", "do_group", "compound_statement", "else_clause", "elif_clause", "pipeline",
    "negated_command", "list",
}  # fmt: skip
_NO_WORDS = {"comment", "file_redirect", "herestring_redirect", "heredoc_redirect"}
_TARGETS = (">", ">|", ">>", "&>")


@dataclass
class Reading:
    """What has been read of a job so far."""

    files: Mapping[str, str]
    variables: list[Variable] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    written: dict[str, Source] = field(default_factory=dict)
    """Files that the script writes with a heredoc."""
    count: int = 0

    def script(self, text: str) -> tuple[str, Source] | None:
        """Return the text of a script that a word names, and its name."""
        wanted = _normal(text)
        for name, source in self.written.items():
            if _normal(name) == wanted:
                return name, source
        for name, held in self.files.items():
            if _normal(name) == wanted and not name.endswith((".py", ".json", ".yaml", ".txt")):
                return name, Source.of(File(held.replace("\r\n", "\n"), name))
        return None


def _normal(path: str) -> str:
    path = re.sub(r"^(\$PWD|\$\{PWD\}|\$\{?SLURM_SUBMIT_DIR\}?|\$\(pwd\))/", "", path)
    return posixpath.normpath(path)


@dataclass
class Walker:
    """Reads the statements of one shell."""

    reading: Reading
    tree: Tree
    scope: Scope
    shell: Shell = "batch"
    depth: int = 0
    outer: Step | None = None
    """Within a step: what stands outside of this shell."""
    substitution: bool = False
    """Whether it runs inside `$(…)`: nothing there is a step."""
    candidates: list[Step] = field(default_factory=list)
    """Within a step: the programs that this shell starts."""

    def walk(self) -> None:
        """Read all statements."""
        self._statement(self.tree.root, background=False)

    @property
    def _step(self) -> int | None:
        return None if self.outer is None or self.substitution else len(self.reading.steps)

    def _expander(self) -> Expander:
        return Expander(self.tree, self.scope, self.shell)

    # Statements.

    def _statement(self, node: Node, *, background: bool) -> None:
        if self.depth > _DEEPEST or self.reading.count > _MOST:
            self._not_understood(node, "It is nested too deeply, or too long, to be read.")
            return
        self.depth += 1
        try:
            self._dispatch(node, background=background)
        finally:
            self.depth -= 1

    def _dispatch(self, node: Node, *, background: bool) -> None:
        kind = node.type
        if kind == "command":
            self._command(node, {}, background=background)
        elif kind in ("variable_assignment", "variable_assignments"):
            self._assignments(node)
        elif kind == "declaration_command":
            self._declaration(node)
        elif kind == "unset_command":
            for child in node.named_children:
                self.scope.values.pop(self.tree.text(child), None)
        elif kind == "redirected_statement":
            self._redirected(node, background=background)
        elif kind == "function_definition":
            self._function(node)
        elif kind in ("if_statement", "case_statement"):
            self._branches(node, background=background)
        elif kind in ("for_statement", "while_statement", "c_style_for_statement"):
            self._loop(node, background=background)
        elif kind == "subshell":
            kept, self.scope = self.scope, self.scope.copy()
            self._block(node.children, background=background)
            self.scope = kept
        elif kind in _BLOCKS or kind == "ERROR":
            self._block(_flat(node), background=background)

    def _block(self, children: Sequence[Node], *, background: bool) -> None:
        for number, child in enumerate(children):
            if not child.is_named or child.type in ("comment", "heredoc_body"):
                continue
            following = children[number + 1] if number + 1 < len(children) else None
            sent = following is not None and following.type == "&"
            self._statement(child, background=background or sent)

    def _branches(self, node: Node, *, background: bool) -> None:
        """Read an `if` or `case`: afterwards is known what all branches agree on."""
        before, ends, complete = self.scope, [], node.type == "case_statement"
        parts = _parts(node)
        self._block(parts[0], background=background)
        for part in parts[1:]:
            self.scope = before.copy()
            self._block(part, background=background)
            ends.append(self.scope)
        complete = complete or any(child.type == "else_clause" for child in node.children)
        self.scope = before
        if ends:
            before.join(ends if complete else [before.copy(), *ends])

    def _loop(self, node: Node, *, background: bool) -> None:
        before = self.scope.copy()
        name = next((each for each in node.named_children if each.type == "variable_name"), None)
        if name is not None and node.type == "for_statement":
            self.scope.set(self.tree.text(name), UNKNOWN)
        self._block(node.named_children, background=background)
        after = self.scope.copy()
        self.scope.join([before, after])

    def _function(self, node: Node) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.scope.functions[self.tree.text(name)] = (self.tree, body)

    def _redirected(self, node: Node, *, background: bool) -> None:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child != body]
        given = self._redirects(redirects)
        if body is None:
            pass
        elif body.type == "command":
            self._command(body, given, background=background)
        else:
            self._statement(body, background=background)
        for child in redirects:
            if child.type == "heredoc_redirect":
                more = [each for each in child.named_children if each.type in _BLOCKS | {"command"}]
                self._block(more, background=background)

    def _redirects(self, nodes: Sequence[Node]) -> dict[str, Pieces]:
        """Return the files written and the text read: `>` and `<`."""
        found: dict[str, Pieces] = {}
        for node in nodes:
            if node.type == "file_redirect" and node.children:
                operator = next((c.type for c in node.children if not c.is_named), "")
                target = node.child_by_field_name("destination")
                if operator in _TARGETS and target is not None:
                    found[">"] = self._expander().value(target)
            elif node.type == "herestring_redirect":
                found["<"] = self._expander().value(node.named_children[-1])
            elif node.type == "heredoc_redirect":
                found |= self._redirects(node.named_children)
                found["<"] = self._heredoc(node)
        return found

    def _heredoc(self, node: Node) -> Pieces:
        start = next((each for each in node.children if each.type == "heredoc_start"), None)
        body = next((each for each in node.children if each.type == "heredoc_body"), None)
        if body is None:
            return ()
        if start is not None and set(self.tree.text(start)) & set("'\"\\"):
            return self.tree.source.cut(*self.tree.span(body))
        return self._expander().heredoc(body)

    # Variables.

    def _assignments(self, node: Node) -> None:
        for child in [node] if node.type == "variable_assignment" else node.named_children:
            if child.type == "variable_assignment":
                self._assign(child)

    def _assign(self, node: Node, *, exported: bool = False) -> None:
        name, value = self._assigned(node)
        if not name:
            return
        self.scope.set(name, replace(value, exported=exported))
        self._record(node, name, self.scope.values[name], step=self._step)

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
            items = self._expander().items(word)
            if more and before is not None and before.items is not None:
                items = (*before.items, *items)
            return name, Value(None, items)
        if word is not None:
            self._substitutions(word)
        pieces = self._expander().value(word)
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
        self.reading.variables.append(
            Variable(
                name, text, self.tree.position(node), self.shell, value.exported,
                quotes_of(word), step,
            )
        )  # fmt: skip

    def _declaration(self, node: Node) -> None:
        keyword = self.tree.text(node.children[0]) if node.children else ""
        flags = [self.tree.text(each) for each in node.named_children if each.type == "word"]
        exported = keyword == "export" or any(f.startswith("-") and "x" in f for f in flags)
        exported = exported and not any(f.startswith("-") and "n" in f for f in flags)
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assign(child, exported=exported)
            elif child.type == "variable_name" and exported:
                self._export(self.tree.text(child))
        words = [
            argument
            for child in node.named_children
            for argument in self._expander().arguments(child)
        ]
        self._note(keyword, words, self.tree.position(node))

    def _export(self, name: str) -> None:
        self.scope.export(name)
        held = self.scope.values.get(name)
        if held is not None:
            last = next((v for v in reversed(self.reading.variables) if v.name == name), None)
            if last is not None and last.step == self._step:
                self.reading.variables.append(replace(last, exported=True))

    # Commands.

    def _command(self, node: Node, given: Mapping[str, Pieces], *, background: bool) -> None:
        self.reading.count += 1
        prefixes, words, first = self._command_parts(node)
        given = {**given, **self._redirects(node.children)}
        arguments: list[Argument] = []
        for word in words:
            self._substitutions(word)
            arguments += self._expander().arguments(word)
        if not arguments:
            for each in prefixes:
                self._assign(each)
            return
        start = self.tree.span(prefixes[0] if prefixes else first)[0]
        end = max(self.tree.span(word)[1] for word in words)
        at = self.tree.source.position(start, end)
        self._run(arguments, prefixes, given, at, background=background)

    def _command_parts(self, node: Node) -> tuple[list[Node], list[Node], Node]:
        """Return the assignments before a command, its words, and the first of them."""
        prefixes: list[Node] = []
        words: list[Node] = []
        for child in node.named_children:
            if child.type == "variable_assignment" and not words:
                prefixes.append(child)
            elif child.type not in _NO_WORDS:
                words.append(child)
        # tree-sitter-bash takes assignments of the lines above for those of a command.
        while prefixes and words and self._line_ends(prefixes, words):
            self._assign(prefixes.pop(0))
        return prefixes, words, words[0] if words else node

    def _line_ends(self, prefixes: Sequence[Node], words: Sequence[Node]) -> bool:
        following = [*prefixes[1:], words[0]]
        text = self.tree.source.text
        return any(
            re.search(r"(?<!\\)\n", text[self.tree.span(a)[1] : self.tree.span(b)[0]])
            for a, b in zip(prefixes, following, strict=True)
        )

    def _substitutions(self, node: Node) -> None:
        """Read the commands in `$(…)` within a word: they run before it."""
        waiting, steps = [node], 0
        while waiting and steps < 2_000:
            steps += 1
            each = waiting.pop()
            if each.type in ("command_substitution", "process_substitution"):
                if self.depth < _DEEPEST and not self.tree.source.made_outside(
                    self.tree.span(each)[0]
                ):
                    inside = Walker(
                        self.reading, self.tree, self.scope.copy(), self.shell, self.depth + 1,
                        Step(trains=False), substitution=True,
                    )  # fmt: skip
                    inside._block(each.children, background=False)
            else:
                waiting.extend(each.named_children)

    def _run(
        self,
        arguments: list[Argument],
        prefixes: Sequence[Node],
        given: Mapping[str, Pieces],
        at: Position,
        *,
        background: bool,
    ) -> None:
        name = name_of(arguments[0])
        if name in self.scope.functions and self.depth < _DEEPEST:
            self._call(name, arguments, prefixes, background=background)
            return
        if self._builtin(name, arguments, given, at, background=background):
            return
        index = len(self.reading.steps)
        base = self.outer or Step(at=at)
        background = base.background or background
        base = replace(base, background=background, program_shell=self.shell)
        line = read_line(arguments, base, self.shell, lambda text: self._is_script(text))
        scope, recorded = self._prefixed(prefixes, line, index)
        place = len(self.reading.commands)
        self._note(name, arguments[1:], at)
        inner = self._inside(line, scope, given)
        if line.program and line.program[0] is not arguments[0] and not inner:
            self._note(name_of(line.program[0]), line.program[1:], at, shell=line.shell)
        self.reading.troubles += line.troubles
        if self.outer is not None:
            self.candidates += inner or [line.step]
            return
        if not (line.launches or any(_starts(each) for each in inner)):
            return
        self._close(inner or [line.step], place, index)
        self.reading.variables += recorded

    def _close(self, candidates: Sequence[Step], place: int, index: int) -> None:
        """Keep the step, and give its number to the commands that were read with it."""
        step = _chosen(candidates)
        self.reading.steps.append(step)
        self.reading.commands[place:] = [
            replace(each, step=index) if each.step is None else each
            for each in self.reading.commands[place:]
        ]

    def _is_script(self, text: str) -> bool:
        return self.depth < _DEEPEST and self.reading.script(text) is not None

    def _prefixed(
        self, prefixes: Sequence[Node], line: Line, index: int
    ) -> tuple[Scope, list[Variable]]:
        """Return the scope of what a line starts: with `A=1 srun`, and what `env A=1` sets."""
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

    def _inside(self, line: Line, scope: Scope, given: Mapping[str, Pieces]) -> list[Step]:
        """Read what a line's innermost shell or script runs; return the programs it starts."""
        source: Source | None = None
        positional: tuple[Pieces, ...] | None = None
        step = line.step
        if line.text is not None:
            source = Source(line.text.pieces)
            step = replace(step, shells=(*step.shells, line.text.word))
            positional = tuple(each.pieces for each in line.rest[2:])
        elif line.stdin and given.get("<"):
            source = Source(given["<"])
        elif line.rest and (found := self.reading.script(line.rest[0].text)) is not None:
            source = found[1]
            positional = tuple(each.pieces for each in line.rest[1:])
        if source is None or self.depth >= _DEEPEST:
            return []
        child = self.scope_for(line, scope)
        child.positional = positional
        walker = Walker(
            self.reading, Tree(source), child, line.shell, self.depth + 2, step, self.substitution
        )
        walker.walk()
        return walker.candidates

    def scope_for(self, line: Line, scope: Scope) -> Scope:
        """Return what a program started by `line` knows of `scope`."""
        return Scope() if line.clean else scope.child()

    def _call(
        self,
        name: str,
        arguments: Sequence[Argument],
        prefixes: Sequence[Node],
        *,
        background: bool,
    ) -> None:
        tree, body = self.scope.functions[name]
        for node in prefixes:
            self._assign(node)
        kept = self.scope.positional, self.tree
        self.scope.positional = tuple(each.pieces for each in arguments[1:])
        self.tree = tree
        self._statement(body, background=background)
        self.scope.positional, self.tree = kept

    def _builtin(
        self,
        name: str,
        arguments: list[Argument],
        given: Mapping[str, Pieces],
        at: Position,
        *,
        background: bool,
    ) -> bool:
        """Do what bash itself does; False: it is another program."""
        words = [each.text for each in arguments[1:]]
        if name == "set":
            self.scope.export_all |= any(re.match(r"-\w*a", word) for word in words)
        elif name in ("module", "ml"):
            if self.outer is None:
                self.reading.modules = loaded(self.reading.modules, name, words)
        elif name in ("source", ".") and words:
            self._note(name, arguments[1:], at)
            self._source(words[0])
            return True
        elif name == "eval" and self.depth < _DEEPEST:
            self._eval(arguments[1:], background=background)
            return True
        elif name == "shift" and self.scope.positional:
            count = int(words[0]) if words and words[0].isdecimal() else 1
            self.scope.positional = self.scope.positional[count:]
        elif name in ("read", "readarray", "mapfile"):
            for word in words:
                if re.fullmatch(r"[A-Za-z_]\w*", word):
                    self.scope.set(word, Value(given.get("<") if name == "read" else None))
        elif name in ("cat", "tee") and given.get("<"):
            target = given.get(">") or (arguments[-1].pieces if name == "tee" and words else ())
            if target:
                self.reading.written[plain(target)] = Source(given["<"])
        else:
            return False
        self._note(name, arguments[1:], at)
        return True

    def _source(self, path: str) -> None:
        found = self.reading.script(path)
        if found is None or self.depth >= _DEEPEST:
            return
        kept = self.tree
        self.tree = Tree(found[1])
        self._statement(self.tree.root, background=False)
        self.tree = kept

    def _eval(self, arguments: Sequence[Argument], *, background: bool) -> None:
        pieces: list[Piece] = []
        for each in arguments:
            if pieces and each.pieces:
                pieces.append(replace(pieces[-1], text=" ", kind="literal"))
            pieces += each.pieces
        if not pieces:
            return
        kept = self.tree
        self.tree = Tree(Source(tuple(pieces)))
        self._statement(self.tree.root, background=background)
        self.tree = kept

    def _note(
        self, name: str, words: Sequence[Argument], at: Position, shell: Shell | None = None
    ) -> None:
        held = tuple(each.word for each in words)
        command = Command(name, held, at, shell or self.shell, self._step)
        self.reading.commands.append(command)

    def _not_understood(self, node: Node, message: str) -> None:
        if not any(each.id == "not-understood" for each in self.reading.troubles):
            at = span(self.tree.source.cut(*self.tree.span(node)))
            self.reading.troubles.append(Trouble("not-understood", message, at))


def _flat(node: Node) -> list[Node]:
    """Return the statements of `a && b && c`, which is nested to the left, in their order."""
    if node.type != "list":
        return node.children
    found: list[Node] = []
    current: Node | None = node
    while current is not None and current.type == "list":
        found = [*current.children[1:], *found] if current.children else found
        current = current.children[0] if current.children else None
    return [*([current] if current is not None else []), *found]


def _parts(node: Node) -> list[list[Node]]:
    """Return what always runs of an `if` or `case`, then each branch."""
    if node.type == "case_statement":
        return [[], *(_body_of(item) for item in node.children if item.type == "case_item")]
    parts: list[list[Node]] = [[]]
    for child in node.children:
        if child.type in ("then", "elif_clause", "else_clause"):
            parts.append([])
        if child.is_named or child.type == "&":
            parts[-1].append(child)
    return parts


def _body_of(item: Node) -> list[Node]:
    """Return a case's statements, without its patterns."""
    closing = next((n for n, child in enumerate(item.children) if child.type == ")"), -1)
    return item.children[closing + 1 :]


def _starts(step: Step) -> bool:
    return step.launcher != "plain" or step.container is not None or step.python


def _chosen(candidates: Sequence[Step]) -> Step:
    """Return the main program of a step: the last that is launched, or else that trains."""

    def weight(step: Step) -> tuple[bool, bool, bool]:
        return step.trains, step.launcher != "plain", step.python

    best = max(weight(step) for step in candidates)
    return next(step for step in reversed(candidates) if weight(step) == best)
