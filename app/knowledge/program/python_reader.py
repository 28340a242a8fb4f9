"""Reader of a Python file into the facts that rules use, without running it."""

import ast
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lumitui.app.knowledge.program.program_facts import (
    Assignment,
    Call,
    CallArgument,
    Expression,
    Fault,
    LineGuard,
    ProgramOption,
    PythonFile,
    Role,
    Text,
    Value,
)
from lumitui.app.knowledge.program.roles import (
    Sides,
    dotted,
    flags_of,
    guard_of,
    looked_up,
    mentioned,
    names_with_roles,
    variable_read,
)
from lumitui.app.knowledge.program.syntax_tree import tree_of
from lumitui.remote.site.source_position import Position


def constants_of(tree: ast.Module) -> dict[str, Value]:
    """Return the names that the file sets exactly once, at its top level and to a constant."""
    times: dict[str, int] = {}
    for name in _bound(tree):
        times[name] = times.get(name, 0) + 1
    found: dict[str, Value] = {}
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str | int | float | bool)
            and times[node.targets[0].id] == 1
        ):
            found[node.targets[0].id] = node.value.value
    return found


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


_LONGEST = 300  # maximum length of an expression's text for rules and messages, in characters
_NEWER = re.compile(
    r"\s*type\s+\w+\s*[\[=]|\s*(?:async\s+)?(?:def|class)\s+\w+\s*\[|.*\bt['\"]|.*\bf['\"].*\{"
)
"""Syntax of Python 3.12 and 3.14 that 3.11 lacks: `type X = int`, `def f[T](x)`, t-strings, and any
f-string within braces."""
_LEAVES = (ast.Return, ast.Continue, ast.Break)


def read_python(text: str, file: str) -> PythonFile:
    """Return the facts of a Python file; if it does not parse, only `fault` is set."""
    try:
        tree = tree_of(text)
    except SyntaxError as error:
        fault = _fault(error, file)
        if _NEWER.match(_line(text, fault.at.line)) or "f-string" in fault.message:
            return PythonFile(file, whole=False)  # the site's Python may be newer than this one
        return PythonFile(file, fault)
    except (ValueError, RecursionError, MemoryError) as error:
        # NUL bytes; brackets nested deeper than Python's own limit.
        return PythonFile(
            file, Fault(f"{type(error).__name__}: {error}", Position(1, 1, file=file))
        )
    try:
        roles = names_with_roles(tree)
        return _ModuleReader(file, roles, flags_of(tree, roles)).read(tree)
    except RecursionError:  # a sum of a thousand terms, which Python can run
        return PythonFile(file, whole=False)


def _fault(error: SyntaxError, file: str) -> Fault:
    line = error.lineno or 1
    column = max(1, error.offset or 1)
    return Fault(error.msg, Position(line, column, line, column + 1, file))


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1] if number <= len(lines) else ""


@dataclass
class _ModuleReader:
    """Walks a module once, tracking the conditions at the current position."""

    file: str
    roles: dict[str, Role]
    flags: dict[str, Sides] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    constants: dict[str, Value] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    settings: list[Assignment] = field(default_factory=list)
    options: list[ProgramOption] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    musts: list[Call] = field(default_factory=list)
    asks: set[str] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)
    started: set[int] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    guarded: set[str] = field(default_factory=set)
    dictionaries: list[Text] = field(default_factory=list)
    guards: tuple[LineGuard, ...] = ()
    function: str = ""
    target: str = ""

    def read(self, tree: ast.Module) -> PythonFile:
        for node in ast.walk(tree):
            self._import(node)
        self.constants = constants_of(tree)
        self._block(tree.body)
        program = PythonFile(
            file=self.file,
            imports=frozenset(self.imports),
            calls=tuple(sorted(self.calls, key=lambda call: call.at)),
            settings=tuple(self.settings),
            options=tuple(self.options),
            texts=tuple(self.texts),
            asks=frozenset(self.asks | looked_up(tree, {one.value for one in self.texts})),
            functions=frozenset(self.functions),
            passed=frozenset(self.functions & self.named),
            guarded=frozenset(self.guarded),
            dictionaries=tuple(self.dictionaries),
        )
        reads = frozenset(one.name for one in self.musts if program.comes_to(one))
        return replace(program, reads=reads, asks=program.asks - reads)

    def _import(self, node: ast.AST) -> None:
        self.imports |= set(_imported(node))
        if isinstance(node, ast.Import):
            for name in node.names:
                first = name.name.partition(".")[0]
                self.aliases[name.asname or first] = name.name if name.asname else first
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for name in node.names:
                self.aliases[name.asname or name.name] = f"{module}.{name.name}".lstrip(".")

    def _guard(self, node: ast.expr, *, holds: bool = True) -> LineGuard:
        return guard_of(node, self.roles, self.flags, holds=holds)

    def _block(self, body: Sequence[ast.stmt]) -> None:
        """Walk statements; those after `if rank != 0: return` have a guard."""
        before = self.guards
        for number, node in enumerate(body):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and number == 0:
                continue  # a docstring
            self._statement(node)
            if isinstance(node, ast.If):
                self.guards = (*self.guards, *self._behind(node))
        self.guards = before

    def _behind(self, node: ast.If) -> Iterator[LineGuard]:
        """Yield the guard of the statements after an `if` that leaves its block without error."""
        if _leaves(node.body[-1]):
            yield self._guard(node.test, holds=False)
        elif node.orelse and _leaves(node.orelse[-1]):
            yield self._guard(node.test)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._function(node)
        elif isinstance(node, ast.If):
            self._values([node.test])
            guard = self._guard(node.test)
            started = "__name__" in guard.text  # the job starts this file as its program
            self._under(() if started else (guard,), node.body)
            self._under((self._guard(node.test, holds=False),), node.orelse)
        elif isinstance(node, ast.With | ast.AsyncWith):
            contexts = [item.context_expr for item in node.items]
            self._values(contexts)
            found = [self._guard(context) for context in contexts]
            self._under(
                [LineGuard(one.text, "some") for one in found if "first" in one.text], node.body
            )
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            self._loop(node)
        elif isinstance(node, ast.Try) and node.handlers:
            self._under((LineGuard("try", "other"),), node.body)
            for handler in node.handlers:
                self._under((LineGuard("except", "other"),), handler.body)
            self._block(node.orelse)
            self._block(node.finalbody)
        elif isinstance(node, ast.ClassDef):
            self._values(node.decorator_list)
            self._block(node.body)
        else:
            self._plain(node)

    def _under(self, guards: Iterable[LineGuard], body: Sequence[ast.stmt]) -> None:
        before = self.guards
        self.guards = (*before, *guards)
        self._block(body)
        self.guards = before

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.functions.add(node.name)
        self._values(node.decorator_list)
        words = " ".join(ast.unparse(item) for item in node.decorator_list)
        if re.search(r"zero_only|main_process|main_only|master_only", words):
            self.guarded.add(node.name)
        self._values([*node.args.defaults, *(one for one in node.args.kw_defaults if one)])
        before = (self.guards, self.function)
        self.guards, self.function = (), node.name
        self._block(node.body)
        self.guards, self.function = before

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        self._values([node.test if isinstance(node, ast.While) else node.iter])
        self._block(node.body)
        self._block(node.orelse)

    def _plain(self, node: ast.stmt) -> None:
        """Walk a statement that sets no condition; the statements inside it are blocks."""
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                self._setting(target, node.value)
            self.target = ast.unparse(targets[0])[:_LONGEST]
        for _name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                self._values([value])
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.stmt):
                        self._block(value)
                        break
                    if isinstance(item, ast.expr):
                        self._values([item])
                    elif isinstance(item, ast.ExceptHandler | ast.match_case):
                        self._block(item.body)
        self.target = ""

    def _setting(self, target: ast.expr, value: ast.expr) -> None:
        name, _must = variable_read(target)
        text = f"environ[{name}]" if name else ast.unparse(target)[:_LONGEST]
        made = self._expression(value)
        self.settings.append(Assignment(text, made, self._at(target), self.guards, self.function))

    def _values(self, nodes: Iterable[ast.expr]) -> None:
        for node in nodes:
            self._value(node)

    def _value(self, node: ast.expr) -> None:
        """Walk a value; the parts after a condition inside it have a guard, like a block."""
        if isinstance(node, ast.IfExp):
            self._value(node.test)
            self._guarded([self._guard(node.test)], node.body)
            self._guarded([self._guard(node.test, holds=False)], node.orelse)
            return
        if isinstance(node, ast.BoolOp):
            holds, before = isinstance(node.op, ast.And), list[LineGuard]()
            for value in node.values:
                self._guarded(before, value)
                before.append(self._guard(value, holds=holds))
            return
        if isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.texts.append(Text(node.value, self._at(node)))
        elif isinstance(node, ast.Dict):
            self._dictionary(node)
        elif isinstance(node, ast.Lambda):
            return  # its callers are unknown
        variable, must = variable_read(node)
        if variable and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            self.asks.add(variable)
            if must:
                self.musts.append(Call(variable, (), self._at(node), self.guards, self.function))
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in self.started:
            self.named.add(dotted(node).rpartition(".")[2])
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._value(child)
            elif isinstance(child, ast.keyword):
                self._value(child.value)
            elif isinstance(child, ast.comprehension):
                self._values([child.iter, *child.ifs])

    def _guarded(self, guards: Iterable[LineGuard], node: ast.expr) -> None:
        before = self.guards
        self.guards = (*before, *guards)
        self._value(node)
        self.guards = before

    def _call(self, node: ast.Call) -> None:
        name = self._resolved(dotted(node.func))
        self.started.add(id(node.func))
        if name.endswith(".add_argument"):
            self._option(node)
        arguments = [self._argument(value, "") for value in node.args]
        arguments += [self._argument(word.value, word.arg or "**") for word in node.keywords]
        self.calls.append(
            Call(name, tuple(arguments), self._at(node), self.guards, self.function, self.target)
        )

    def _option(self, node: ast.Call) -> None:
        flags = tuple(
            value.value
            for value in node.args
            if isinstance(value, ast.Constant) and isinstance(value.value, str)
        )
        words = {word.arg: word.value for word in node.keywords}
        if not flags:
            return
        long = next((flag for flag in flags if flag.startswith("--")), flags[0])
        given = words.get("dest")
        name = long.lstrip("-").replace("-", "_")
        if isinstance(given, ast.Constant):
            name = str(given.value)
        default = self._expression(words["default"]) if "default" in words else None
        must = isinstance(word := words.get("required"), ast.Constant) and word.value is True
        self.options.append(ProgramOption(flags, name, default, must))

    def _argument(self, node: ast.expr, name: str) -> CallArgument:
        if isinstance(node, ast.Starred):
            return CallArgument("*", name="*")
        return CallArgument(**vars(self._expression(node)), name=name)

    def _expression(self, node: ast.expr) -> Expression:
        text = ast.unparse(node)[:_LONGEST]
        constant, value = self._constant(node)
        return Expression(text, constant, value, mentioned(node, self.roles))

    def _constant(self, node: ast.expr) -> tuple[bool, Value]:
        if isinstance(node, ast.Constant):
            simple = node.value is None or isinstance(node.value, str | int | float | bool)
            return simple, node.value if simple else None  # type: ignore[return-value]
        if isinstance(node, ast.Name) and node.id in self.constants:
            return True, self.constants[node.id]
        if isinstance(node, ast.Call) and dotted(node.func) in ("int", "float") and node.args:
            return False, None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            known, value = self._constant(node.operand)
            return (True, -value) if known and isinstance(value, int | float) else (False, None)
        return False, None

    def _dictionary(self, node: ast.Dict) -> None:
        try:
            value = ast.literal_eval(node)
            self.dictionaries.append(Text(json.dumps(value), self._at(node)))
        except (ValueError, TypeError, RecursionError, MemoryError):
            return  # it holds names

    def _resolved(self, name: str) -> str:
        first, dot, rest = name.partition(".")
        return f"{self.aliases.get(first, first)}{dot}{rest}"

    def _at(self, node: ast.expr) -> Position:
        return Position(
            node.lineno,
            node.col_offset + 1,
            node.end_lineno or node.lineno,
            (node.end_col_offset or node.col_offset) + 1,
            self.file,
        )


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (name.name for name in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield "." * node.level + (node.module or "")


def _leaves(node: ast.stmt) -> bool:
    """Return whether a statement leaves its block without an error, which would end the job."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        if dotted(node.value.func) not in ("exit", "quit", "sys.exit", "os._exit"):
            return False
        code = node.value.args[0] if node.value.args else ast.Constant(0)
        return isinstance(code, ast.Constant) and code.value in (0, None)
    return isinstance(node, _LEAVES)
