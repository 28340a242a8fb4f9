"""Which rank a process is, by the words of any launcher, and what it then may use."""

import platform
from pathlib import Path

import pytest

from tests.support.trainers.ranks import Load, ranks, train_alone

SHORT = ("ddp.py", "--limit", "64", "--steps", "1", "--eval", "never")

FULL = {
    "RANK": "5",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "8",
    "MASTER_ADDR": "nid001",
    "MASTER_PORT": "15678",
}
MEET = {"MASTER_ADDR": "nid001", "MASTER_PORT": "15678"}
# What srun says is of mpirun's daemon on this node.
DAEMON = {"SLURM_PROCID": "1", "SLURM_LOCALID": "0", "SLURM_STEP_NUM_TASKS": "2"}
SRUN = {"SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_STEP_NUM_TASKS": "8"}
MPIRUN = DAEMON | {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "8",
}
HYDRA = DAEMON | {"PMI_RANK": "3", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1"}


@pytest.mark.parametrize(
    "given",
    [
        SRUN,
        SRUN | {"PMI_RANK": "3", "PMI_SIZE": "8"},  # srun --mpi=pmi2
        SRUN | {"PMIX_RANK": "3"},
        MPIRUN,
        HYDRA,
        DAEMON | {"PMI_RANK": "3", "PMI_SIZE": "8", "PMI_LOCAL_RANK": "1"},
    ],
)
def test_every_launcher_says_who_i_am(load: Load, given: dict[str, str]) -> None:
    ranks = load("engine.ranks")
    environ = given | MEET
    assert ranks.read_ranks(environ) == ranks.Ranks(3, 1, 8, Path())
    # PyTorch, DeepSpeed and Lightning read these.
    assert [environ[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")] == ["3", "1", "8"]


@pytest.mark.parametrize(
    "given",
    [
        # torchrun numbers the nodes itself; a launcher that srun started makes more ranks.
        DAEMON | {"TORCHELASTIC_RUN_ID": "1", "SLURM_STEP_NUM_TASKS": "8"},
        DAEMON,
        # What was set for this process comes first, where nothing contradicts it.
        SRUN | {"SLURM_PROCID": "5"},
    ],
)
def test_the_five_variables_come_first(load: Load, given: dict[str, str]) -> None:
    ranks = load("engine.ranks")
    assert ranks.read_ranks(FULL | given) == ranks.Ranks(5, 1, 8, Path())


def test_the_launcher_says_who_i_am(load: Load) -> None:
    ranks = load("engine.ranks")
    batch = {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "8"}
    for alone in ({}, batch):
        assert ranks.read_ranks(alone) == ranks.Ranks(0, 0, 1, Path())
    mine = ranks.read_ranks(FULL | {"RUN_DIR": "/run", "LOCAL_WORLD_SIZE": "4"})
    assert mine == ranks.Ranks(5, 1, 8, Path("/run"))


@pytest.mark.parametrize(
    ("environ", "complaint"),
    [
        ({"RANK": "0", "WORLD_SIZE": "2"}, "LOCAL_RANK, MASTER_ADDR, MASTER_PORT"),
        (FULL | {"RANK": "8"}, "RANK=8 does not fit WORLD_SIZE=8"),
        (FULL | {"RANK": "$SLURM_PROCID"}, "not a whole number"),
        ({"SLURM_STEP_NUM_TASKS": "8"}, "RANK is not set"),
        (MPIRUN, "OMPI_COMM_WORLD_SIZE=8 processes were started, but MASTER_ADDR is not set"),
        (FULL | MPIRUN, "RANK=5 of WORLD_SIZE=8 contradicts OMPI_COMM_WORLD_RANK=3"),
        (FULL | {"RANK": "0", "WORLD_SIZE": "1"} | SRUN, "of SLURM_STEP_NUM_TASKS=8"),
    ],
)
def test_a_wrong_launch_is_refused(load: Load, environ: dict[str, str], complaint: str) -> None:
    with pytest.raises(load("engine.exits").UsageError) as caught:
        load("engine.ranks").read_ranks(environ)
    assert complaint in str(caught.value)


# Eight ranks of a LUMI node whose launcher gave all of them the same 56 cores, bound ones, and
# two that share half of their cores.
ALL, HALF = frozenset(range(56)), frozenset(range(4))


@pytest.mark.parametrize(
    ("masks", "threads"),
    [
        ([ALL] * 8, 7),
        ([frozenset(range(7 * n, 7 * n + 7)) for n in range(8)], 7),
        ([HALF, frozenset(range(2, 6))], 3),
        ([frozenset({0})] * 4, 1),
    ],
)
def test_ranks_that_share_cores_share_their_threads(
    load: Load, masks: list[frozenset[int]], threads: int
) -> None:
    of_all = [("a", mask) for mask in masks] + [("b", ALL)] * 8
    assert load("engine.ranks").threads(of_all[0], of_all) == threads


@pytest.mark.usefixtures("needs_torch")
def test_gpus_that_were_asked_for_and_are_not_there_end_every_rank(tmp_path: Path) -> None:
    with ranks(tmp_path, 2, *SHORT, SLURM_GPUS_ON_NODE="8", CUDA_VISIBLE_DEVICES="") as job:
        assert job.wait() == [2, 2]
    for rank in range(2):
        assert f"Rank {rank} on {platform.node()} cannot use a GPU, although SLURM" in job.output()
    assert "Traceback" not in job.output()
    with ranks(tmp_path, 1, *SHORT, CUDA_VISIBLE_DEVICES="0") as job:
        assert job.wait() == [2]
    assert "cannot use a GPU, although CUDA_VISIBLE_DEVICES=0 is set" in job.output()
    given = {"SLURM_GPUS_ON_NODE": "8", "TRAINER_DEVICE": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    assert train_alone(tmp_path, *SHORT, **given)[0] == 0
