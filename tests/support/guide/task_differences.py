"""What our scripts start in each task otherwise than the LUMI AI Guide's, and why.

Sources: T201 and T205 are the LUMI training materials of April 2026 (201-Slurm, 205-Containers);
the rest is named in full.
"""

from tests.support.guide.difference import Difference
from tests.support.guide.scripts import Era

_CURRENT: tuple[Era, ...] = ("current",)
_SEED: tuple[Era, ...] = ("seed",)

TASK_DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "srun",
        "--kill-on-bad-exit",
        "added",
        "--kill-on-bad-exit=1",
        "the other ranks run on after one crashed, to the time limit",
    ),
    Difference("srun", "--label", "added", "--label", "a line of the log names its task"),
    Difference(
        "srun",
        "PET_LOCAL_ADDR",
        "added",
        "the node's name in Slurm",
        "torchrun's own name for it may be one that other nodes do not know (pytorch #73656)",
    ),
    Difference(
        "call",
        "image",
        "replaced",
        "the site's own path",
        "../resources holds a copy, and holds only where the guide was cloned",
        _SEED,
    ),
    Difference(
        "call",
        "-B",
        "replaced",
        "the binds of the job file, absolute",
        "relative paths hold in one folder only",
        _SEED,
    ),
    Difference(
        "call",
        "bash -c",
        "left out",
        "torchrun is called without a shell",
        "nothing in its command is for a task to expand; one level of quoting less",
    ),
    Difference(
        "inner",
        "exec",
        "added",
        "exec before the program",
        "a signal kills the bash around the program while it saves",
    ),
    Difference(
        "inner",
        "CXX",
        "replaced",
        "env of the job file",
        "only the scripts for DeepSpeed with the legacy image need it",
        _SEED,
    ),
    Difference(
        "inner",
        "quotes",
        "replaced",
        "single quotes everywhere",
        "one rule: what a task knows is expanded in the task (AI-Guide pull request 115)",
    ),
    Difference(
        "launcher",
        "--rdzv_id",
        "replaced",
        "the job's number, expanded in the batch script",
        r"\$ in single quotes is the text $SLURM_JOB_ID (fixed by AI-Guide pull request 115)",
    ),
    Difference(
        "launcher",
        "--rdzv_id",
        "added",
        "for one node too",
        "one form for every number of nodes",
    ),
    Difference(
        "launcher",
        "--standalone",
        "replaced",
        "the rendezvous of several nodes, for one",
        "one form for every number of nodes",
    ),
    Difference(
        "launcher",
        "--rdzv_backend",
        "added",
        "c10d for one node too",
        "one form for every number of nodes",
    ),
    Difference(
        "launcher",
        "--rdzv_endpoint",
        "added",
        "for one node too",
        "one form for every number of nodes",
    ),
    Difference(
        "launcher",
        "--nnodes",
        "replaced",
        "$SLURM_JOB_NUM_NODES",
        "a number, or the older name SLURM_NNODES, is not what a change of nodes follows",
    ),
    Difference(
        "launcher",
        "--node_rank",
        "left out",
        "c10d numbers the nodes itself",
        "it is for the static rendezvous",
    ),
    Difference(
        "launcher",
        "--master_addr",
        "replaced",
        "--rdzv_endpoint",
        "one form of rendezvous for DDP and DeepSpeed",
    ),
    Difference(
        "launcher",
        "--master_port",
        "replaced",
        "--rdzv_endpoint",
        "one form of rendezvous for DDP and DeepSpeed",
    ),
    Difference(
        "launcher",
        "--signals-to-handle",
        "added",
        "the signal that the trainer saves on",
        "torchrun dies of a signal that it does not handle, and its ranks with it",
        _CURRENT,
    ),
)
"""Every deliberate difference; what differs and is not here is a mistake of ours."""
