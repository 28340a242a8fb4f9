"""A heterogeneous job: its first component is the request, and the others are not mixed in."""

from lumitui.app.knowledge.site_facts.process_counts import amount
from tests.support.rules.script_findings import findings_in, job_of, rules_in

_TWO = """#!/bin/bash
#SBATCH -A open-30-11 -p qgpu -N 2 --ntasks-per-node=1 --gpus=16 -t 1:00:00
#SBATCH hetjob
#SBATCH -A open-30-11 -p qcpu -N 1 -n 1
srun --het-group=1 python serve.py &
srun --het-group=0 torchrun --nnodes=2 --nproc_per_node=8 --rdzv_endpoint=$H:$PORT train.py
wait
"""


def test_only_the_first_component_is_the_request() -> None:
    job = job_of(_TWO, "karolina")
    assert (job.resources.partition, job.nodes) == ("qgpu", 2)
    assert [step.program.text for step in job.training if step.program] == ["train.py"]
    found = findings_in(_TWO, "karolina")
    assert [each.rule for each in found if each.severity != "note"] == []


def test_options_given_twice_in_one_component_are_still_found() -> None:
    assert "option-twice" in rules_in(_TWO.replace("#SBATCH hetjob\n", ""), "karolina")


def test_variables_of_slurm_have_the_numbers_of_the_request() -> None:
    job = job_of(_TWO, "karolina")
    assert amount(job, "$SLURM_GPUS") == 16
    assert amount(job, "${SLURM_GPUS_ON_NODE}") == 8
    assert amount(job, "$SLURM_NNODES") == amount(job, "2")
    assert amount(job, "$GPUS") is None


def test_the_total_of_gpus_is_no_number_of_ranks_on_a_node() -> None:
    one = _TWO.replace("--nproc_per_node=8", "--nproc_per_node=$SLURM_GPUS")
    assert "torchrun-processes" in rules_in(one, "karolina")
