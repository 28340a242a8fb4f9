"""Each line of a script that starts training is judged with its own ranks, GPUs and nodes."""

import pytest

from tests.support.rules.script_findings import findings_in, job_of

HEAD = """\
#!/bin/bash
#SBATCH --account=project_462000001
#SBATCH --partition=standard-g
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --time=01:00:00
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=29500 WORLD_SIZE=$SLURM_NTASKS
"""
FIRST = HEAD.count("\n") + 1
"""The line of the first step."""
LOADER = """\
import os
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
torch.distributed.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
loader = DataLoader(train_set, shuffle=True)
"""
ALONE = "import torch\nmodel = torch.nn.Linear(2, 2).cuda()\n"
CONFIG = '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, '
CONFIG += '"gradient_accumulation_steps": 1}'


def found(rule: str, *lines: str, **files: str) -> list[tuple[int, str]]:
    """Return lines and messages of a rule's findings; files are named `train` for `train.py`."""
    texts = {f"{name}.json" if name == "ds" else f"{name}.py": text for name, text in files.items()}
    text = HEAD + "\n".join(lines) + "\n"
    every = findings_in(text, files=texts)
    return [(one.at.line - FIRST, one.message) for one in every if one.rule == rule]


def test_each_line_has_its_own_ranks() -> None:
    text = HEAD + "\n".join([
        "srun --nodes=1 --ntasks=2 --gpus-per-node=2 python a.py",
        "srun python b.py",
        "srun -N1 -n1 --gpus=4 torchrun --nproc_per_node=4 c.py",
        "srun -n2 --ntasks-per-node=1 --gpus-per-task=8 python d.py",
    ])  # fmt: skip
    ranks = [step.rank for step in job_of(text).steps]
    assert [(one.per_node, one.world_size, one.gpus_per_node) for one in ranks] == [
        (2, 2, 2), (8, 16, 8), (4, 4, 4), (1, 2, 8),
    ]  # fmt: skip


def test_a_line_with_one_rank_is_not_blamed_for_the_ranks_of_the_next() -> None:
    lines = ("srun -N1 -n1 python alone.py", "srun python train.py")
    assert found("ranks-unused", *lines, alone=ALONE, train=LOADER) == []
    told = found("ranks-unused", *reversed(lines), alone=ALONE, train=ALONE)
    assert [message[:24] for _line, message in told] == ["The job starts 16 ranks "]


def test_a_line_with_many_ranks_is_found_before_a_line_with_one() -> None:
    lines = ("srun python train.py", "srun -N1 -n1 python alone.py")
    (told,) = found("no-sampler", *lines, train=LOADER, alone=ALONE)
    assert "each of the 16 ranks trains on all of it" in told[1]


def test_a_fault_of_the_program_is_named_once_for_lines_of_different_size() -> None:
    lines = ("srun -N1 -n8 python train.py", "srun python train.py")
    assert len(found("no-sampler", *lines, train=LOADER)) == 1


def test_the_batch_is_divided_among_the_ranks_of_its_own_line() -> None:
    line = "srun python train.py --deepspeed_config ds.json"
    assert found("deepspeed-batch", line, ds=CONFIG) == []
    (told,) = found("deepspeed-batch", line.replace("srun", "srun -N1 -n8"), line, ds=CONFIG)
    assert "4 per GPU x 1 steps x 8 ranks make 32" in told[1]


@pytest.mark.parametrize("number", [2, 4])
def test_torchrun_starts_as_many_ranks_as_its_own_srun_has_gpus(number: int) -> None:
    line = f"srun -N1 -n1 --gpus={number} torchrun --standalone --nproc_per_node={number} train.py"
    rest = "srun -N2 --ntasks-per-node=1 torchrun --nnodes=2 --nproc_per_node=8 train.py"
    assert found("torchrun-processes", line, rest) == []
    wrong = line.replace(f"node={number}", "node=8")
    (told,) = found("torchrun-processes", wrong, rest)
    assert told == (0, f"torchrun starts 8 ranks per node, but each node has {number} GPUs.")


def test_tasks_are_compared_with_the_gpus_of_their_own_srun() -> None:
    lines = ("srun -N1 -n4 --gpus=4 python a.py", "srun python b.py")
    assert found("more-tasks-than-gpus", *lines) == []
    lines = ("srun -N1 -n4 --gpus=2 python a.py", "srun python b.py")
    assert found("more-tasks-than-gpus", *lines) == [
        (0, "Each node starts 4 tasks, but has 2 GPUs.")
    ]


def test_lines_that_run_at_once_divide_the_gpus() -> None:
    lines = ("srun -N1 -n4 python a.py &", "srun -N1 -n4 python b.py &", "wait")
    assert found("more-tasks-than-gpus", *lines) == []


def test_workers_and_threads_are_compared_with_the_cores_of_their_own_line() -> None:
    wide = "srun -N1 -n1 -c56 python a.py --num-workers 14"
    narrow = "srun python b.py --num-workers 5"
    assert found("workers-argument", wide, narrow) == []
    assert found("workers-argument", narrow, wide) == []
    assert [line for line, _ in found("workers-argument", narrow.replace(" 5", " 14"), wide)] == [0]
    threads = ("export OMP_NUM_THREADS=28", wide, "export OMP_NUM_THREADS=7", narrow)
    assert found("omp-threads", *threads) == []
    assert [line for line, _ in found("omp-threads", *threads[:2], narrow)] == [0]


def test_a_setting_that_only_a_branch_replaces_is_still_judged() -> None:
    narrow = "srun python b.py"
    wide, branch = "export OMP_NUM_THREADS=28", 'if [ "$1" ]; then export OMP_NUM_THREADS=7; fi'
    assert [line for line, _ in found("omp-threads", wide, branch, narrow)] == [0]
    assert found("omp-threads", wide, "export OMP_NUM_THREADS=7", narrow) == []


def test_gpus_of_each_task_are_those_of_the_tasks_of_a_line() -> None:
    text = HEAD.replace("gpus-per-node=8", "gpus-per-task=1")
    steps = job_of(f"{text}srun -N1 -n2 python a.py\nsrun python b.py\n").steps
    assert [step.rank.gpus_per_node for step in steps] == [2, 8]


@pytest.mark.parametrize(("cores", "lines"), [(42, [0]), (43, []), (56, [])])
def test_numa_binding_needs_cores_in_each_domain(cores: int, lines: list[int]) -> None:
    line = f"srun -n2 --ntasks-per-node=1 -c{cores} torchrun --nnodes=2 --nproc_per_node=8 "
    line += "--numa-binding=exclusive train.py"
    assert [at for at, _ in found("numa-binding-shared", line)] == lines


def test_a_number_of_ranks_is_compared_with_the_line_that_gets_it() -> None:
    lines = ("export WORLD_SIZE=2", "srun -N1 -n2 python a.py", "export WORLD_SIZE=16")
    assert found("world-size", *lines, "srun python b.py") == []
    (told,) = found("world-size", *lines[:2], "srun python b.py")
    assert told == (0, "WORLD_SIZE is 2, but srun starts 16 ranks.")


def test_a_local_address_is_right_for_a_line_on_one_node() -> None:
    text = 'import os\nos.environ["MASTER_ADDR"] = "localhost"\n'
    lines = ("srun -N1 -n8 python a.py", "srun python b.py")
    assert found("master-in-program", *lines, a=text, b=LOADER) == []
    assert len(found("master-in-program", *lines, a=LOADER, b=text)) == 1


def test_a_line_with_one_task_hides_no_gpu_from_another() -> None:
    lines = [f"srun -N1 -n1 --exact --gpus-per-task=1 python {name}.py &" for name in "ab"]
    assert found("gpu-cgroup", *lines, "wait") == []
    assert len(found("gpu-cgroup", lines[0].replace("-n1", "-n4"), "wait")) == 1


def test_only_the_unbound_ranks_are_named() -> None:
    alone = "srun -N1 -n1 python eval.py"
    assert [line for line, _ in found("no-binding", "srun python a.py", alone)] == [0]
    assert [line for line, _ in found("no-binding", alone, "srun python a.py")] == [1]
