"""Train a small network on MNIST with PyTorch DistributedDataParallel, on any number of ranks.

Alone, on a laptop:
    python ddp.py
Four ranks on one node, started by torchrun:
    RUN_DIR=/tmp/try torchrun --standalone --nproc-per-node=4 ddp.py --epochs 4
One rank per GPU on two nodes, started by Slurm (MASTER_ADDR and MASTER_PORT exported before):
    srun --nodes=2 --ntasks-per-node=8 bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID \
        WORLD_SIZE=$SLURM_NTASKS exec python3 ddp.py --data mnist --resume'

In:  RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, RUN_DIR; see engine/ranks.py.
Out: $RUN_DIR/metrics.jsonl, one JSON object a line by rank 0: first {"event": "start", ...}, a
     {"step", "epoch", "loss", "lr", "samples_per_s", "seconds"} each step, and the events eval,
     checkpoint, stop and end; see engine/reporting.py. $RUN_DIR/checkpoints/start-…-step-…/,
     the last two; see saving/checkpoint.py. $RUN_DIR/errors/rank-N.json of a rank that failed.
Stop: SIGUSR1 or SIGTERM to any rank, or a file named stop in $RUN_DIR.
Exit code: 0 trained to the end; 1 an error; 2 wrong arguments, data, launch or GPU;
     85 asked to stop, with the checkpoint saved: go on with --resume;
     86 the loss was no number for --max-skipped steps; 87 a later start of this run took over.
"""

from __future__ import annotations

from monitor.stop_request import STOP  # noqa: F401  # first: it notes a signal during imports

# isort: split
from engine import exits, start
from engine.arguments import parser_of
from strategies.pytorch import Ddp


def main() -> None:
    """Train from the beginning or the last checkpoint to the end, or until a stop request."""
    args = parser_of("ddp.py", "Train a digit classifier with PyTorch DDP.").parse_args()
    start.run(args, Ddp)


if __name__ == "__main__":
    exits.run(main)
