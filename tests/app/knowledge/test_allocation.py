"""Rules count the cores that Slurm gives a job with its GPUs, even if it requests none."""

import pytest

from tests.support.rules.script_findings import findings_in, rules_in

HEAD = "#!/bin/bash\n#SBATCH -A open-00-01 -p qgpu_exp -t 1:00:00 {request}\n"
CORES = {"step-tasks", "shared-cores", "few-cores", "idle-cores", "share-cores", "cores"}


def karolina(request: str, launch: str = "srun python3 t.py") -> set[str]:
    """Return the rules about cores that find something at a site that gives 16 with each GPU."""
    return rules_in(f"{HEAD.format(request=request)}{launch}\n", "karolina") & CORES


@pytest.mark.parametrize(
    ("request_", "launch"),
    [
        ("-N 2 --gpus-per-node=8", "srun -n 16 python3 t.py"),
        ("-N 2 --gpus=16", "srun -n 16 python3 t.py"),
        ("-N 1 --gres=gpu:4", "srun -n 4 python3 t.py"),
        ("-N 1 --gpus-per-node=8 --ntasks-per-node=8", "srun python3 t.py"),
        ("-N 1 --gpus-per-node=4 --cpus-per-gpu=8", "srun -n 4 -c 8 python3 t.py"),
    ],
)
def test_a_job_has_the_cores_that_come_with_its_gpus(request_: str, launch: str) -> None:
    assert karolina(request_, launch) == set()


def test_a_step_may_not_start_more_tasks_than_those_cores() -> None:
    text = HEAD.format(request="-N 1 --gpus-per-node=1") + "srun -n 17 python3 t.py\n"
    (found,) = [one for one in findings_in(text, "karolina") if one.rule == "step-tasks"]
    assert "but the job requests 1 and gets 16 cores with its GPUs: no cores" in found.message
    assert karolina("-N 1 --gpus-per-node=1", "srun -n 16 python3 t.py") == set()


def test_an_own_number_of_cores_replaces_those_of_the_gpus() -> None:
    assert "shared-cores" in karolina("-N 1 --gpus-per-node=8 --ntasks-per-node=8 -c 8")
    assert "step-tasks" in karolina("-N 2 --gpus-per-node=8 -c 1", "srun -n 16 python3 t.py")


def test_cores_for_each_gpu_count_at_sites_without_a_default() -> None:
    head = "#!/bin/bash\n#SBATCH -A ehpc01 -q acc_ehpc -t 1:00:00 -N 1 --gres=gpu:4 --ntasks=1\n"
    assert "fixed-cores" in rules_in(head + "srun python3 t.py\n", "mn5")
    assert "fixed-cores" not in rules_in(
        head + "#SBATCH --cpus-per-gpu=20\nsrun python3 t.py\n", "mn5"
    )
    head = (
        "#!/bin/bash\n#SBATCH -A project_462000001 -p small-g -t 1:00:00 -N 1 --gpus-per-node=1\n"
    )
    found = findings_in(head + "#SBATCH --cpus-per-gpu=14\nsrun python3 t.py\n", "lumi")
    (share,) = [one for one in found if one.rule == "share-cores"]
    assert share.do == "Write --cpus-per-gpu=7." and share.fix is not None
