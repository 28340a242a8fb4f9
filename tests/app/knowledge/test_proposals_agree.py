"""Proposals for one script agree: each holds after all others were followed."""

import pytest

from tests.support.rules.script_findings import findings_in, rules_in

HEAD = "#!/bin/bash\n#SBATCH -A open-00-01 -p qgpu -t 1:00:00\n"
NUMBERS = {
    "scattered", "share-cores", "idle-cores", "few-cores", "more-tasks-than-gpus",
    "launcher-tasks", "torchrun-processes", "gpus", "cores",
}  # fmt: skip


def of(request: str, launch: str = "srun python3 t.py") -> dict[str, str]:
    """Return what the rules about numbers propose, by rule."""
    text = f"{HEAD}#SBATCH {request}\n{launch}\n"
    return {one.rule: one.do for one in findings_in(text, "karolina") if one.rule in NUMBERS}


def test_a_total_of_gpus_that_was_meant_for_each_node_gets_one_proposal() -> None:
    tasks = "--nodes=2 --ntasks-per-node=8 --cpus-per-task=16"
    assert of(f"{tasks} --gpus=8") == {
        "more-tasks-than-gpus": "Write --gpus=16, or --gpus-per-node=8."
    }
    torchrun = "srun torchrun --nproc-per-node=8 --nnodes=2 t.py"
    assert of("--nodes=2 --ntasks-per-node=1 --cpus-per-task=128 --gpus=8", torchrun) == {
        "torchrun-processes": "Write --gpus=16, or --gpus-per-node=8."
    }
    assert of(f"{tasks} --gpus=16") == of(f"{tasks} --gpus-per-node=8") == {}


@pytest.mark.parametrize(
    ("request_", "first", "then"),
    [
        ("-N 2 --gpus-per-node=4 --ntasks-per-node=8 -c 16", "more-tasks-than-gpus",
         "-N 2 --gpus-per-node=4 --ntasks-per-node=4 -c 16"),
        ("-N 2 --gpus-per-node=4 --ntasks-per-node=4 -c 16", "scattered",
         "-N 1 --gpus-per-node=8 --ntasks-per-node=8 -c 16"),
        ("-N 1 --gpus-per-node=16 --ntasks-per-node=16 -c 8", "gpus",
         "-N 2 --gpus-per-node=8 --ntasks-per-node=8 -c 16"),
        ("-N 1 --gpus-per-node=16 --ntasks-per-node=16 -c 16", "gpus",
         "-N 2 --gpus-per-node=8 --ntasks-per-node=8 -c 16"),
    ],
)  # fmt: skip
def test_the_number_of_tasks_or_gpus_is_decided_before_what_depends_on_it(
    request_: str, first: str, then: str
) -> None:
    assert list(of(request_)) == [first]
    assert set(of(then)) <= {"scattered"}


def test_gpus_on_fewer_nodes_keep_their_tasks_or_cores() -> None:
    ranks = of("-N 2 --gpus-per-node=4 --ntasks-per-node=4 -c 16")["scattered"]
    assert ranks == "Write --nodes=1, and request 8 GPUs and 8 tasks per node."
    launcher = of(
        "-N 2 --gpus-per-node=4 --ntasks-per-node=1 -c 64",
        "srun torchrun --nproc-per-node=4 --nnodes=2 t.py",
    )
    assert launcher["scattered"] == "Write --nodes=1, and request 8 GPUs and 128 cores per node."


def test_gpus_that_need_all_nodes_are_not_scattered() -> None:
    assert of("-N 2 --gpus=12 --ntasks-per-node=6") == {}
    assert "scattered" in rules_in(f"{HEAD}#SBATCH -N 3 --gpus=12\nsrun python3 t.py\n", "karolina")


@pytest.mark.parametrize(
    ("gpus", "nodes", "do"),
    [
        (16, 2, "Write --nodes=4, and request 8 GPUs per node."),
        (12, 2, "Write --nodes=3, and request 8 GPUs per node."),
        (9, 1, "Request at most 8 per node."),
        (16, 16, "Request at most 8 per node. qgpu allows 16 nodes for a job."),
    ],
)
def test_gpus_that_no_node_has_are_requested_on_as_many_nodes_as_the_partition_allows(
    gpus: int, nodes: int, do: str
) -> None:
    assert of(f"-N {nodes} --gpus-per-node={gpus} --ntasks-per-node={gpus}")["gpus"] == do
