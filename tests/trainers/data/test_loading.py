"""Batches arrive in their order however they are read, and what goes wrong is a sentence."""

import os
import signal
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.trainers.ranks import Load


@dataclass
class Other:
    """Samples for processes; with an error the one at place 70 has it, and the one at 99 kills."""

    whole: Any
    error: type[Exception] | None = None
    in_threads: bool = False
    shape = None

    def __len__(self) -> int:
        return len(self.whole)

    def read(self, places: Any) -> Any:
        if self.error and 99 in places:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.error and 70 in places:
            raise self.error("x.tar is cut short at byte 5. Copy it again.")
        return self.whole.read(places)


def in_order(load: Load, count: int, batch: int = 8) -> Any:
    """Shares that take samples one after the other, from place 0 on."""
    torch, shares = load("torch"), load("data.loading")
    return shares.TrainingShares(torch.arange(count), 0, batch, 1, 0, 1)


def batches(load: Load, samples: Any, shares: Any, workers: int, view: Any = None) -> Any:
    cpu = load("torch").device("cpu")
    view = view or load("data.samples").View()
    return load("data.loading").Batches(samples, shares, view, cpu, workers=workers)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_any_number_of_ranks_and_workers_continues_at_the_next_sample(load: Load) -> None:
    torch, shares = load("torch"), load("data.loading")
    data = load("data.sets").open_data(
        "synthetic:200", shape=load("models.table").DIGITS, limit=120
    )
    order = shares.epoch_order(len(data.train), seed=5, epoch=2)
    expected = data.train.read(order[:120])[1].tolist()

    def read(start: int, until: int, world_size: int, workers: int) -> list[int]:
        found = []
        for rank in range(world_size):
            mine = shares.TrainingShares(order[:until], start, 2, 2, rank, world_size)
            samples = data.train if rank else Other(data.train)  # in threads, and in processes
            with batches(load, samples, mine, workers, data.view()) as reading:
                found += [int(target) for _, targets in reading for target in targets]
        return found

    # 2 ranks with 2 workers each are interrupted after 48 samples, and 3 without workers go on.
    assert sorted(read(0, 48, 2, workers=2)) == sorted(expected[:48])
    assert sorted(read(48, 120, 3, workers=0)) == sorted(expected[48:])
    alone = shares.TrainingShares(order, 0, 4, 1, 0, 1)
    for samples in (data.train, Other(data.train)):
        with batches(load, samples, alone, 3, data.view()) as reading:
            images, targets = zip(*reading, strict=True)
        assert torch.cat(targets).tolist() == expected
    assert images[0].shape == (4, 1, 28, 28) and images[0].dtype == torch.float32


def test_reading_changes_no_random_numbers_of_the_training(load: Load) -> None:
    torch = load("torch")
    samples = Other(
        load("data.sets").open_data("synthetic:32", shape=load("models.table").DIGITS).train
    )
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    with batches(load, samples, in_order(load, 32), workers=1) as reading:
        assert len(list(reading)) == 4
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(("workers", "threads"), [(0, False), (2, False), (2, True)])
@pytest.mark.parametrize("kind", ["data.samples.BadData", "OSError"])
def test_a_damaged_file_is_named_when_its_batch_is_due(
    load: Load, workers: int, threads: bool, kind: str
) -> None:
    bad = load("data.samples").BadData
    samples = load("data.sets").open_data("synthetic:90", shape=load("models.table").DIGITS).train
    damaged = Other(samples, bad if kind.endswith("BadData") else OSError, threads)
    got = 0
    with (
        batches(load, damaged, in_order(load, 90), workers) as reading,
        pytest.raises(bad, match=r"^x\.tar is cut short at byte 5\. Copy it again\.$"),
    ):
        for _ in reading:
            got += 1
    assert got == 8  # of samples 0 to 63


@pytest.mark.slow
def test_a_worker_that_dies_is_a_sentence_and_raised_nowhere_else(load: Load) -> None:
    samples = load("data.sets").open_data("synthetic:200", shape=load("models.table").DIGITS).train
    shares = in_order(load, 200)
    handler = signal.getsignal(signal.SIGCHLD)
    with (  # sample 70's error is not one of the data: it keeps its traceback
        batches(load, Other(samples, ValueError), shares, workers=1) as reading,
        pytest.raises(ValueError, match="Traceback"),
    ):
        list(reading)
    from_80_on = load("data.samples").Range(Other(samples, ValueError), 80, 200)
    with (
        batches(load, from_80_on, in_order(load, 120), workers=1) as reading,
        pytest.raises(load("data.loading").WorkerDied, match="has died, perhaps for want of"),
    ):
        for _ in reading:
            assert signal.getsignal(signal.SIGCHLD) is handler


def test_workers_read_on_when_every_process_of_the_job_is_signalled(load: Load) -> None:
    import multiprocessing

    samples = Other(
        load("data.sets").open_data("synthetic:400", shape=load("models.table").DIGITS).train
    )
    with batches(load, samples, in_order(load, 400), workers=2) as reading:
        stream = iter(reading)
        next(stream)
        workers = multiprocessing.active_children()  # the second may not have begun to read
        assert len(workers) == 2
        for worker in workers:
            for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
                assert worker.pid
                os.kill(worker.pid, number)
        assert len(list(stream)) == 49
        reading.close()
        assert not any(worker.is_alive() for worker in workers)
