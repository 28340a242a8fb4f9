"""The adviser's rule about the arguments of a bundled trainer, which its own parser checks. Pure.

The parser is the trainer's own, made without PyTorch.
"""

import argparse
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from lumitui.app.job.launch import Launch
from lumitui.app.job.setting import argument_value
from lumitui.app.knowledge.program.step_program import DEEPSPEED_OPTIONS, ParserOptions, is_option
from lumitui.app.launch.launcher_templates import TRAINER_FOLDER
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.job_file_catalogue import LaunchRule, hit
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.source_position import at_key

_MODEL = re.compile(r'^    "(\S+)": ', re.MULTILINE)
"""A row of the trainers' table of models."""


def _add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DeepSpeed's options as `deepspeed.add_config_arguments` does."""
    for flag in DEEPSPEED_OPTIONS:
        action = "store" if flag.endswith("config") else "store_true"
        parser.add_argument(flag, action=action)


def _imported(module: str, *given: Any) -> object:
    """Import a module; of one that needs PyTorch, return only what the parsers use."""
    models = _MODEL.findall((TRAINER_FOLDER / "models/table.py").read_text())
    stand_ins: dict[str, dict[str, object]] = {
        "data.mnist": {"SAMPLE": ""}, "models.table": {"MODELS": models},
        "deepspeed": {"add_config_arguments": _add_config_arguments},
    }  # fmt: skip
    own = stand_ins.get(module)
    return __import__(module, *given) if own is None else SimpleNamespace(**own)


@cache
def trainer_parser(file: str) -> argparse.ArgumentParser:
    """Return the parser of a bundled trainer, which raises `ArgumentError`."""
    names: dict[str, Any] = {"__builtins__": vars(builtins) | {"__import__": _imported}}
    exec((TRAINER_FOLDER / "engine/arguments.py").read_text(), names)
    parser: argparse.ArgumentParser = names["parser_of"](file)
    parser.exit_on_error = False
    return parser


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
            do = "Write a value after it, or remove it."
            yield _WrongArgument(start, f"{flag} lacks a value", do, option=flag)
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
