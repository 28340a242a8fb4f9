"""An interpreter that reads a script from top to bottom, as if every branch ran."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile

from tree_sitter import Node

from lumitui.app.knowledge.bash.command_line import CommandLine, name_of, read_line, starts_others
from lumitui.app.knowledge.bash.expand import ExpandedWord, shell_text
from lumitui.app.knowledge.bash.option_tables import IDLE
from lumitui.app.knowledge.bash.origins import ParsedSource, Piece, Pieces, plain, span
from lumitui.app.knowledge.bash.parsed_text import Tree, flat
from lumitui.app.knowledge.bash.scope import UNKNOWN, Scope, Value
from lumitui.app.knowledge.bash.shell_state import ShellState
from lumitui.app.knowledge.script_job import JobStep, Trouble
from lumitui.remote.site.source_position import Position

SWAPS = {"switch", "swap"}
LOADS = {"load", "add", "try-load"} | SWAPS
_UNLOAD = {"unload", "rm", "del", "delete"}
_OTHER = {
    "use", "unuse", "list", "avail", "spider", "show", "help", "whatis", "key", "save", "restore",
    "reset", "update", "refresh", "is-loaded", "is-avail", "display", "keyword", "overview",
    "disable", "describe", "savelist", "search", "available", "table", "tablelist",
}  # fmt: skip


def module_call(program: str, words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the action of `module WORDS` or `ml WORDS`, and the module names it applies to."""
    words = [word for word in words if not word.startswith("--") and word != "-f"]
    option = "-" if program == "module" else "-[a-z]$"  # `ml -name` unloads it
    words = [*dropwhile(lambda word: re.match(option, word), words)]
    if program == "ml" and words and words[0] not in LOADS | _UNLOAD | _OTHER | {"purge"}:
        return "load", words
    return "".join(words[:1]), words[1:]


def loaded(before: Sequence[str], program: str, words: Sequence[str]) -> list[str]:
    """Return the modules loaded after `module WORDS` or `ml WORDS`, starting from `before`."""
    verb, names = module_call(program, words)
    if verb == "purge":
        return []
    if verb in _UNLOAD:
        return _without(before, names)
    if verb not in LOADS:
        return [*before]
    gone = [name[1:] for name in names if name.startswith("-")]
    if verb in SWAPS:
        gone += names[:1]
        names = names[-1:]
    new = [name for name in names if not name.startswith("-")]
    return [*(each for each in _without(before, gone) if each not in new), *new]


def _without(modules: Sequence[str], names: Sequence[str]) -> list[str]:
    return [each for each in modules if not {each, each.split("/")[0]} & {*names}]


_DEEPEST = 60
"""Maximum nesting of statements; deeper ones are not read."""
_MOST = 5_000
"""Maximum number of commands of a job; those of a function count at each call."""
_BLOCKS = {
    "program", "do_group", "compound_statement", "else_clause", "elif_clause", "pipeline",
    "negated_command", "list",
}  # fmt: skip


@dataclass
class Interpreter(ShellState):
    """Reads the statements of one shell and tracks its position in the script."""

    calling: tuple[str, ...] = ()
    """The functions being called, outermost first."""
    candidates: list[JobStep] = field(default_factory=list)
    """Within a step: the programs that this shell starts."""

    # Statements.

    def walk(self) -> None:
        """Read all statements."""
        self._statement(self.tree.root)
        if self.depth == 0 and self.reading.at_exit:
            self._eval(self.reading.at_exit)

    def _statement(self, node: Node) -> None:
        if self.depth > _DEEPEST:
            self._not_understood(node, f"More than {_DEEPEST} blocks are nested here.")
            return
        if self.reading.count > _MOST:
            self._not_understood(
                node, f"lumitui does not read beyond the first {_MOST:,} commands."
            )
            return
        self.depth += 1
        try:
            self._dispatch(node)
        finally:
            self.depth -= 1

    def _dispatch(self, node: Node) -> None:
        kind = node.type
        if kind == "command":
            self._command(node, {})
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
            self._redirected(node)
        elif kind == "function_definition":
            self._function(node)
        elif kind in ("if_statement", "case_statement"):
            self._branches(node)
        elif kind in ("for_statement", "while_statement", "c_style_for_statement"):
            self._loop(node)
        elif kind == "subshell":
            kept, self.scope = self.scope, self.scope.copy()
            self._block(node.children)
            self.scope = kept
        elif kind == "list":
            self._list(flat(node))
        elif kind in _BLOCKS or kind == "ERROR":
            self._block(flat(node))

    def _block(self, children: Sequence[Node]) -> None:
        for number, child in enumerate(children):
            if not child.is_named or child.type in ("comment", "heredoc_body"):
                continue
            before = self.background
            self.background = before or any(x.type == "&" for x in children[number + 1 :][:1])
            self._statement(child)
            self.background = before

    def _list(self, children: Sequence[Node]) -> None:
        """Read `a && b`: the commands after the first may not run."""
        self._block(children[:1])
        self.branches += 1
        self._block(children[1:])
        self.branches -= 1

    def _branches(self, node: Node) -> None:
        """Read an `if` or `case`; afterwards a variable is known if all branches agree on it."""
        before, ends, complete = self.scope, [], node.type == "case_statement"
        branches = _parts(node)
        self._block(branches[0])
        for part in branches[1:]:
            self.scope = before.copy()
            self.branches += 1
            self._block(part)
            self.branches -= 1
            ends.append(self.scope)
        complete = complete or any(child.type == "else_clause" for child in node.children)
        self.scope = before
        if ends:
            before.join(ends if complete else [before.copy(), *ends])

    def _loop(self, node: Node) -> None:
        before = self.scope.copy()
        name = next((each for each in node.named_children if each.type == "variable_name"), None)
        if name is not None and node.type == "for_statement":
            self.scope.set(self.tree.text(name), UNKNOWN)
        self.reading.loops += 1
        self._block(node.named_children)
        self.reading.loops -= 1
        after = self.scope.copy()
        self.scope.join([before, after])

    def _function(self, node: Node) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.scope.functions[self.tree.text(name)] = (self.tree, body)

    def _redirected(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child != body]
        given = self.redirects(redirects)
        if body is None:
            pass
        elif body.type == "command":
            self._command(body, given)
        else:
            self._statement(body)
        for child in redirects:
            if child.type == "heredoc_redirect":
                more = [each for each in child.named_children if each.type in _BLOCKS | {"command"}]
                self._block(more)

    # Commands.

    def _command(self, node: Node, given: Mapping[str, Pieces]) -> None:
        self.reading.count += 1
        prefixes, words, first = self.command_parts(node)
        given = {**given, **self.redirects(node.children)}
        arguments: list[ExpandedWord] = []
        for each in prefixes:
            self._substitutions(each)
        for word in words:
            self._substitutions(word)
            self.defaults(word)
            self._passed_on(word)
            arguments += self.expander().arguments(word)
        if not arguments:
            for each in prefixes:
                self.assign(each)
            return
        start = self.tree.span(prefixes[0] if prefixes else first)[0]
        end = max(self.tree.span(word)[1] for word in words)
        at = self.tree.source.position(start, end)
        self._run(arguments, prefixes, given, at)

    def _passed_on(self, word: Node) -> None:
        """Note that `exec $*` splits the text of a `bash -c` in this script's arguments."""
        given = self.scope.positional or ()
        text = shell_text(given)
        written = self.tree.text(word)
        if text is not None and written in ("$*", "$@", "${*}", "${@}"):
            first = plain(given[text]).split()[0]
            message = (
                f"{written} splits the text of `-c` at its spaces: the shell runs only `{first}`"
            )
            message += ", and your program never starts."
            self.reading.troubles.append(
                Trouble("command-split", message, self.tree.position(word))
            )

    def _substitutions(self, node: Node) -> None:
        """Read the commands in `$(…)` within a word, which run before the word's command."""
        waiting, steps = [node], 0
        while waiting and steps < 2_000:
            steps += 1
            each = waiting.pop()
            if each.type in ("command_substitution", "process_substitution"):
                if self.depth < _DEEPEST and not self.tree.source.made_outside(
                    self.tree.span(each)[0]
                ):
                    inside = Interpreter(
                        self.reading, self.tree, self.scope.copy(), self.shell, self.depth + 1,
                        JobStep(trains=False), substitution=True,
                    )  # fmt: skip
                    inside._block(each.children)
            else:
                waiting.extend(each.named_children)

    def _run(
        self,
        arguments: list[ExpandedWord],
        prefixes: Sequence[Node],
        given: Mapping[str, Pieces],
        at: Position,
    ) -> None:
        name = name_of(arguments[0])
        if name in self.scope.functions and self.depth < _DEEPEST:
            if name in self.calling:
                self.note(name, arguments[1:], at)
            else:
                self._call(name, arguments, prefixes)
            return
        if self._builtin(name, arguments, given, at):
            return
        callable_here = self.scope.functions.keys() - set(self.calling)
        called = next((n for n, word in enumerate(arguments[1:4], 1)
                       if word.text in callable_here), 0)  # fmt: skip
        if called and name not in IDLE and (name == "time" or not starts_others(name)):
            # `retry launch python …`: a command of the site's own that calls the script's function.
            self._call(arguments[called].text, arguments[called:], prefixes)
            return
        index = len(self.reading.steps)
        base = self.outer or JobStep(at=at)
        base = replace(base, background=base.background or self.background,
                       program_shell=self.shell, repeated=self.reading.loops > 0)  # fmt: skip
        readable = self.depth < _DEEPEST
        line = read_line(
            arguments,
            base,
            self.shell,
            lambda word: readable and self.reading.script(word) is not None,
        )
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
        if not (line.launches or _launches(line.step) or any(_launches(each) for each in inner)):
            return
        self._close(inner or [line.step], place, index)
        self.reading.variables += recorded

    def _close(self, candidates: Sequence[JobStep], place: int, index: int) -> None:
        """Keep the step, and assign its number to the commands read with it."""
        step = _main_of(candidates)
        self.reading.steps.append(step)
        self.reading.commands[place:] = [
            replace(each, step=index) if each.step is None else each
            for each in self.reading.commands[place:]
        ]

    def _inside(
        self, line: CommandLine, scope: Scope, given: Mapping[str, Pieces]
    ) -> list[JobStep]:
        """Read the commands of a line's innermost shell or script; return the programs started."""
        source: ParsedSource | None = None
        positional: tuple[Pieces, ...] | None = None
        step = line.step
        if line.text is not None:
            source = ParsedSource(line.text.pieces)
            step = replace(step, shells=(*step.shells, line.text.word))
            positional = tuple(each.pieces for each in line.rest[2:])
        elif line.stdin and given.get("<"):
            source = ParsedSource(given["<"])
        elif line.rest and (source := self.reading.script(line.rest[0].text)) is not None:
            positional = tuple(each.pieces for each in line.rest[1:])
        if source is None or self.depth >= _DEEPEST:
            return []
        child = Scope() if line.clean else scope.child()
        child.positional = positional
        # A shell that the batch script starts directly has its own steps.
        outer = step if self.outer is not None or line.launches else None
        inner = Interpreter(
            self.reading, Tree(source), child, line.shell, self.depth + 2, outer,
            self.substitution, step.background,
        )  # fmt: skip
        inner.walk()
        return inner.candidates

    def _call(self, name: str, arguments: Sequence[ExpandedWord], prefixes: Sequence[Node]) -> None:
        tree, body = self.scope.functions[name]
        for node in prefixes:
            self.assign(node)
        kept = self.scope.positional, self.tree, self.calling
        outer, self.locals, changing = self.locals, {}, self.scope.changing
        steps, settings = len(self.reading.steps), len(self.reading.variables)
        self.scope.positional = tuple(each.pieces for each in arguments[1:])
        self.tree, self.calling = tree, (*self.calling, name)
        self._statement(body)
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

    # Shell builtins.

    def _builtin(
        self, name: str, arguments: list[ExpandedWord], given: Mapping[str, Pieces], at: Position
    ) -> bool:
        """Execute a shell builtin; return False for any other program."""
        words = [each.text for each in arguments[1:]]
        if name == "set":
            self._export_all(words)
        elif name in ("module", "ml"):
            if self.outer is None:
                self.reading.modules = loaded(self.reading.modules, name, words)
        elif name in ("source", ".") and words:
            self.note(name, arguments[1:], at)
            script = self.reading.script(words[0]) if self.depth < _DEEPEST else None
            if script is not None:
                self._read(script)
            return True
        elif name == "eval" and self.depth < _DEEPEST:
            self._eval(arguments[1:])
            return True
        elif name == "trap" and self.depth and len(words) > 1 and {"EXIT", "0"} & set(words[1:]):
            self.reading.at_exit = arguments[1:2]
        elif name == "shift" and self.scope.positional:
            count = int(words[0]) if words and words[0].isdecimal() else 1
            self.scope.positional = self.scope.positional[count:]
        elif name in ("read", "readarray", "mapfile"):
            names = [word for word in words if re.fullmatch(r"[A-Za-z_]\w*", word)]
            # With several variables, each gets a part of the line.
            whole = given.get("<") if name == "read" and len(names) == 1 else None
            for word in names:
                self.scope.set(word, Value(whole))
        elif name in ("cat", "tee") and given.get("<"):
            target = given.get(">") or (arguments[-1].pieces if name == "tee" and words else ())
            if target:
                self.reading.written[plain(target)] = ParsedSource(given["<"])
        else:
            return False
        self.note(name, arguments[1:], at)
        return True

    def _export_all(self, words: Sequence[str]) -> None:
        """Execute `set -a`, `set +a` and their long forms."""
        for number, word in enumerate(words):
            if word == "--":
                return
            following = words[number + 1] if number + 1 < len(words) else ""
            long = re.fullmatch(r"[-+]\w*o", word) and following == "allexport"
            if long or re.match(r"[-+]\w*a", word):
                self.scope.export_all = word.startswith("-")

    def _eval(self, arguments: Sequence[ExpandedWord]) -> None:
        pieces: list[Piece] = []
        for each in arguments:
            if pieces and each.pieces:
                pieces.append(replace(pieces[-1], text=" ", kind="literal"))
            pieces += each.pieces
        if pieces:
            self._read(ParsedSource(tuple(pieces)))

    def _read(self, source: ParsedSource) -> None:
        """Read another text in this shell, as `source` and `eval` do."""
        kept, self.tree = self.tree, Tree(source)
        self._statement(self.tree.root)
        self.tree = kept


def _parts(node: Node) -> list[list[Node]]:
    """Return the part of an `if` or `case` that always runs, then each branch."""
    if node.type == "case_statement":
        items = [item for item in node.children if item.type == "case_item"]
        return [[], *(item.children[_pattern_end(item) + 1 :] for item in items)]
    branches: list[list[Node]] = [[]]
    for child in node.children:
        if child.type in ("then", "elif_clause", "else_clause"):
            branches.append([])
        if child.is_named or child.type == "&":
            branches[-1].append(child)
    return branches


def _pattern_end(item: Node) -> int:
    """Return the index at which the patterns of a case end."""
    return next((n for n, child in enumerate(item.children) if child.type == ")"), -1)


def _launches(step: JobStep) -> bool:
    """Return whether a step is more than a command of the batch script."""
    return step.launcher != "plain" or step.container is not None or step.python


def _main_of(candidates: Sequence[JobStep]) -> JobStep:
    """Return a step's main program: the last launched one, otherwise the last that trains."""

    def weight(step: JobStep) -> tuple[bool, bool, bool]:
        return step.trains, step.launcher != "plain", step.python

    best = max(weight(step) for step in candidates)
    return next(step for step in reversed(candidates) if weight(step) == best)
