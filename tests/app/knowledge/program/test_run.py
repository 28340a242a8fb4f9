"""What a job's step runs: the program, the modules beside it, and the values of its options."""

import pytest

from lumitui.app.knowledge.program.step_program import StepProgram, configurations, runs
from lumitui.app.knowledge.script_job import CommandWord, JobStep, ScriptJob

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
