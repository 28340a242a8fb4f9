"""What DeepSpeed and FSDP save is in all ranks, and all must come to the call."""

import pytest

from tests.support.rules.script_findings import rules_in

SCRIPT = """#!/bin/bash
#SBATCH -p standard-g -N 1 --ntasks-per-node=8 --gpus-per-node=8
srun python train.py
"""
ENGINE = """import deepspeed, os, torch
import torch.distributed as dist
rank = int(os.environ["RANK"])
engine, optimizer, _, _ = deepspeed.initialize(model=model)
"""
FSDP = """import os, torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
rank = int(os.environ["RANK"])
model = FSDP(model)
"""
DDP = FSDP.replace("= FSDP(", "= DDP(")


def hangs(program: str) -> bool:
    return "collective-on-one-rank" in rules_in(SCRIPT, files={"train.py": program})


@pytest.mark.parametrize(
    "text",
    [
        f"{ENGINE}if rank == 0:\n    engine.save_checkpoint('out')\n",
        f"{ENGINE}if dist.get_rank() == 0:\n    engine.save_16bit_model('out')\n",
        f"{ENGINE.replace('engine, ', 'net, ')}if not rank:\n    net.save_checkpoint('out')\n",
        f"{ENGINE}def save():\n    if rank == 0:\n        engine.save_checkpoint('out')\nsave()\n",
        f"{FSDP}if rank == 0:\n    torch.save(model.state_dict(), 'm.pt')\n",
    ],
)
def test_what_all_ranks_hold_is_not_saved_by_one(text: str) -> None:
    assert hangs(text)


@pytest.mark.parametrize(
    "text",
    [
        f"{ENGINE}engine.save_checkpoint('out')\n",
        f"{ENGINE}if step % 100 == 0:\n    engine.save_checkpoint('out')\n",
        f"{ENGINE}if rank == 0:\n    logger.save_checkpoint('out')\n",
        f"{ENGINE}if rank == 0:\n    print('saved')\nengine.save_checkpoint('out')\n",
        f"{FSDP}state = model.state_dict()\nif rank == 0:\n    torch.save(state, 'm.pt')\n",
        f"{FSDP}if rank == 0:\n    torch.save(optimizer.state_dict(), 'm.pt')\n",
        f"{DDP}if rank == 0:\n    torch.save(model.state_dict(), 'm.pt')\n",
    ],
)
def test_what_all_ranks_save_or_one_rank_holds_is_right(text: str) -> None:
    assert not hangs(text)
