"""Which samples each rank takes, and its micro batches: read ahead, and copied to the device.

Nothing here has a position of its own that a checkpoint would have to save. Loaders that deal out
an endless stream must save where each worker is (torchdata's StatefulDataLoader does), and then
need as many workers when they continue. Here a place in an epoch is a number of samples, the
order of an epoch follows from its seed alone, and the samples of a global batch are the next ones
in that order: so any number of ranks and workers goes on at the next sample.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from data.samples import BadData, Samples, View


def seed_of(number: int) -> int:
    """A number of any size as a seed for torch, which overflows beyond 64 bits."""
    return number % 2**63


def epoch_seed(seed: int, epoch: int) -> int:
    """The seed of everything that is random in one epoch of a training with `seed`."""
    return seed_of(seed * 100_003 + epoch)


def epoch_order(count: int, seed: int, epoch: int) -> Tensor:
    """The order in which one epoch visits the samples: the same on every rank."""
    generator = torch.Generator().manual_seed(epoch_seed(seed, epoch))
    return torch.randperm(count, generator=generator)


@dataclass(frozen=True)
class TrainingShares:
    """The micro batches of the rest of an epoch; drops an incomplete global batch.

    A step takes the next `accumulate` of them. A global batch is batch x accumulate x world_size.
    All ranks' shares together are the next samples of the order for every world size, so that a
    training can continue with another number of ranks and see the same samples.
    """

    order: Tensor
    """The epoch's (see epoch_order)."""
    start: int
    """Samples of the epoch that are used already."""
    batch: int
    """Samples of a rank's micro batch."""
    accumulate: int
    rank: int
    world_size: int

    def __len__(self) -> int:
        """How many micro batches this rank takes."""
        global_batch = self.batch * self.accumulate * self.world_size
        return max(0, len(self.order) - self.start) // global_batch * self.accumulate

    def __getitem__(self, number: int) -> Tensor:
        """The places of one micro batch."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        part = self.batch * self.world_size
        first = self.start + number * part
        return self.order[first : first + part][self.rank :: self.world_size]


@dataclass(frozen=True)
class TestingShares:
    """The batches of a test, which leaves out nothing.

    Every rank has as many, the last perhaps smaller or empty: ZeRO stage 3 gathers weights in each.
    """

    count: int
    batch: int
    rank: int
    world_size: int

    def __len__(self) -> int:
        """How many batches each rank takes."""
        return -(-self.count // (self.batch * self.world_size))

    def __getitem__(self, number: int) -> Tensor:
        """The places of one batch."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        part = self.batch * self.world_size
        first, end = number * part + self.rank, min(self.count, (number + 1) * part)
        return torch.arange(min(first, end), end, self.world_size)


AHEAD = 3
"""Micro batches that each thread reads ahead."""

Batch = tuple[Tensor, Tensor]
"""Inputs and targets."""


Shares: TypeAlias = TrainingShares | TestingShares
"""One rank's micro batches, as places in the data; every rank has as many."""


@contextmanager
def open_batches(
    samples: Samples, shares: Shares, view: View, device: torch.device, *, workers: int = 0
) -> Iterator[Iterator[Batch]]:
    """Give the micro batches of one rank, on its device.

    A batch is copied to a GPU while the one before it is computed with: from pinned memory, on a
    stream of its own, as long as the training does not wait for the GPU in between.

    Args:
        samples: the data.
        shares: which of them make each micro batch.
        view: how the model gets them.
        device: where to.
        workers: threads that read ahead; 0 reads when a batch is asked for.
    """
    with closing(_read_ahead(samples, shares, workers, device)) as read:
        there = _on_gpu(read, device) if device.type == "cuda" else read
        yield (
            (view(inputs, shares[number]), targets)
            for number, (inputs, targets) in enumerate(there)
        )


def _on_gpu(read: Iterator[Batch], device: torch.device) -> Iterator[Batch]:
    copies = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    for host in read:
        with torch.cuda.stream(copies):
            inputs, targets = (each.to(device, non_blocking=True) for each in host)
        computing = torch.cuda.current_stream(device)
        computing.wait_stream(copies)
        for each in (inputs, targets):
            each.record_stream(computing)  # its memory is the copies', until this is done
        yield inputs, targets


def _read(samples: Samples, places: Tensor, device: torch.device) -> Batch:
    """Read one micro batch; pinned, when a GPU copies it."""
    try:
        inputs, targets = samples.read(places)
    except OSError as error:
        raise BadData(str(error)) from error
    if device.type == "cuda":
        return inputs.pin_memory(), targets.pin_memory()
    return inputs, targets


def _read_ahead(
    samples: Samples, shares: Shares, workers: int, device: torch.device
) -> Generator[Batch, None, None]:
    """Read the micro batches in order: a few ahead in threads, or each on request.

    Threads also decode photos: Pillow lets other threads run while it decodes and scales. Two
    threads read 790 JPEG files a second on two cores, and two processes 630, which hand over what
    they read.
    """
    if not workers:
        yield from (_read(samples, shares[number], device) for number in range(len(shares)))
        return

    def begin() -> None:
        if device.type == "cuda":
            torch.cuda.set_device(device)  # or each thread would use a little of the first GPU

    pool = ThreadPoolExecutor(workers, "data", initializer=begin)
    waiting: deque[Future[Batch]] = deque()
    try:
        for number in range(len(shares)):
            waiting.append(pool.submit(_read, samples, shares[number], device))
            if len(waiting) > workers * AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # a disk that hangs must not hold the rest
