"""Train a network with PyTorch Lightning's Trainer, on any number of ranks.

Alone, on a laptop:
    python lightning_trainer.py
One task per GPU on two nodes, started by Slurm (MASTER_ADDR and MASTER_PORT exported before):
    srun --nodes=2 --ntasks-per-node=8 bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID \
        WORLD_SIZE=$SLURM_NTASKS exec python3 lightning_trainer.py --data mnist --resume'

Lightning is in control: its Trainer runs epochs and batches and wraps the model in DDP. Models,
data, evaluation, metrics.jsonl, stops, exit codes and losses are as in ddp.py. The checkpoint,
lightning.ckpt in our folders, is from Trainer.save_checkpoint. With several ranks, Lightning 2.6
waits for the GPU in each step; ddp.py does not.
"""

from __future__ import annotations

from monitor.stop_request import STOP  # noqa: F401  # first: it notes a signal during imports

# isort: split
import logging
import warnings

from engine import exits, start
from engine.arguments import parser_of


def main() -> None:
    """Train from the beginning or the last checkpoint to the end, or until a stop request."""
    args = parser_of("lightning_trainer.py", "Train a network with PyTorch Lightning.").parse_args()
    from strategies.lightning import Lightning, fit  # raises a clear error if it is missing

    warnings.filterwarnings("ignore", module=r"lightning\.")  # of its own old calls, and srun
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    start.run(args, Lightning, fit)


if __name__ == "__main__":
    exits.run(main)
