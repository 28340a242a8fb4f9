"""A resubmission on other nodes at each site: the partition, the request and the price follow."""

import pytest

from lumitui.app.launch.adviser.adviser import findings
from lumitui.remote.site.errors import InputError
from tests.support.jobs.sites.rescaled_jobs import Scaled, rescale
from tests.support.jobs.sites.site_jobs import asked, launched, site


def larger(name: str, partition: str, nodes: int = 2, **changes: object) -> Scaled:
    """Return a job of one node at a site on `nodes` nodes."""
    return rescale(launched(name, partition, **changes), site(name), nodes=nodes)


@pytest.mark.parametrize(
    ("name", "start", "end", "gpus", "per_hour"),
    [
        ("lumi", "standard-g", "standard-g", "--gpus-per-node=8", 8),
        ("roihu", "gpumedium", "gpularge", "--gres=gpu:gh200:4", 1600),
        ("roihu", "gputest", "gputest", "--gres=gpu:gh200:4", 1600),
        ("puhti", "gputest", "gputest", "--gres=gpu:v100:4", 624),
        ("mahti", "gputest", "gpumedium", "--gres=gpu:a100:4", 800),
        ("karolina", "qgpu_exp", "qgpu_exp", "--gpus-per-node=8", 2),
        ("mn5", "acc_debug", "acc_debug", "--gres=gpu:4", 160),
    ],
)
def test_two_nodes_in_place_of_one(
    name: str, start: str, end: str, gpus: str, per_hour: float
) -> None:
    scaled = larger(name, start)
    launch, given = scaled.launch, asked(scaled.launch)
    assert (launch.spec.partition, given["--nodes"]) == (end, "2")
    option, _, value = gpus.partition("=")
    assert given[option] == value
    assert launch.price.per_hour == pytest.approx(per_hour)
    assert launch.layout.world_size == 2 * site(name).node.gpus
    errors = [one.rule for one in findings(launch, site(name)) if one.severity == "error"]
    assert [one for one in errors if one != "retired"] == []
    moved = [note for note in scaled.notes if "moves to" in note]
    assert len(moved) == (start != end)


def test_the_words_name_the_limit_that_was_passed() -> None:
    assert "at most 4 GPUs per job" in " ".join(larger("roihu", "gpumedium").notes)
    assert "at most 1 node:" in " ".join(larger("mahti", "gpusmall", gpus_per_node=2).notes)


def test_more_gpus_on_one_node_move_the_job_as_well() -> None:
    earlier = launched("mahti", "gpusmall", gpus_per_node=2)
    scaled = rescale(earlier, site("mahti"), settings=["gpus_per_node=4"])
    assert scaled.launch.spec.partition == "gpumedium"
    assert any("at most 2 GPUs" in note for note in scaled.notes)


def test_a_qos_is_followed_by_its_own_option() -> None:
    scaled = larger("mn5", "acc_interactive", gpus_per_node=2)
    given = asked(scaled.launch)
    assert (given["--partition"], given["--qos"]) == ("acc", "acc_debug")
    # Two GPUs on each of two nodes that the job has alone: 80 cores a node.
    assert scaled.launch.price.per_hour == 160


def test_a_part_of_a_disk_is_asked_for_on_each_node() -> None:
    scaled = larger("puhti", "gpu", local_disk=100)
    assert asked(scaled.launch)["--gres"] == "gpu:v100:4,nvme:100"
    assert scaled.launch.price.per_hour == pytest.approx(2 * 312.6)


def test_more_than_the_last_partition_has_is_refused() -> None:
    with pytest.raises(InputError, match="gpularge has \\(10\\)"):
        larger("roihu", "gpumedium", nodes=11)
    with pytest.raises(InputError, match="qgpu_big has \\(72\\)"):
        larger("karolina", "qgpu", nodes=73)
    assert larger("karolina", "qgpu", nodes=17).launch.spec.partition == "qgpu_big"
