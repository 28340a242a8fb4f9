"""A partition's limits: of time by size, of GPUs, and the names that Slurm must understand."""

from typing import Any

import pytest
from pydantic import ValidationError

from lumitui.remote.site.partition import Partition


def partition(**fields: Any) -> Partition:
    """Return a partition that bills nothing."""
    base = {
        "max_time": "12:00:00",
        "max_nodes": 100,
        "allocation": "node",
        "billing": {"kind": "sum"},
    }
    return Partition.model_validate(base | fields)


def test_without_sizes_every_job_has_the_one_limit() -> None:
    assert [partition().max_time_for(nodes) for nodes in (1, 100, 200)] == ["12:00:00"] * 3


def test_larger_jobs_may_have_more_time() -> None:
    sizes = [{"nodes": 91, "max_time": "2:00:00"}, {"nodes": 183, "max_time": "6:00:00"}]
    found = partition(max_time_of=sizes)
    times = [found.max_time_for(nodes) for nodes in (1, 91, 92, 183, 184)]
    assert times == ["2:00:00", "2:00:00", "6:00:00", "6:00:00", "12:00:00"]


def test_node_minutes_are_shared_by_the_nodes() -> None:
    found = partition(max_node_minutes=90, max_time="1:30:00")
    assert [found.max_time_for(nodes) for nodes in (1, 2, 4, 91)] == ["1:30:00", "45", "22", "1"]


@pytest.mark.parametrize("name", ["", "acc debug", "-acc", "acc\n#SBATCH --x", "a;b"])
def test_a_name_that_slurm_cannot_have_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="must be one word"):
        partition(slurm_partition=name)


def test_a_request_for_gpus_has_only_their_number_in_braces() -> None:
    assert partition(gpu_request="--gres=gpu:v100:{gpus}").gpu_request
    with pytest.raises(ValidationError, match="nodes"):
        partition(gpu_request="--gpus={nodes}")
