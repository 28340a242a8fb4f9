"""What our batch scripts set otherwise than the LUMI AI Guide's, on purpose, and why.

What they ask sbatch for, and what they start, is in `tests/golden/seeds.yaml` with its reasons.

Sources: T201 and T205 are the LUMI training materials of April 2026 (201-Slurm, 205-Containers);
the rest is named in full.
"""

from dataclasses import dataclass
from typing import Literal

from tests.support.guide.scripts import Era

Kind = Literal["module", "export", "setup"]
"""Which part of a `Script` a difference is in; `setup` is any other line of the batch script."""
Change = Literal["added", "left out", "replaced"]


@dataclass(frozen=True)
class Difference:
    """One thing that our scripts do otherwise than the guide's, on purpose."""

    kind: Kind
    key: str
    """The option, variable or line it is about, as the `Script` names it."""
    change: Change
    what: str
    reason: str
    eras: tuple[Era, ...] = ("seed", "current")


_CURRENT: tuple[Era, ...] = ("current",)
_SEED: tuple[Era, ...] = ("seed",)
_CACHES = "by default it is in home, and caches on Lustre failed 1 of 128 ranks (apptainer-bench)"
_MIOPEN = (
    "MIOpen needs locks that Lustre has not, and mktemp in the batch script makes the folder on "
    "the first node only (AI-Guide #81, pull request 108)"
)
_HOME = "home has 20 GB and 100k files (user guide, storage)"

BATCH_DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "export",
        "MASTER_PORT",
        "replaced",
        "10000 and the job's number modulo 10000",
        "a fixed port meets another job's on a shared node; 1${SLURM_JOB_ID:0-4} is port 1 when "
        "the number has fewer than four digits",
    ),
    Difference(
        "export",
        "MASTER_ADDR",
        "replaced",
        "the node list is quoted",
        "brackets of a node list are a pattern for the shell",
    ),
    Difference(
        "export", "MASTER_ADDR", "added", "in run_ddp_torchrun.sh too", "in place of --standalone"
    ),
    Difference(
        "export", "MASTER_PORT", "added", "in run_ddp_torchrun.sh too", "in place of --standalone"
    ),
    Difference(
        "export",
        "WORLD_SIZE",
        "replaced",
        "from SLURM_NTASKS",
        "SLURM_NPROCS is its old name (sbatch(1))",
    ),
    Difference(
        "export",
        "LOCAL_WORLD_SIZE",
        "replaced",
        "the ranks of a node as a number",
        "SLURM_GPUS_PER_NODE is there only when --gpus-per-node was given (Slurm)",
    ),
    Difference(
        "module",
        "lines",
        "replaced",
        "Local-LAIF in place of `module use /appl/local/laifs/modules`",
        "the guide's own pull request 115 and the training of April 2026",
        _CURRENT,
    ),
    Difference(
        "export",
        "SRUN_CPUS_PER_TASK",
        "added",
        "from SLURM_CPUS_PER_TASK",
        "srun does not inherit --cpus-per-task since Slurm 22.05: a task gets one core",
    ),
    Difference(
        "export",
        "NCCL_SOCKET_IFNAME",
        "added",
        "hsn0 to hsn3 in run_ds_torchrun.sh as in the other seven",
        "the README wants it in all; measured without effect on later images, which go without",
        _SEED,
    ),
    Difference(
        "export",
        "FI_MR_CACHE_MONITOR",
        "added",
        "userfaultfd",
        "without it 21 of 23 jobs hung (AI-Guide pull request 118, LAIF #44)",
        _CURRENT,
    ),
    Difference(
        "export",
        "NCCL_NET",
        "added",
        "AWS Libfabric",
        "without the plugin the job ends at once, instead of using TCP (HPE, rccl_tuning_guide)",
        _CURRENT,
    ),
    Difference("export", "TRITON_CACHE_DIR", "added", "in the job's folder", _CACHES),
    Difference("export", "TORCHINDUCTOR_CACHE_DIR", "added", "in the job's folder", _CACHES),
    Difference("export", "TORCH_EXTENSIONS_DIR", "added", "in the job's folder", _CACHES),
    Difference(
        "export",
        "NCCL_NET_GDR_LEVEL",
        "added",
        "PHB in run_ds_torchrun.sh as in the other seven",
        "the README wants it in all; the default since ROCm 6.2",
        _SEED,
    ),
    Difference("export", "MIOPEN_CUSTOM_CACHE_DIR", "added", "a folder a job", _MIOPEN, _SEED),
    Difference("export", "MIOPEN_USER_DB_PATH", "added", "a folder a job", _MIOPEN),
    Difference(
        "export",
        "MIOPEN_CUSTOM_CACHE_DIR",
        "replaced",
        "a folder a job, made on each node",
        _MIOPEN,
        _CURRENT,
    ),
    Difference(
        "export",
        "MIOPEN_USER_DB",
        "left out",
        "MIOPEN_USER_DB_PATH is the variable",
        "MIOpen does not know the other (AI-Guide pull request 108)",
        _CURRENT,
    ),
    Difference("export", "TORCH_HOME", "added", "on scratch", _HOME, _SEED),
    Difference("export", "HF_HOME", "added", "on scratch", _HOME),
    Difference(
        "export",
        "PYTHONUNBUFFERED",
        "added",
        "lines reach the log as they are printed",
        "Python keeps 8 KiB back when its output is a file",
    ),
    Difference(
        "export",
        "CXX",
        "added",
        "in the batch script instead of each task",
        "it is the same for all tasks: env of the job file",
        _SEED,
    ),
    Difference(
        "setup",
        "MIOPEN_DIR=$(mktemp -d)",
        "replaced",
        "mkdir by one task a node",
        _MIOPEN,
        _CURRENT,
    ),
    Difference(
        "setup",
        'mkdir -p "$TORCH_HOME"',
        "left out",
        "torch makes it",
        "torch.hub creates the folder when it downloads",
        _CURRENT,
    ),
    Difference(
        "setup",
        "set -eo pipefail",
        "added",
        "a failed line ends the job",
        "a module that cannot be loaded shows at once",
    ),
    Difference(
        "setup",
        "claim",
        "added",
        "lumitui_begin: a second job of the same run ends at once; RUN_DIR; umask 077",
        "a lost reply of sbatch cannot make a run train twice; scratch is a project's",
    ),
    Difference(
        "setup",
        "proof",
        "added",
        "each rank reports its cores before the launch",
        "binding is measured rather than believed",
    ),
    Difference(
        "setup",
        "exit file",
        "added",
        "the launch's return code, after it returned",
        "accounting is late and may be off; a trap would write 0 for a killed job",
    ),
)
