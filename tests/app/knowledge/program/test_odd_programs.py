"""No program and no configuration makes a rule fail, however odd it is."""

import json
from pathlib import Path

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as some

from lumitui.app.knowledge.rule import RULE_FAILED
from tests.support.rules.script_findings import rules_in

CASES = Path(__file__).parents[1] / "cases"
SCRIPT = """\
#!/bin/bash
#SBATCH --partition=small-g
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --time=24:00:00
#SBATCH --signal=USR1@60
srun python train.py --deepspeed_config ds.json --num_workers 9 --bf16 --model gpt2-7b
"""
TEXTS = [
    text
    for path in sorted([*CASES.glob("program/*.yaml"), *CASES.glob("training/*.yaml")])
    for case in yaml.load(path.read_text(), yaml.CSafeLoader)
    for key in ("files", "bad_files", "good_files")
    for file, text in case.get(key, {}).items()
    if file.endswith(".py")
]
LINES = [line for text in TEXTS for line in text.splitlines()]
VALUES = some.one_of(
    some.sampled_from(["auto", "nvme", "cpu", "/tmp", "", None, True, 0, -1, 1, 3, 1.5, 10**30]),
    some.lists(some.integers(), max_size=2),
)
KEYS = some.sampled_from(
    ["train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "stage",
     "enabled", "loss_scale", "device", "nvme_path", "type"]
)  # fmt: skip
PARTS = some.sampled_from(
    ["zero_optimization", "fp16", "bf16", "optimizer", "offload_optimizer", "offload_param"]
)
CONFIGS = some.recursive(
    some.dictionaries(KEYS, VALUES, max_size=6),
    lambda inner: some.dictionaries(PARTS | KEYS, inner | VALUES, max_size=5),
    max_leaves=12,
)


def check(text: str, config: str) -> None:
    rules = rules_in(SCRIPT, files={"train.py": text, "ds.json": config})
    assert RULE_FAILED not in rules


@settings(max_examples=40, deadline=None)
@given(some.lists(some.sampled_from(LINES), max_size=25), CONFIGS)
def test_any_lines_of_programs_and_any_configuration(lines: list[str], config: object) -> None:
    check("\n".join(lines), json.dumps(config))


@settings(max_examples=100, deadline=None)
@given(some.sampled_from(TEXTS), CONFIGS)
@example(TEXTS[0], {"gradient_accumulation_steps": 0, "train_batch_size": 8})
def test_whole_programs_and_any_configuration(text: str, config: object) -> None:
    check(text, json.dumps(config))


@settings(max_examples=40, deadline=None)
@given(some.text(max_size=80), some.text(max_size=80))
def test_any_text(text: str, config: str) -> None:
    check(text, config)


@settings(max_examples=40, deadline=None)
@given(some.lists(some.sampled_from([line.strip() for line in LINES]), max_size=25))
def test_lines_without_their_indentation(lines: list[str]) -> None:
    blocks = [f"{line}\n    pass" if line.endswith(":") else line for line in lines]
    check("\n".join(blocks), '{"train_batch_size": 32}')
