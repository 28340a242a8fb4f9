"""Where Slurm counts hardware threads, the rules about cores count them, too."""

import pytest

from tests.support.rules.script_findings import rules_in

WHOLE = """#!/bin/bash
#SBATCH --partition=standard-g
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
"""
SHARED = """#!/bin/bash
#SBATCH --partition=small-g
#SBATCH --gpus-per-node=2
#SBATCH --ntasks-per-node=2
"""
MN5 = """#!/bin/bash
#SBATCH --qos=acc_ehpc
#SBATCH --nodes=2
#SBATCH --gres=gpu:4
#SBATCH --ntasks-per-node=4
#SBATCH --exclusive
#SBATCH --threads-per-core=2
"""
RULES = {"cores", "omp-threads", "workers-argument", "share-cores", "idle-cores"}


@pytest.mark.parametrize(
    ("head", "cpus", "hint", "threads", "expected"),
    [
        (WHOLE, 14, "multithread", 14, ""),
        (WHOLE, 16, "multithread", 14, "cores"),
        (WHOLE, 14, "multithread", 28, "omp-threads"),
        (WHOLE, 14, "nomultithread", 7, "cores"),
        (SHARED, 14, "multithread", 14, ""),
        (SHARED, 28, "multithread", 28, "share-cores"),
        (SHARED, 7, "nomultithread", 7, ""),
        (SHARED, 14, "nomultithread", 14, "share-cores"),
        (MN5, 40, "compute_bound", 40, ""),
        (MN5, 80, "compute_bound", 40, "cores"),
    ],
)
def test_a_hardware_thread_is_no_core(
    head: str, cpus: int, hint: str, threads: int, expected: str
) -> None:
    text = f"""{head}#SBATCH --cpus-per-task={cpus}
#SBATCH --hint={hint}
export OMP_NUM_THREADS={threads}
srun --cpus-per-task={cpus} python train.py --num-workers {threads - 1}
"""
    found = rules_in(text, "mn5" if head is MN5 else "lumi") & RULES
    assert found - {"workers-argument"} == {expected} - {""}
    assert ("workers-argument" in found) == (threads > cpus)
