"""The adviser's rule about the arguments of a bundled trainer, which its own parser checks. Pure.

The parser is built from the trainer's source, without importing PyTorch.
"""

import __future__

import argparse
import ast
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

from lumitui.app.job.launch import Launch
from lumitui.app.job.setting import argument_value
from lumitui.app.knowledge.program.step_program import DEEPSPEED_OPTIONS, ParserOptions, is_option
from lumitui.app.launch.launcher_templates import TRAINER_FOLDER
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.job_file_catalogue import LaunchRule, hit
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.source_position import at_key


def _file(module: str) -> Path:
    return TRAINER_FOLDER / f"{module.replace('.', '/')}.py"


def _constant(module: str, name: str) -> object:
    """Return a constant of a trainer's module: a text or a list of texts, or a table's keys."""
    for node in ast.parse(_file(module).read_text()).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == name:
            value = getattr(node, "value", None)
            with suppress(ValueError):
                if isinstance(value, ast.Dict):
                    return [ast.literal_eval(key) for key in value.keys if key]
                return ast.literal_eval(value or "")
    return name


class _Constants(ast.NodeTransformer):
    """Reads the constants that a module imports from the trainers, and removes these imports."""

    def __init__(self) -> None:
        self.names: dict[str, object] = {}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        """Remove an import of a trainer's module."""
        if not _file(node.module or "").exists():
            return node
        self.names |= {one.name: _constant(node.module or "", one.name) for one in node.names}
        return None


def _run(nodes: list[ast.stmt], names: dict[str, object]) -> None:
    flags = __future__.annotations.compiler_flag
    exec(compile(ast.Module(nodes, []), "trainers", "exec", flags), names)


def _add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DeepSpeed's options as `deepspeed.add_config_arguments` does."""
    for flag in DEEPSPEED_OPTIONS:
        action = "store" if flag.endswith("config") else "store_true"
        parser.add_argument(flag, action=action)


@cache
def trainer_parser(file: str) -> argparse.ArgumentParser:
    """Return the parser of a bundled trainer, which raises `ArgumentError`."""
    constants = _Constants()
    shared = constants.visit(ast.parse(_file("engine.arguments").read_text()))
    names = constants.names | {"argparse": argparse}
    _run(shared.body, names)
    zero = {"argparse": argparse, "deepspeed": SimpleNamespace(
        add_config_arguments=_add_config_arguments)}  # fmt: skip
    _run([_function("strategies/zero.py", "add_arguments")], zero)
    names["zero"] = SimpleNamespace(**zero)
    main = _function(file, "main").body
    own = [
        node for node in main if "parser" in ast.dump(node) and "parse_args" not in ast.dump(node)
    ]
    _run(own, names)
    parser = names["parser"]
    assert isinstance(parser, argparse.ArgumentParser)
    parser.exit_on_error = False
    return parser


def _function(file: str, name: str) -> ast.FunctionDef:
    nodes = ast.parse((TRAINER_FOLDER / file).read_text()).body
    return next(one for one in nodes if isinstance(one, ast.FunctionDef) and one.name == name)


@dataclass(frozen=True)
class _WrongArgument:
    """An argument for which a trainer exits with code 2."""

    number: int
    what: str
    do: str
    right: str = ""
    """The right word, if known."""
    option: str = ""
    """The option whose value is invalid or missing."""


def _refused(file: str, args: tuple[str, ...]) -> Iterator[_WrongArgument]:
    parser = trainer_parser(file)
    actions = parser._option_string_actions
    options = ParserOptions(file, tuple(actions), abbreviated=False)
    starts = [number for number, word in enumerate(args) if number == 0 or is_option(word)]
    for start, end in pairwise([*starts, len(args)]):
        flag, equals, value = args[start].partition("=")
        action, rest = actions.get(flag), start + 1
        if not is_option(flag):
            rest = start
        elif action is None:
            near = options.near(flag)
            do = f"Write {near or 'an argument that it defines'} instead of {flag}."
            right = near and near + args[start].removeprefix(flag)
            yield _WrongArgument(start, f"{file} does not define {flag}", do, right)
            continue
        elif action.nargs == 0 and equals:
            yield _WrongArgument(start, f"{flag} takes no value", f"Write only {flag}.", flag)
        elif action.nargs != 0 and (equals or rest < end):
            rest, value = (rest, value) if equals else (rest + 1, args[rest])
            try:
                parser.parse_args([] if "$" in value else [f"{flag}={value}"])
            except argparse.ArgumentError as error:
                choices = [*(action.choices or ())]
                near = next(iter(get_close_matches(value, choices, 1)), "")
                do = f"Write {flag} {near or ' or '.join(choices)}." if choices else (
                    f"Correct it: {error.message}.")  # fmt: skip
                right = near and (f"{flag}={near}" if equals else near)
                yield _WrongArgument(rest - 1, f"{file} refuses {flag} {value}", do, right, flag)
        elif action.nargs is None:
            do = "Write its value after it, or remove it."
            yield _WrongArgument(start, f"{flag} lacks its value", do, option=flag)
        for number in range(rest, end):
            word = args[number]
            name, equals, value = word.partition("=")
            near = equals and options.near(f"--{name}")
            right = near and f"{near}={value}"
            do = f"Write {right}." if right else "Remove it, or write its option before it."
            if "$" not in word:
                yield _WrongArgument(number, f"{file} takes no argument {word!r} here", do, right)


def _arguments(launch: Launch, place: Placement) -> Iterator[Finding]:
    args, trainer = launch.spec.args, place.trainer
    for one in _refused(trainer.file, args) if trainer else ():
        if trainer and one.option == trainer.batch_arg and argument_value(args, one.option):
            continue  # the rule `batch-split` reports it
        fixed = (*args[: one.number], one.right, *args[one.number + 1 :])
        fix = Fix(f"write {one.right}", at_key("args"), fixed) if one.right else None
        message = f"{one.what}: each rank ends with exit code 2."
        yield hit("unknown-argument", "args", message, one.do, fix=fix, severity="error")


RULES: tuple[LaunchRule, ...] = (_arguments,)
