"""A script read from top to bottom, as if each of its branches ran."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node

from lumitui.app.knowledge.bash.command_line import CommandLine, read_line, starts_others
from lumitui.app.knowledge.bash.container_calls import name_of
from lumitui.app.knowledge.bash.interpreter.builtins import DEEPEST, Builtins
from lumitui.app.knowledge.bash.options.program_options import IDLE
from lumitui.app.knowledge.bash.syntax_tree import chosen, flat, parts, starts
from lumitui.app.knowledge.bash.words.expand import ExpandedWord
from lumitui.app.knowledge.bash.words.origins import ParsedSource, Pieces, span
from lumitui.app.knowledge.bash.words.parsed_text import Tree
from lumitui.app.knowledge.bash.words.scope import UNKNOWN, Scope
from lumitui.app.knowledge.script_job import JobStep, Trouble
from lumitui.remote.site.source_position import Position

_MOST = 5_000
"""Commands of one job, with those of functions each time they are called."""
_BLOCKS = {
    "program", "do_group", "compound_statement", "else_clause", "elif_clause", "pipeline",
    "negated_command", "list",
}  # fmt: skip


@dataclass
class Walker(Builtins):
    """Reads the statements of one shell."""

    def walk(self, *, background: bool = False) -> None:
        """Read all statements; in the `background` where the whole shell runs there."""
        self._statement(self.tree.root, background=background)
        if self.depth == 0 and self.reading.at_exit:
            self._eval(self.reading.at_exit, background=False)

    def _statement(self, node: Node, *, background: bool) -> None:
        if self.depth > DEEPEST:
            self._not_understood(node, f"More than {DEEPEST} blocks are nested here.")
            return
        if self.reading.count > _MOST:
            self._not_understood(node, f"What follows the first {_MOST:,} commands is not read.")
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
            self._substitutions(node)
            self.assignments(node)
        elif kind == "declaration_command":
            self._substitutions(node)
            self.declaration(node)
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
        elif kind == "list":
            self._list(flat(node), background=background)
        elif kind in _BLOCKS or kind == "ERROR":
            self._block(flat(node), background=background)

    def _block(self, children: Sequence[Node], *, background: bool) -> None:
        for number, child in enumerate(children):
            if not child.is_named or child.type in ("comment", "heredoc_body"):
                continue
            following = children[number + 1] if number + 1 < len(children) else None
            sent = following is not None and following.type == "&"
            self._statement(child, background=background or sent)

    def _list(self, children: Sequence[Node], *, background: bool) -> None:
        """Read `a && b`: what is after the first may not run."""
        self._block(children[:1], background=background)
        self.branches += 1
        self._block(children[1:], background=background)
        self.branches -= 1

    def _branches(self, node: Node, *, background: bool) -> None:
        """Read an `if` or `case`: afterwards is known what all branches agree on."""
        before, ends, complete = self.scope, [], node.type == "case_statement"
        branches = parts(node)
        self._block(branches[0], background=background)
        for part in branches[1:]:
            self.scope = before.copy()
            self.branches += 1
            self._block(part, background=background)
            self.branches -= 1
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
        self.reading.loops += 1
        self._block(node.named_children, background=background)
        self.reading.loops -= 1
        after = self.scope.copy()
        self.scope.join([before, after])

    def _function(self, node: Node) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.scope.functions[self.tree.text(name)] = (self.tree, body)

    def _redirected(self, node: Node, *, background: bool) -> None:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child != body]
        given = self.redirects(redirects)
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

    # Commands.

    def _command(self, node: Node, given: Mapping[str, Pieces], *, background: bool) -> None:
        self.reading.count += 1
        prefixes, words, first = self.command_parts(node)
        given = {**given, **self.redirects(node.children)}
        arguments: list[ExpandedWord] = []
        for each in prefixes:
            self._substitutions(each)
        for word in words:
            self._substitutions(word)
            self.defaults(word)
            arguments += self.expander().arguments(word)
        if not arguments:
            for each in prefixes:
                self.assign(each)
            return
        start = self.tree.span(prefixes[0] if prefixes else first)[0]
        end = max(self.tree.span(word)[1] for word in words)
        at = self.tree.source.position(start, end)
        self._run(arguments, prefixes, given, at, background=background)

    def _substitutions(self, node: Node) -> None:
        """Read the commands in `$(…)` within a word: they run before it."""
        waiting, steps = [node], 0
        while waiting and steps < 2_000:
            steps += 1
            each = waiting.pop()
            if each.type in ("command_substitution", "process_substitution"):
                if self.depth < DEEPEST and not self.tree.source.made_outside(
                    self.tree.span(each)[0]
                ):
                    inside = Walker(
                        self.reading, self.tree, self.scope.copy(), self.shell, self.depth + 1,
                        JobStep(trains=False), substitution=True,
                    )  # fmt: skip
                    inside._block(each.children, background=False)
            else:
                waiting.extend(each.named_children)

    def _run(
        self,
        arguments: list[ExpandedWord],
        prefixes: Sequence[Node],
        given: Mapping[str, Pieces],
        at: Position,
        *,
        background: bool,
    ) -> None:
        name = name_of(arguments[0])
        if name in self.scope.functions and self.depth < DEEPEST:
            if name in self.calling:
                self.note(name, arguments[1:], at)
            else:
                self._call(name, arguments, prefixes, background=background)
            return
        if self._builtin(name, arguments, given, at, background=background):
            return
        callable_here = self.scope.functions.keys() - set(self.calling)
        called = next((n for n, word in enumerate(arguments[1:4], 1)
                       if word.text in callable_here), 0)  # fmt: skip
        if called and name not in IDLE and (name == "time" or not starts_others(name)):
            # `retry launch python …`: a command of the site's own that calls the script's function.
            self._call(arguments[called].text, arguments[called:], prefixes, background=background)
            return
        index = len(self.reading.steps)
        base = self.outer or JobStep(at=at)
        background = base.background or background
        base = replace(base, background=background, program_shell=self.shell,
                       repeated=self.reading.loops > 0)  # fmt: skip
        line = read_line(arguments, base, self.shell, lambda text: self._is_script(text))
        scope, recorded = self.prefixed(prefixes, line, index)
        place = len(self.reading.commands)
        self.note(name, arguments[1:], at)
        inner = self._inside(line, scope, given)
        if line.program and line.program[0] is not arguments[0] and not inner:
            self.note(name_of(line.program[0]), line.program[1:], at, shell=line.shell)
        self.reading.troubles += line.troubles
        if self.outer is not None:
            self.candidates += inner or [line.step]
            if not self.substitution:
                self.reading.variables += recorded
            return
        if not (line.launches or starts(line.step) or any(starts(each) for each in inner)):
            return
        self._close(inner or [line.step], place, index)
        self.reading.variables += recorded

    def _close(self, candidates: Sequence[JobStep], place: int, index: int) -> None:
        """Keep the step, and give its number to the commands that were read with it."""
        step = chosen(candidates)
        self.reading.steps.append(step)
        self.reading.commands[place:] = [
            replace(each, step=index) if each.step is None else each
            for each in self.reading.commands[place:]
        ]

    def _is_script(self, text: str) -> bool:
        return self.depth < DEEPEST and self.reading.script(text) is not None

    def _inside(
        self, line: CommandLine, scope: Scope, given: Mapping[str, Pieces]
    ) -> list[JobStep]:
        """Read what a line's innermost shell or script runs; return the programs it starts."""
        source: ParsedSource | None = None
        positional: tuple[Pieces, ...] | None = None
        step = line.step
        if line.text is not None:
            source = ParsedSource(line.text.pieces)
            step = replace(step, shells=(*step.shells, line.text.word))
            positional = tuple(each.pieces for each in line.rest[2:])
        elif line.stdin and given.get("<"):
            source = ParsedSource(given["<"])
        elif line.rest and (found := self.reading.script(line.rest[0].text)) is not None:
            source = found[1]
            positional = tuple(each.pieces for each in line.rest[1:])
        if source is None or self.depth >= DEEPEST:
            return []
        child = self.scope_for(line, scope)
        child.positional = positional
        # A shell that the batch script starts by itself has steps of its own.
        outer = step if self.outer is not None or line.launches else None
        walker = Walker(
            self.reading, Tree(source), child, line.shell, self.depth + 2, outer, self.substitution
        )
        walker.walk(background=step.background)
        return walker.candidates

    def scope_for(self, line: CommandLine, scope: Scope) -> Scope:
        """Return what a program started by `line` knows of `scope`."""
        return Scope() if line.clean else scope.child()

    def _call(
        self,
        name: str,
        arguments: Sequence[ExpandedWord],
        prefixes: Sequence[Node],
        *,
        background: bool,
    ) -> None:
        tree, body = self.scope.functions[name]
        for node in prefixes:
            self.assign(node)
        kept = self.scope.positional, self.tree, self.calling
        outer, self.locals, changing = self.locals, {}, self.scope.changing
        steps, settings = len(self.reading.steps), len(self.reading.variables)
        self.scope.positional = tuple(each.pieces for each in arguments[1:])
        self.tree, self.calling = tree, (*self.calling, name)
        self._statement(body, background=background)
        self.scope.positional, self.tree, self.calling = kept
        if len(self.reading.steps) == steps and not self.candidates:
            self.reading.variables[settings:] = [
                replace(each, local=each.local or each.name in self.locals)
                for each in self.reading.variables[settings:]
            ]
        for local, value in self.locals.items():
            self.scope.values.pop(local, None)
            if local not in changing:
                self.scope.changing -= {local}
            if value is not None:
                self.scope.values[local] = value
        self.locals = outer

    def _not_understood(self, node: Node, message: str) -> None:
        if not any(each.id == "not-understood" for each in self.reading.troubles):
            at = span(self.tree.source.cut(*self.tree.span(node)))
            self.reading.troubles.append(Trouble("not-understood", message, at))
