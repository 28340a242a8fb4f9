"""Options of a program, and the program that a step runs."""

import pytest

from lumitui.app.knowledge.program.step_program import StepProgram, configurations, runs
from lumitui.app.knowledge.script_job import CommandWord, JobStep, ScriptJob
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
        ("--warmup 3", "Write an argument that the program defines (--lr"),
        ("-x", "Write an argument"),
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


def test_an_unknown_option_is_an_error_where_no_other_code_may_define_it() -> None:
    def severity(program: str) -> str:
        text = "#!/bin/bash\nsrun python train.py --warmup 3\n"
        found = findings_in(text, files={"train.py": program})
        return next(one.severity for one in found if one.rule == "unknown-argument")

    assert severity(BASE) == "error"
    main = BASE.replace("args =", "if __name__ == '__main__':\n    args =")
    assert severity(main) == "error", "the usual guard"
    assert severity(BASE.replace("args =", "if more:\n    args =")) == "warning"
    assert severity(BASE.replace("args =", "add = parser.add_argument\nargs =")) == "warning"
    assert severity(BASE + "other = argparse.ArgumentParser()\n") == "warning"


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


PROGRAM = """\
import argparse, torch
from data.loading import make
parser = argparse.ArgumentParser()
parser.add_argument("--num-workers", "-j", type=int, default=4)
args = parser.parse_args()
torch.utils.data.DataLoader(make(), num_workers=args.num_workers)
"""
FILES = {"./src/train.py": PROGRAM, "src/data/loading.py": "import numpy\ndef make(): ...\n"}


def job(*arguments: str, files: dict[str, str] | None = None) -> ScriptJob:
    words = tuple(CommandWord(argument) for argument in arguments)
    step = JobStep(program=CommandWord("src/train.py"), python=True, arguments=words)
    return ScriptJob("script", steps=(step,), files=FILES if files is None else files)


def only(given: ScriptJob) -> StepProgram:
    (found,) = runs(given)
    return found


def workers(*arguments: str) -> object:
    run = only(job(*arguments))
    _program, call = next(run.calls("DataLoader"))
    return run.value(call.get("num_workers"))


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ((), 4),
        (("--num-workers", "16"), 16),
        (("--num_workers=2",), 2),
        (("-j", "8"), 8),
        (("-j", "$SLURM_CPUS_PER_TASK"), None),
    ],
)
def test_an_option_has_its_value_from_the_command_line_or_its_default(
    arguments: tuple[str, ...], value: object
) -> None:
    assert workers(*arguments) == value


def test_modules_beside_the_program_are_read_with_it() -> None:
    run = only(job())
    assert [program.file for program in run.files] == ["./src/train.py", "src/data/loading.py"]
    assert run.closed


def test_a_module_that_is_not_at_hand_leaves_the_program_open() -> None:
    assert not only(job(files={"src/train.py": PROGRAM})).closed


def test_a_program_whose_text_is_not_at_hand_is_no_run() -> None:
    assert list(runs(job(files={}))) == []


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("package.train", "package/train.py"),
        ("package", "package/__main__.py"),
        ("train.py", "sources/train.py"),
    ],
)
def test_a_program_is_found_as_a_module_and_behind_a_change_of_folder(name: str, file: str) -> None:
    step = JobStep(program=CommandWord(name), python=True)
    (run,) = runs(ScriptJob("script", steps=(step,), files={file: "import torch\n"}))
    assert run.program.file == file


def test_one_name_in_two_folders_is_not_guessed() -> None:
    step = JobStep(program=CommandWord("train.py"), python=True)
    assert (
        list(runs(ScriptJob("script", steps=(step,), files={"a/train.py": "", "b/train.py": ""})))
        == []
    )


@pytest.mark.parametrize("argument", ["ds.json", "./ds.json"])
def test_a_configuration_that_an_argument_names_is_read(argument: str) -> None:
    files = FILES | {"ds.json": '{"train_batch_size": 8}', "other.json": '{"train_batch_size": 4}'}
    found = configurations(job("--deepspeed_config", argument, files=files))
    assert [config.train for _run, config in found] == [8]
