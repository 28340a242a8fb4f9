"""A program's options are held against its arguments only where argparse alone reads them."""

import pytest

from tests.support.rules.script_findings import findings_in

BASE = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("-e", "--epochs", type=int)
parser.add_argument("--batch-size", dest="batch")
args = parser.parse_args()
"""


def unknown(program: str, arguments: str, **others: str) -> list[str]:
    files = {"train.py": program} | {f"{name}.py": text for name, text in others.items()}
    text = f"#!/bin/bash\nsrun python train.py {arguments}\n"
    return [one.do for one in findings_in(text, files=files) if one.rule == "unknown-argument"]


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        ("--learning-rate 0.1", "Write --lr,"),
        ("--epoch_s 3", "Write --epochs,"),
        ("--batchsize=3", "Write --batch-size,"),
        ("--lr 0.1 --nproc_per_node=8", "before train.py"),
        ("--batch-size-per-gpu 3", "Write --batch-size,"),
        ("--warmup 3", "Write one that it defines (--lr"),
        ("-x", "Write one"),
    ],
)
def test_an_unknown_option_is_named_with_the_one_that_was_meant(arguments: str, near: str) -> None:
    (do,) = unknown(BASE, arguments)
    assert near in do


@pytest.mark.parametrize(
    "arguments",
    ["--lr 0.1", "--epo 3", "-e3", "-e 3", "--lr=-1", "--lr -1e-3", "--help", "-- --other",
     "$MORE --lr 1", "--batch 3", "", "other words"],
)  # fmt: skip
def test_what_argparse_takes_is_right(arguments: str) -> None:
    assert unknown(BASE, arguments) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("args = parser.parse_args()", "args, _ = parser.parse_known_args()"),
        ("parser.parse_args()", "parser.parse_args([])"),
        ("argparse.ArgumentParser()", "argparse.ArgumentParser(parents=[other])"),
        ("import argparse", "import argparse\nimport hydra"),
        ("import argparse", "import argparse, click"),
        ("import argparse\n", "from transformers import HfArgumentParser as argparse\n"),
        ('"--lr", type=float', "*names"),
        ('"--lr", type=float', "f'--{name}'"),
        ('"--lr", type=float', "'rest', nargs=argparse.REMAINDER"),
        ("args = ", "library.add_arguments(parser)\nargs = "),
        ("args = ", "Model.add_model_specific_args(parser)\nargs = "),
        ("args = ", "import sys\nsys.argv += ['--a']\nargs = "),
        ("args = ", "subs = parser.add_subparsers()\nargs = "),
        ("args = parser.parse_args()", "pass"),
    ],
)
def test_nothing_is_said_where_others_may_read_the_command_line(old: str, new: str) -> None:
    assert BASE.count(old) == 1
    assert unknown(BASE.replace(old, new), "--warmup 3") == []


def test_options_of_a_module_beside_it_count() -> None:
    module = BASE.replace(
        "args = parser.parse_args()", "def get():\n    return parser.parse_args()"
    )
    program = "from options import get\nargs = get()\n"
    assert unknown(program, "--epochs 3", options=module) == []
    assert len(unknown(program, "--warmup 3", options=module)) == 1


def test_a_parser_of_a_module_that_the_program_does_not_call_says_nothing() -> None:
    module = "import argparse\n\ndef tool():\n    p = argparse.ArgumentParser()\n"
    module += '    p.add_argument("--x")\n    return p.parse_args()\n'
    assert unknown("import tools\nprint(tools.name)\n", "--warmup 3", tools=module) == []


def test_deepspeed_adds_its_own_and_groups_are_parts_of_the_parser() -> None:
    program = BASE.replace(
        "args = ",
        'import deepspeed\ngroup = parser.add_argument_group("more")\n'
        'group.add_argument("--warmup")\ndeepspeed.add_config_arguments(parser)\nargs = ',
    )
    assert unknown(program, "--warmup 3 --deepspeed --deepspeed_config ds.json") == []
    assert len(unknown(program, "--warm_up 3")) == 1


def test_abbreviations_can_be_forbidden() -> None:
    program = BASE.replace("ArgumentParser()", "ArgumentParser(allow_abbrev=False)")
    assert len(unknown(program, "--epo 3")) == 1
