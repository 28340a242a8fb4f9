"""Which names of a program hold the rank, the rank on its node, or the number of ranks."""

import ast
import re

from lumitui.app.knowledge.program.program_facts import Role

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
"""What changes the environment, and reads none of it."""


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` for a chain of names; `?.c` where it begins with something else."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else "?"


def variable_read(node: ast.expr) -> tuple[str, bool]:
    """Return the variable of the environment that is read here, and whether it must be set."""
    if isinstance(node, ast.Subscript) and dotted(node.value).endswith("environ"):
        return _text(node.slice), True
    if isinstance(node, ast.Call) and node.args:
        name = dotted(node.func)
        if name.endswith(("environ.get", "getenv")):
            return _text(node.args[0]), False
    return "", False


def looked_up(tree: ast.Module, texts: set[str]) -> set[str]:
    """Return which of a module's texts may be variables that it reads by names that are values.

    It does so in `os.environ[n] for n in names`, `map(os.getenv, names)`, `"RANK" in os.environ`.
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
    """Return what a value is, where the names' roles are these."""
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
    """Return the roles of all parts of a value; `rank % gpus` counts as the local rank alone."""
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
    """Return the role of a name, a call or a variable, without looking into sums."""
    return "" if isinstance(node, ast.BinOp | ast.BoolOp) else role_of(node, names)


def names_with_roles(tree: ast.Module) -> dict[str, Role]:
    """Return the names of a module that hold a rank or the number of ranks, each with its role.

    A name that is set to two different things has none. Parameters of functions take the role of
    what they are called with.
    """
    names: dict[str, Role] = {}
    for _round in range(3):  # a name from a name, and a parameter from both
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
    """Return what a tuple of names gets, also of `(int(os.environ[k]) for k in ("RANK", …))`."""
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
            return [ast.parse(text, mode="eval").body for text in found]
    return []
