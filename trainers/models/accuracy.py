"""The test accuracy of a network, counted by all ranks together."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

from data.mnist import Digits, to_input
from engine.ranks import Ranks, average
from engine.stop_request import STOP


@torch.no_grad()
def test_accuracy(
    model: nn.Module, digits: Digits, me: Ranks, device: torch.device
) -> float | None:
    """The share of the test images that a network names right; each rank tests its part.

    None when a rank was asked to stop: a test may take longer than the time that is left.
    """
    for buffer in model.buffers():  # batch norm's running means differ by rank; rank 0's count
        dist.broadcast(buffer, src=0)
    model.eval()
    dtype = next(model.parameters()).dtype
    images = digits.test_images[me.rank :: me.world_size]
    labels = digits.test_labels[me.rank :: me.world_size]
    right = torch.zeros((), dtype=torch.int64, device=device)
    stopping = False
    # As many batches on every rank, the last perhaps empty: ZeRO stage 3 gathers weights in each.
    for start in range(0, -(-len(digits.test_labels) // me.world_size), 500):
        stopping = bool(average([STOP.wanted()], device)[0])
        if stopping:
            break
        logits = model(to_input(images[start : start + 500], device, dtype))
        right += (logits.argmax(dim=1) == labels[start : start + 500].to(device)).sum()
    model.train()
    if stopping:
        return None
    dist.all_reduce(right)
    return right.item() / len(digits.test_labels)
