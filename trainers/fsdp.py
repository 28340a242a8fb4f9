"""Train a network with PyTorch's FSDP2, which splits the weights among the ranks.

For models that do not fit one GPU together with gradients and optimizer states. If a model fits,
use ddp.py, which transfers fewer bytes.

Four ranks on one node, started by torchrun:
    RUN_DIR=/tmp/try torchrun --standalone --nproc-per-node=4 fsdp.py --model vit --epochs 4
One rank per GPU on two nodes, started by Slurm (MASTER_ADDR and MASTER_PORT exported before):
    srun --nodes=2 --ntasks-per-node=8 bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID \
        WORLD_SIZE=$SLURM_NTASKS exec python3 fsdp.py --precision bf16 --resume'

Needs PyTorch 2.6. Input, output and stopping are as in ddp.py.
"""

from __future__ import annotations

from monitor.stop_request import STOP  # noqa: F401  # first: it notes a signal during imports

# isort: split
from engine import exits, start
from engine.arguments import parser_of


def main() -> None:
    """Train from the beginning or the last checkpoint to the end, or until a stop request."""
    args = parser_of("fsdp.py", "Train a network with PyTorch FSDP2.").parse_args()
    from strategies.fsdp import Fsdp  # raises a clear error with a PyTorch without it

    start.run(args, Fsdp)


if __name__ == "__main__":
    exits.run(main)
