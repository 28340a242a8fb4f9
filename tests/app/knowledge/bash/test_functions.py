"""Functions, branches and traps of a script: what they start, and what they set."""

import pytest

from lumitui.app.knowledge.script_job import ScriptJob
from tests.support.rules.script_findings import job_of, rules_in

_HEAD = "#!/bin/bash\n#SBATCH -p qgpu -N 2 --ntasks-per-node=1 --gpus-per-node=8 -t 1:00:00\n"


def job(body: str) -> ScriptJob:
    return job_of(_HEAD + body, "karolina")


def said(body: str) -> set[str]:
    return rules_in(_HEAD + body, "karolina")


@pytest.mark.parametrize(
    "line",
    [
        "srun singularity run --nv a.sif python train.py",
        "exec singularity run --nv a.sif python train.py",
        "command apptainer run --nv a.sif python train.py",
        "srun timeout 3h bash -c 'docker run --rm a.sif python train.py'",
    ],
)
def test_a_function_named_like_a_verb_of_what_it_calls_is_read(line: str) -> None:
    read = job(f"run() {{\n  {line}\n}}\nrun --epochs 3\n")
    assert [step.program.text for step in read.training if step.program] == ["train.py"]
    assert [each.id for each in read.troubles] == []


def test_a_function_that_calls_itself_is_read_once() -> None:
    read = job("again() { srun python train.py || again; }\nagain\n")
    assert len(read.training) == 1
    assert [each.id for each in read.troubles] == []


def test_two_functions_that_call_each_other_are_read_once() -> None:
    read = job("a() { srun python train.py; b; }\nb() { a; }\na\n")
    assert len(read.training) == 1


def test_an_exported_function_runs_in_the_tasks() -> None:
    body = "work() {\n  torchrun --nproc_per_node=8 train.py\n}\n{export}srun bash -c work\n"
    read = job(body.replace("{export}", "export -f work\n"))
    assert [(step.launcher, step.srun is not None) for step in read.training] == [
        ("torchrun", True)
    ]
    assert job(body.replace("{export}", "")).training[0].launcher == "plain"


def test_a_default_sets_its_variable() -> None:
    read = job(': "${MASTER_ADDR:=localhost}"\nsrun python train.py --host $MASTER_ADDR\n')
    assert read.training[0].arguments[1].known == "localhost"
    assert "local-address" in said(': "${MASTER_ADDR:=localhost}"\nsrun python train.py\n')


def test_a_default_of_a_variable_that_is_set_changes_nothing() -> None:
    body = 'HOST=$(hostname)\n: "${HOST:=localhost}"\nsrun python train.py --host $HOST\n'
    assert job(body).training[0].arguments[1].known == "$HOST"


@pytest.mark.parametrize(
    ("branch", "speaks"),
    [
        ("if ((N > 1)); then MASTER_ADDR=$(scontrol show hostnames | head -1); fi", False),
        ("[[ $N -gt 1 ]] && MASTER_ADDR=$(scontrol show hostnames | head -1)", False),
        ("if ((N > 1)); then PORT=2000; fi", True),
    ],
)
def test_an_address_that_a_branch_replaces_is_not_known(branch: str, speaks: bool) -> None:
    body = f"export MASTER_ADDR=localhost\n{branch}\nsrun python train.py\n"
    assert ("local-address" in said(body)) == speaks


@pytest.mark.parametrize("trap", ["trap finish EXIT", "trap 'finish; exit' TERM EXIT"])
def test_a_trap_copies_the_results_back(trap: str) -> None:
    body = "finish() { cp -r /tmp/out /scratch/x; }\n{trap}\nsrun python train.py --out /tmp/out\n"
    assert "results-on-node" not in said(body.replace("{trap}", trap))
    assert "results-on-node" in said(body.replace("{trap}", ":"))


def test_a_function_above_the_launch_copies_back_behind_it() -> None:
    body = "keep() { cp -r /tmp/out /scratch/x; }\nsrun python train.py --out /tmp/out\n{call}\n"
    assert "results-on-node" not in said(body.replace("{call}", "keep"))
    assert "results-on-node" in said(body.replace("{call}", ""))
