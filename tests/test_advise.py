"""The adviser: each rule speaks when it should, and is silent when not."""

import pytest

from lumitui.app.advise import findings
from lumitui.app.compose import compose
from lumitui.app.job import changed
from lumitui.remote.site import BUILT_IN, Site, Sites
from tests.test_compose import JOB

LUMI = Sites([BUILT_IN]).load("lumi")


def said(_site: Site = LUMI, /, **changes: object) -> dict[str, str]:
    site, spec = _site, changed(JOB, changes, "t")
    return {item.id: item.severity for item in findings(compose(spec, site), site)}


def test_a_good_job_has_no_error_and_no_warning() -> None:
    assert not {severity for severity in said().values()} & {"error", "warning"}


@pytest.mark.parametrize(
    ("changes", "rule", "severity"),
    [
        ({"account": "project_xxxxxxxxx"}, "account", "error"),
        ({"time": "3-00:00:00"}, "time-limit", "error"),
        ({"nodes": 1025}, "nodes", "error"),
        ({"partition": "small-g", "nodes": 5}, "nodes", "error"),
        ({"cpus_per_task": 8}, "cores", "error"),
        ({"launcher": "torchrun", "cpus_per_task": 7}, "few-cores", "error"),
        ({"launcher": "torchrun", "cpus_per_task": 55}, "few-cores", "error"),
        (
            {"launcher": "torchrun", "cpus_per_task": 28, "gpus_per_node": 4},
            "few-cores",
            "error",
        ),
        ({"launcher": "torchrun", "cpus_per_task": 7, "binding": "none"}, "few-cores", "warning"),
        (
            {"launcher": "torchrun", "cpus_per_task": 7, "partition": "small-g"},
            "few-cores",
            "warning",
        ),
        ({"gpus_per_node": 4}, "idle-gpus", "warning"),
        ({"partition": "small-g", "nodes": 2, "gpus_per_node": 4}, "scattered", "warning"),
        ({"partition": "small-g"}, "shared-cores", "note"),
        ({"binding": "none"}, "no-binding", "warning"),
        (
            {"nodes": 2, "env": {"NCCL_NET_GDR_LEVEL": "PHB"}},
            "container-variable",
            "error",
        ),
        ({"sbatch": ["--gpus-per-task=1"]}, "gpu-cgroup", "error"),
        ({"sbatch": ["--gpu-bind=closest"]}, "gpu-cgroup", "error"),
        ({"sbatch": ["--output=x"]}, "own-option", "error"),
        ({"name": "bash"}, "job-name", "warning"),
        ({"time": "12:00:00"}, "no-checkpoint-signal", "note"),
    ],
)
def test_a_rule_speaks(changes: dict[str, object], rule: str, severity: str) -> None:
    assert said(LUMI, **changes).get(rule) == severity
    assert rule not in said()


@pytest.mark.parametrize("partition", ["standard-g", "small-g"])
@pytest.mark.parametrize("gpus", range(1, 9))
def test_torchrun_has_enough_cores_unless_told_otherwise(partition: str, gpus: int) -> None:
    found = said(LUMI, launcher="torchrun", partition=partition, gpus_per_node=gpus)
    assert "few-cores" not in found and "cores" not in found


def test_a_retired_site_is_refused() -> None:
    gone = LUMI.model_copy(update={"retired": "2026-07-31"})
    assert said(gone)["retired"] == "error"


def test_a_launcher_that_does_not_work_there_is_refused() -> None:
    only_srun = LUMI.model_copy(update={"launchers": ("srun",)})
    assert said(only_srun, launcher="torchrun")["launcher"] == "error"
    assert "launcher" not in said(only_srun)


def test_a_harmless_option_is_not_refused() -> None:
    assert not {"gpu-cgroup", "own-option"} & set(
        said(LUMI, sbatch=["--exclude=nid005001", "--gpu-bind=none"])
    )
