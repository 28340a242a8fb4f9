"""torch's own division of a node's cores among its ranks, on the cores our jobs ask for."""

import re
from importlib import import_module
from importlib.util import find_spec

import pytest

from lumitui.app.job.launch import RankLayout
from lumitui.app.launch.compose import compose
from lumitui.remote.site.core_sets import parse_cores
from tests.support.jobs.sites.lumi_job import LUMI, job

if find_spec("torch") is None:
    pytest.skip("torch divides the cores", allow_module_level=True)


def divided(monkeypatch: pytest.MonkeyPatch, layout: RankLayout) -> list[set[int]]:
    """Return each local rank's cores by `--numa-binding=exclusive` on a node of LUMI-G.

    The step has the first of the cores that a job may use; what torch reads of the node under
    /sys, and of the GPUs from their driver, comes from the profile.
    """
    binding = import_module("torch.numa.binding")  # late: it takes a second
    node = LUMI.node
    allowed = set(sorted(node.usable_cores)[: layout.cpus_per_task])
    for name, answer in {
        "_get_gpu_count": lambda: layout.gpus_per_node,
        "_get_numa_node_index_for_gpu_index": lambda gpu_index: node.gpu_numa[gpu_index],
        "_get_cpu_indices_for_numa_node_MAYBE_NOT_ALLOWED": lambda numa_node_index: {
            core for core in range(node.cores) if core // 16 == numa_node_index
        },
        "_get_allowed_cpu_indices_for_current_thread": lambda: allowed,
        "_get_logical_cpu_indices_sharing_same_physical_core_as": lambda logical_cpu_index: {
            logical_cpu_index
        },
    }.items():
        monkeypatch.setattr(binding, name, answer)
    return [
        binding._exclusive_get_logical_cpus_to_bind_to(gpu_index=rank)
        for rank in range(layout.ranks_per_node)
    ]


@pytest.mark.parametrize("gpus", range(1, 9))
def test_every_rank_finds_cores_near_its_gpu(monkeypatch: pytest.MonkeyPatch, gpus: int) -> None:
    layout = compose(job(launcher="torchrun", gpus_per_node=gpus), LUMI).layout
    cores = divided(monkeypatch, layout)
    assert all(len(own) in (7, 14) for own in cores)
    assert sum(map(len, cores)) == len(set().union(*cores))
    for own, planned in zip(cores, layout.planned_cores, strict=True):
        assert own <= set(parse_cores(planned))


def test_a_share_of_the_cores_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    few = job(launcher="torchrun", gpus_per_node=4, cpus_per_task=28)
    with pytest.raises(RuntimeError, match="only 0 physical cores"):
        divided(monkeypatch, compose(few, LUMI).layout)


@pytest.mark.parametrize("launcher", ["torchrun", "accelerate"])
def test_ranks_that_save_on_a_signal_have_its_lead(
    monkeypatch: pytest.MonkeyPatch, launcher: str
) -> None:
    script = compose(job(launcher=launcher, signal="USR1@240"), LUMI).script
    (seconds,) = set(re.findall(r"(?m)^ *TORCH_ELASTIC_SHUTDOWN_TIMEOUT=(\d+) \\$", script))
    monkeypatch.setenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", seconds)
    api = import_module("torch.distributed.launcher.api")
    assert api.LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=8).shutdown_timeout == 240
    for quiet in (None, "B:USR1@240"):
        assert "SHUTDOWN" not in compose(job(launcher=launcher, signal=quiet), LUMI).script
