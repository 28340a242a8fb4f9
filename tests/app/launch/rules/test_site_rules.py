"""The rules that hold at one site alone: each fires on what it is about, and on nothing else."""

import pytest

from lumitui.app.launch.adviser.adviser import findings
from tests.support.jobs.sites.site_jobs import launched, site
from tests.support.rules.lint_cases import tried_rules

SITES = ("roihu", "puhti", "mahti", "karolina", "mn5")
CASES = [
    ("roihu", "gpumedium", {"sbatch": ["--bb=#BB_LUA SBF storagesize=100G"]}, "roihu-flash"),
    ("roihu", "gpumedium", {"args": ["${LOCAL_SCRATCH}/x"]}, "roihu-local-scratch"),
    ("roihu", "gpumedium", {"links": {"data": "/projappl/p/x"}}, "roihu-links-home"),
    ("roihu", "gpumedium", {"env": {"HF_HOME": "/users/me/hf"}}, "roihu-hf-home"),
    ("puhti", "gpu", {"args": ["--precision", "bf16"]}, "puhti-bf16"),
    ("puhti", "gpu", {"args": ["--dtype=bfloat16"]}, "puhti-bf16"),
    ("puhti", "gpu", {"links": {"data": "/users/me/x"}}, "puhti-links-home"),
    ("mahti", "gpumedium", {"links": {"data": "/users/me/x"}}, "mahti-links-home"),
    ("karolina", "qgpu_preempt", {}, "karolina-preempt"),
    ("karolina", "qgpu_free", {}, "karolina-free"),
    ("karolina", "qgpu", {"args": ["$LOCAL_SCRATCH"]}, "karolina-local-scratch"),
    ("karolina", "qgpu", {"links": {"data": "/home/me/x"}}, "karolina-links-home"),
    ("mn5", "acc_ehpc", {"container": {"image": "docker://pytorch"}}, "mn5-foreign-image"),
    ("mn5", "acc_ehpc", {"env": {"WANDB_MODE": "online"}}, "mn5-wandb"),
    ("mn5", "acc_ehpc", {"env": {"NCCL_IB_DISABLE": "1"}}, "mn5-no-infiniband"),
    ("mn5", "acc_ehpc", {"env": {"CUDA_LAUNCH_BLOCKING": "1"}}, "mn5-launch-blocking"),
    ("mn5", "acc_ehpc", {"env": {"CUDA_VISIBLE_DEVICES": "0,1"}}, "mn5-visible-devices"),
    ("mn5", "acc_ehpc", {"args": ["$LOCAL_SCRATCH/x"]}, "mn5-local-scratch"),
    ("mn5", "acc_ehpc", {"links": {"data": "/gpfs/home/g/me/x"}}, "mn5-links-home"),
]


@pytest.mark.parametrize(("name", "partition", "changes", "rule"), CASES)
def test_a_rule_fires(name: str, partition: str, changes: dict[str, object], rule: str) -> None:
    launch = launched(name, partition, **changes)
    assert rule in {finding.rule for finding in findings(launch, site(name))}


def test_every_rule_of_these_sites_is_tried() -> None:
    tried = {rule for *_, rule in CASES} | tried_rules()
    assert {rule.id for name in SITES for rule in site(name).rules} <= tried


@pytest.mark.parametrize("name", SITES)
def test_a_plain_job_breaks_none_of_them(name: str) -> None:
    launch = launched(name, next(iter(site(name).partitions)))
    rules = {rule.id for rule in site(name).rules}
    assert not rules & {finding.rule for finding in findings(launch, site(name))}
