"""Train a network with PyTorch Lightning's Trainer, on any number of ranks.

Alone, on a laptop:
    python lightning_trainer.py
One task per GPU on two nodes, started by Slurm (MASTER_ADDR and MASTER_PORT exported before):
    srun --nodes=2 --ntasks-per-node=8 bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID \
        WORLD_SIZE=$SLURM_NTASKS exec python3 lightning_trainer.py --data mnist --resume'

Lightning drives: its Trainer goes through epochs and batches, wraps the model in DDP and restores
its own checkpoints. Models, data, tests, metrics.jsonl, stops and exit codes are as in ddp.py, and
so are the losses. What differs:

- The ranks are those of the six variables, under any launcher and any job name. Lightning's own
  SLURMEnvironment takes a job named `bash` or `interactive` for no Slurm job at all, and saves in
  the middle of a step when SIGUSR1 arrives. Here the step is finished first.
- $RUN_DIR/checkpoints/start-…-step-…/lightning.ckpt is what Trainer.save_checkpoint makes.
- --requeue asks Slurm to start the job again after SIGUSR1 (sbatch --requeue --signal=USR1@120),
  as Lightning does. A job of lumitui has `chain:` for that.
- Lightning 2.6 waits for the GPU in each step of several ranks: ddp.py does not.
"""

from __future__ import annotations

from engine.stop_request import STOP, STOPPED_EARLY  # first: it notes a signal during imports

# isort: split
import argparse
import logging
import os
import subprocess
import sys
import warnings

from engine import ranks, reporting, training
from engine.arguments import add_shared, add_torch


def requeue(me: ranks.Ranks) -> None:
    """Ask Slurm to start this job again, as Lightning's SLURMEnvironment does."""
    job = os.environ.get("SLURM_JOB_ID", "")
    if array := os.environ.get("SLURM_ARRAY_JOB_ID"):
        job = f"{array}_{os.environ.get('SLURM_ARRAY_TASK_ID', '')}"
    if me.rank or not job or STOP.received != "SIGUSR1":
        return
    try:
        subprocess.run(["scontrol", "requeue", job], check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        print(
            f"The job could not be requeued ({error}). Submit it again with --resume.",
            file=sys.stderr,
            flush=True,
        )


def main() -> None:
    """Train from the beginning or the last checkpoint to the end, or until asked to stop."""
    parser = argparse.ArgumentParser(description="Train a network with PyTorch Lightning.")
    add_shared(parser)
    add_torch(parser)
    parser.add_argument("--requeue", action="store_true",
        help="after SIGUSR1 ask Slurm to start the job again")  # fmt: skip
    args = parser.parse_args()
    from strategies.lightning_loop import Lightning, fit  # raises a sentence where it is missing

    warnings.filterwarnings("ignore", module=r"lightning\.")  # of its own old calls, and srun
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        training.run(args, Lightning, fit)
    except SystemExit as leaving:
        if args.requeue and leaving.code == STOPPED_EARLY:
            requeue(ranks.read_ranks())
        raise


if __name__ == "__main__":
    reporting.run(main)
