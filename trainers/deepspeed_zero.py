"""Train a small network on MNIST with DeepSpeed ZeRO, on any number of ranks.

Alone, on a laptop:
    python deepspeed_zero.py
Four ranks on one node, started by DeepSpeed's launcher:
    RUN_DIR=/tmp/try deepspeed --num_gpus 4 deepspeed_zero.py --deepspeed_config ds_config.json
One rank per GPU on two nodes, started by Slurm (MASTER_ADDR and MASTER_PORT exported before):
    srun --nodes=2 --ntasks-per-node=8 bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID \
        WORLD_SIZE=$SLURM_NTASKS exec python3 deepspeed_zero.py --deepspeed \
        --deepspeed_config ds_config.json --resume'

The configuration decides on the ZeRO stage, the optimizer, the precision and the batch:
train_batch_size (a step, all ranks) = train_micro_batch_size_per_gpu x
gradient_accumulation_steps x ranks; DeepSpeed derives what is left out.

In:  RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, RUN_DIR; see engine/ranks.py.
Out: $RUN_DIR/metrics.jsonl as ddp.py writes it; see engine/reporting.py.
     $RUN_DIR/checkpoints/start-…-step-…/ of all ranks together, the last two; see
     saving/checkpoint.py.
     $RUN_DIR/errors/rank-N.json of a rank that failed.
Stop and exit codes as ddp.py's; 2 is for a wrong configuration too.
"""

from __future__ import annotations

from monitor.stop_request import STOP  # noqa: F401  # first: it notes a signal during imports

# isort: split
from pathlib import Path

from engine import exits, start
from engine.arguments import parser_of
from strategies import zero


def main() -> None:
    """Train from the beginning or the last checkpoint to the end, or until a stop request."""
    args = parser_of(
        "deepspeed_zero.py", "Train a digit classifier with DeepSpeed ZeRO."
    ).parse_args()
    args.deepspeed_config = args.deepspeed_config or str(zero.CONFIG)
    zero.check_config_exists(Path(args.deepspeed_config))
    start.run(args, zero.Zero)


if __name__ == "__main__":
    exits.run(main)
