"""No number that a person may type by mistake raises an error, at any site."""

import pytest

from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.rule_table import findings
from lumitui.remote.site.sites import BUILT_IN, Sites

SITES = Sites([BUILT_IN])
REQUEST = """#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=4
{option}
srun --ntasks=8 --cpu-bind=mask_cpu:0xfe,0x1fe python train.py --num-workers 4
"""
ODD = (
    *(f"--{name}=0" for name in ("nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "gpus")),
    *("--gpus-per-node=0", "--gres=gpu:0", "--gres=", "--mem=", "--mem=0G", "--array=5-1:0"),
    *("--array=", "--time=", "--time=:", "--dependency=", "--partition=", "--nodes=4-", "--qos="),
)


@pytest.mark.parametrize("option", ODD)
def test_an_odd_number_raises_no_error_at_any_site(option: str) -> None:
    for name in SITES.names():
        site = SITES.load(name)
        for partition in site.partitions:
            text = REQUEST.format(option=f"#SBATCH --partition={partition}\n#SBATCH {option}")
            assert isinstance(findings(read_script(text, site=site), site), list)


def test_a_profile_with_too_many_cores_for_a_gpu_is_blamed_itself() -> None:
    site = SITES.load("karolina").model_copy(update={"cores_per_gpu": 48})
    text = REQUEST.replace("{option}\n", "").replace("-per-node=4", "-per-node=8")
    text = text.replace("cpus-per-task=8", "cpus-per-task=48")
    (found,) = [
        item for item in findings(read_script(text, site=site), site) if item.rule == "cores"
    ]
    assert "`cores_per_gpu` of karolina's profile is too large" in found.message
    assert (found.do.startswith("Write at most 16,"), found.fix, found.cure) == (
        True,
        None,
        None,
    )


def test_the_limits_of_nodes_and_of_gpus_are_told_in_one_round() -> None:
    site = SITES.load("roihu")
    small = site.partitions["gpumedium"].model_copy(update={"max_nodes": 1, "max_gpus": 2})
    site = site.model_copy(update={"partitions": {**site.partitions, "gpumedium": small}})
    text = REQUEST.replace("{option}", "#SBATCH --partition=gpumedium")
    told = {item.rule: item for item in findings(read_script(text, site=site), site)}
    assert told["nodes"].do.startswith("Request at most 1")
    assert "8 GPUs are more than a job may have on gpumedium (2)" in told["job-gpus"].message
    fits = read_script(text.replace("gpus-per-node=4", "gpus-per-node=2"), site=site)
    assert "job-gpus" not in {item.rule for item in findings(fits, site)}
