"""Each rank's samples and micro batches: read ahead and copied to the device.

No state here needs to be in a checkpoint. Loaders of an endless stream must save each worker's
position (like torchdata's StatefulDataLoader) and can only resume with the same number of workers.
Here, the position in an epoch is a number of samples, the order of an epoch depends only on its
seed, and a global batch is the next samples in that order. So a training run can resume at the next
sample with any number of ranks and workers.
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
    """Return a number of any size as a 64-bit seed for torch."""
    return number % 2**63


def epoch_seed(seed: int, epoch: int) -> int:
    """Return the seed for one epoch of a training run with `seed`."""
    return seed_of(seed * 100_003 + epoch)


def epoch_order(count: int, seed: int, epoch: int) -> Tensor:
    """Return the order of the samples in one epoch, the same on every rank."""
    generator = torch.Generator().manual_seed(epoch_seed(seed, epoch))
    return torch.randperm(count, generator=generator)


@dataclass(frozen=True)
class TrainingShares:
    """One rank's micro batches for the rest of an epoch; drops an incomplete global batch.

    A step takes the next `accumulate` micro batches. A global batch is batch x accumulate x
    world_size. For every world size, all ranks' shares together are the next samples in the order,
    so that a training run resumed with another number of ranks sees the same samples.
    """

    order: Tensor
    """The epoch's (see epoch_order)."""
    start: int
    """Number of the epoch's samples already used."""
    batch: int
    """Samples per rank and micro batch."""
    accumulate: int
    rank: int
    world_size: int

    def __len__(self) -> int:
        global_batch = self.batch * self.accumulate * self.world_size
        return max(0, len(self.order) - self.start) // global_batch * self.accumulate

    def __getitem__(self, number: int) -> Tensor:
        """Return the positions of one micro batch in the data."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        part = self.batch * self.world_size
        first = self.start + number * part
        return self.order[first : first + part][self.rank :: self.world_size]


@dataclass(frozen=True)
class TestingShares:
    """One rank's batches of an evaluation, which covers every sample.

    All ranks have the same number; the last may be smaller or empty, because ZeRO stage 3 gathers
    weights in each batch.
    """

    count: int
    batch: int
    rank: int
    world_size: int

    def __len__(self) -> int:
        return -(-self.count // (self.batch * self.world_size))

    def __getitem__(self, number: int) -> Tensor:
        """Return the positions of one batch in the data."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        part = self.batch * self.world_size
        first, end = number * part + self.rank, min(self.count, (number + 1) * part)
        return torch.arange(min(first, end), end, self.world_size)


AHEAD = 3
"""Number of micro batches that each thread reads ahead."""

Batch = tuple[Tensor, Tensor]
"""Inputs and targets."""


Shares: TypeAlias = TrainingShares | TestingShares
"""One rank's micro batches, as positions in the data; all ranks have the same number."""


@contextmanager
def open_batches(
    samples: Samples, shares: Shares, view: View, device: torch.device, *, workers: int = 0
) -> Iterator[Iterator[Batch]]:
    """Yield the micro batches of one rank on `device`, as `view` transforms them for the model.

    `shares` are the positions in each; `workers` threads read ahead, and 0 reads on request. While
    one batch is processed, the next is copied to the GPU from pinned memory on a separate stream,
    as long as the training does not wait for the GPU in between.
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
            each.record_stream(computing)  # its memory stays in use until the copy is complete
        yield inputs, targets


def _read(samples: Samples, places: Tensor, device: torch.device) -> Batch:
    """Read one micro batch, into pinned memory for a GPU."""
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
    """Yield the micro batches in order, read ahead in threads or on request.

    Threads also decode photos, because Pillow releases the interpreter lock while it decodes and
    scales. On two cores, two threads read 790 JPEG files per second; two processes, which must pass
    on what they read, 630.
    """
    if not workers:
        yield from (_read(samples, shares[number], device) for number in range(len(shares)))
        return

    def begin() -> None:
        if device.type == "cuda":
            torch.cuda.set_device(device)  # else threads use memory of the first GPU

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
        pool.shutdown(wait=False, cancel_futures=True)  # a hung disk must not block the exit
