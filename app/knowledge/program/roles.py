"""The names in a program that hold the global rank, the local rank or the number of ranks."""

import ast
import operator
import re
from collections.abc import Callable
from typing import NamedTuple

from lumitui.app.knowledge.program.program_facts import ABOUT_RANKS, GuardKind, LineGuard, Role
from lumitui.app.knowledge.program.syntax_tree import tree_of

_VARIABLES: dict[str, Role] = {
    "RANK": "rank",
    "SLURM_PROCID": "rank",
    "OMPI_COMM_WORLD_RANK": "rank",
    "PMI_RANK": "rank",
    "LOCAL_RANK": "local",
    "SLURM_LOCALID": "local",
    "OMPI_COMM_WORLD_LOCAL_RANK": "local",
    "MPI_LOCALRANKID": "local",
    "WORLD_SIZE": "world",
    "SLURM_NTASKS": "world",
    "SLURM_NPROCS": "world",
    "OMPI_COMM_WORLD_SIZE": "world",
}
_CALLS: dict[str, Role] = {
    "get_rank": "rank",
    "Get_rank": "rank",
    "get_local_rank": "local",
    "get_node_local_rank": "local",
    "local_rank": "local",
    "get_world_size": "world",
    "Get_size": "world",
}
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
_READERS = ("environ", "getenv")
_WRITERS = ("setdefault", "update", "pop")
"""Methods that change the environment without reading it."""


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` for a chain of names, or `?.c` if it begins with another expression."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else "?"


def variable_read(node: ast.expr) -> tuple[str, bool]:
    """Return the environment variable that `node` reads, or "", and whether it must be set."""
    if isinstance(node, ast.Subscript) and dotted(node.value).endswith("environ"):
        return _text(node.slice), True
    if isinstance(node, ast.Call) and node.args:
        name = dotted(node.func)
        if name.endswith(("environ.get", "getenv")):
            return _text(node.args[0]), False
    return "", False


def looked_up(tree: ast.Module, texts: set[str]) -> set[str]:
    """Return the module's texts that may name environment variables it reads indirectly.

    Examples: `os.environ[n] for n in names`, `map(os.getenv, names)`, `"RANK" in os.environ`.
    """
    made = {
        variable_read(node)[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    }
    named = {text for text in texts - made if _VARIABLE.fullmatch(text)}
    return named if named and _looks_up_names(tree) else set()


def _looks_up_names(tree: ast.Module) -> bool:
    plain: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and variable_read(node)[0]:
            base = node.func if isinstance(node, ast.Call) else getattr(node, "value", None)
            plain |= {id(part) for part in ast.walk(base)} if base is not None else set()
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            if any(one.asname and one.name in _READERS for one in node.names):
                return True
        elif isinstance(node, ast.Attribute) and node.attr in _WRITERS:
            plain.add(id(node.value))
    return any(
        isinstance(node, ast.Name | ast.Attribute)
        and dotted(node).rpartition(".")[2] in _READERS
        and id(node) not in plain
        for node in ast.walk(tree)
    )


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def role_of(node: ast.expr, names: dict[str, Role]) -> Role:
    """Return the role of a value, given the roles of names."""
    variable, _must = variable_read(node)
    if variable:
        return _VARIABLES.get(variable, "")
    if isinstance(node, ast.Name | ast.Attribute):
        return names.get(dotted(node), "")
    if isinstance(node, ast.Call):
        last = dotted(node.func).rpartition(".")[2]
        if last in ("int", "str") and len(node.args) == 1:
            return role_of(node.args[0], names)
        return _CALLS.get(last, "")
    if isinstance(node, ast.BoolOp):
        return role_of(node.values[0], names)
    if isinstance(node, ast.BinOp) and "rank" in mentioned(node.left, names):
        # `rank % gpus`, `rank - gpus * (rank // gpus)`
        return "local" if isinstance(node.op, ast.Mod | ast.Sub) else ""
    return ""


def mentioned(node: ast.expr, names: dict[str, Role]) -> frozenset[Role]:
    """Return the roles of all parts of a value; `rank % gpus` counts only as the local rank."""
    found: set[Role] = set()
    todo: list[ast.AST] = [node]
    while todo:
        part = todo.pop()
        formats = isinstance(part, ast.BinOp) and isinstance(part.left, ast.Constant)  # "cuda:%d"
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) and not formats:
            inner = mentioned(part.left, names)
            found |= {"local"} if "rank" in inner else inner
            continue
        if isinstance(part, ast.expr) and (role := role_of_leaf(part, names)):
            found.add(role)
            continue
        todo += ast.iter_child_nodes(part)
    return frozenset(found)


def role_of_leaf(node: ast.expr, names: dict[str, Role]) -> Role:
    """Return the role of a name, call or variable; "" for operations."""
    return "" if isinstance(node, ast.BinOp | ast.BoolOp) else role_of(node, names)


def names_with_roles(tree: ast.Module) -> dict[str, Role]:
    """Return the names in a module that hold a rank or the number of ranks, with their roles.

    A name set to values of different roles has none. Function parameters take the roles of their
    arguments.
    """
    names: dict[str, Role] = {}
    for _round in range(3):  # names may depend on names, and parameters on both
        before = dict(names)
        names = _assigned(tree, before) | {}
        if names == before:
            break
    return names


def _assigned(tree: ast.Module, names: dict[str, Role]) -> dict[str, Role]:
    found: dict[str, set[Role]] = {}
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                _pair(target, node.value, names, found)
        elif isinstance(node, ast.Call) and (made := functions.get(dotted(node.func))):
            for parameter, value in zip(made.args.args, node.args, strict=False):
                found.setdefault(parameter.arg, set()).add(role_of(value, names))
    single = {name: next(iter(roles)) for name, roles in found.items() if len(roles) == 1}
    return {name: role for name, role in single.items() if role}


def _pair(
    target: ast.expr, value: ast.expr, names: dict[str, Role], found: dict[str, set[Role]]
) -> None:
    if isinstance(target, ast.Tuple):
        for each, part in zip(target.elts, _parts(value), strict=False):
            _pair(each, part, names, found)
    elif isinstance(target, ast.Name | ast.Attribute):
        # `local_rank = 0` before the real one is a default, not another meaning.
        if isinstance(value, ast.Constant):
            return
        found.setdefault(dotted(target), set()).add(role_of(value, names))


def _parts(value: ast.expr) -> list[ast.expr]:
    """Return the values of a tuple of names, also from `(int(os.environ[k]) for k in (…))`."""
    if isinstance(value, ast.Tuple | ast.List):
        return value.elts
    if isinstance(value, ast.Call) and dotted(value.func) == "map" and len(value.args) == 2:
        return _parts(value.args[1])
    if isinstance(value, ast.GeneratorExp | ast.ListComp) and len(value.generators) == 1:
        each = value.generators[0]
        if isinstance(each.target, ast.Name) and not each.ifs:
            texts = [ast.unparse(part) for part in _parts(each.iter)]
            name = rf"\b{re.escape(each.target.id)}\b"
            whole = ast.unparse(value.elt)
            found = [re.sub(name, text.replace("\\", r"\\\\"), whole) for text in texts]
            return [tree_of(text, "eval").body for text in found]
    return []


_SIDES = r"(?:is|am|on|if|the|i)"
_FIRST = re.compile(
    rf"_?(?:{_SIDES}_?)*(?:(?:global|world)_?)?(?:main|master|primary|chief|root|lead|leader)"
    r"(?:_?(?:process|proc|rank|worker|device))?|"
    rf"_?(?:{_SIDES}_?)*(?:first_?(?:rank|process|proc|worker)"
    r"|(?:global_?)?rank_?(?:0|zero)|global_?zero|world_process_zero)",
    re.IGNORECASE,
)
"""Names of conditions that hold on one rank of the job: `is_main_process`, `master`."""
_FIRST_OF_NODE = re.compile(
    rf"_?(?:{_SIDES}_?)*(?:local|node)_?(?:main|master|primary|rank_?(?:0|zero)|zero|process_zero)"
    r"(?:_?(?:process|proc|rank))?|"
    rf"_?(?:{_SIDES}_?)*(?:main|master)_?(?:local|on_node)(?:_?process)?",
    re.IGNORECASE,
)
_RANK = re.compile(r"(?:global_?|world_?|dist_?)?rank|proc(?:ess)?_?(?:id|index)", re.IGNORECASE)
_LOCAL = re.compile(r"(?:node_?)?local_?(?:rank|id|process_?index)", re.IGNORECASE)
_SOMEHOW = re.compile(
    r"rank|main_?proc|master|is_main|is_root|is_primary|is_chief|procid|process_index|global_zero|"
    r"process_zero|leader|stage|is_first|is_last|(?<![a-z])[dtp]p_",
    re.IGNORECASE,
)
"""A condition that may test ranks in a way that this module does not read."""
_MANY = 70  # ranks to try a comparison on; programs mention no higher rank by number
_COMPARED: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
}
Names = dict[str, Role]


class Sides(NamedTuple):
    """The ranks for which a condition holds, and those for which it does not."""

    true: GuardKind
    false: GuardKind
    mixed: bool = False
    """Whether it also depends on something besides the rank."""

    def side(self, holds: bool) -> GuardKind:
        """Return the ranks for one outcome."""
        return self.true if holds else self.false


_OTHER = Sides("other", "other")
_SOME = Sides("some", "some")
_ONE: dict[Role, Sides] = {"rank": Sides("rank", "some"), "local": Sides("local", "some")}


def flags_of(tree: ast.Module, names: Names) -> dict[str, Sides]:
    """Return the names that hold a condition on ranks, like `master = rank == 0`."""
    flags: dict[str, set[Sides]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            sides = _OTHER
            if isinstance(node.value, ast.Compare | ast.BoolOp | ast.UnaryOp):
                sides = _sides(node.value, names, {})
            for target in node.targets:
                if not isinstance(node.value, ast.Constant):
                    flags.setdefault(dotted(target), set()).add(sides)
    return {
        name: next(iter(sides)) if len(sides) == 1 else _SOME
        for name, sides in flags.items()
        if sides != {_OTHER}
    }


def guard_of(
    node: ast.expr, names: Names, flags: dict[str, Sides], *, holds: bool = True
) -> LineGuard:
    """Return the guard of a line that runs if a condition holds, or if it does not."""
    sides = _sides(node, names, flags)
    return LineGuard(ast.unparse(node), sides.side(holds), sides.mixed)


def _sides(node: ast.expr, names: Names, flags: dict[str, Sides]) -> Sides:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _sides(node.operand, names, flags)
        return Sides(inner.false, inner.true, inner.mixed)
    if isinstance(node, ast.BoolOp):
        return _joined(node, [_sides(value, names, flags) for value in node.values])
    if isinstance(node, ast.NamedExpr):
        return _sides(node.value, names, flags)
    if isinstance(node, ast.Compare):
        return _compared(node, names)
    return _named(node, names, flags)


def _joined(node: ast.BoolOp, parts: list[Sides]) -> Sides:
    """Return the ranks that pass `and` or `or`: `a or b` is false if `not a and not b` is true."""
    both = isinstance(node.op, ast.And)
    # Programs that also run without ranks write `rank == 0 or not distributed` for rank 0.
    plain = [
        side
        for part, side in zip(node.values, parts, strict=True)
        if side != _OTHER or not ABOUT_RANKS.search(ast.unparse(part))
    ]
    mixed = _OTHER in parts or any(side.mixed for side in parts)
    all_true = _narrowest([side.true for side in parts])
    if both:
        return Sides(all_true, _widest([side.false for side in plain]), mixed)
    return Sides(
        _widest([side.true for side in plain]), _narrowest([s.false for s in parts]), mixed
    )


def _narrowest(kinds: list[GuardKind]) -> GuardKind:
    order: tuple[GuardKind, ...] = ("rank", "local", "some")
    return next((kind for kind in order if kind in kinds), "other")


def _widest(kinds: list[GuardKind]) -> GuardKind:
    """Return the ranks that pass at least one of several conditions."""
    different = set(kinds)
    if different <= {"other"}:
        return "other"
    if different == {"rank"}:
        return "rank"
    return "local" if different <= {"rank", "local"} else "some"


def _compared(node: ast.Compare, names: Names) -> Sides:
    left, right, sign = node.left, node.comparators[0], type(node.ops[0])
    if len(node.comparators) > 1:
        return _unclear(node, names)
    role = _role(left, names)
    if role not in _ONE and _role(right, names) in _ONE:
        left, right, role = right, left, _role(right, names)
        sign = _TURNED.get(sign, sign)
    if role not in _ONE:
        return _unclear(node, names)
    numbers = _numbers(right)
    if numbers is None:
        last = "world" in mentioned(right, names) and isinstance(right, ast.BinOp)
        sides = _ONE[role] if last and sign in (ast.Eq, ast.NotEq) else _SOME
        return Sides(sides.false, sides.true) if sign is ast.NotEq else sides
    if sign in (ast.In, ast.NotIn):
        passing = {rank for rank in range(_MANY) if (rank in numbers) == (sign is ast.In)}
    elif sign in _COMPARED and len(numbers) == 1:
        passing = {rank for rank in range(_MANY) if _COMPARED[sign](rank, numbers[0])}
    else:
        return _SOME
    return Sides(_kind(len(passing), role), _kind(_MANY - len(passing), role))


def _kind(count: int, role: Role) -> GuardKind:
    return ("rank" if role == "rank" else "local") if count == 1 else "some"


def _numbers(node: ast.expr) -> list[int] | None:
    """Return the whole numbers of a constant or a tuple; None if it has other values."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    try:
        return [int(ast.literal_eval(part)) for part in parts]
    except (ValueError, TypeError, SyntaxError):
        return None


def _named(node: ast.expr, names: Names, flags: dict[str, Sides]) -> Sides:
    """Return the ranks that pass a name, a call or another value used as a condition."""
    called = node.func if isinstance(node, ast.Call) else node
    if isinstance(called, ast.Name | ast.Attribute):
        name = dotted(called)
        if name in flags and called is node:
            return flags[name]
        last = name.rpartition(".")[2]
        if _FIRST_OF_NODE.fullmatch(last):
            return _ONE["local"]
        if _FIRST.fullmatch(last):
            return _ONE["rank"]
    role = _role(node, names)
    if role in _ONE:  # `if not rank:`
        return Sides("some", _ONE[role].true)
    return _unclear(node, names)


def _unclear(node: ast.expr, names: Names) -> Sides:
    text = ast.unparse(node)
    asks = "__name__" not in text and _SOMEHOW.search(text)
    return _SOME if asks or mentioned(node, names) & {"rank", "local"} else _OTHER


def _role(node: ast.expr, names: Names) -> Role:
    """Return the role of a value; if unknown, the role that its name suggests."""
    if role := role_of(node, names):
        return role
    if isinstance(node, ast.Call) and dotted(node.func) in ("int", "str") and node.args:
        return _role(node.args[0], names)
    if isinstance(node, ast.Name | ast.Attribute):
        last = dotted(node).rpartition(".")[2]
        return "local" if _LOCAL.fullmatch(last) else "rank" if _RANK.fullmatch(last) else ""
    return ""
