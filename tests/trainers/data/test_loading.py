"""Batches arrive in their order however they are read, and what goes wrong is a sentence."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.trainers.ranks import Load


@dataclass
class Other:
    """Samples of which the one at place 70 has an error."""

    whole: Any
    error: type[Exception]
    shape = None

    def __len__(self) -> int:
        return len(self.whole)

    def read(self, places: Any) -> Any:
        if 70 in places:
            raise self.error("x.tar is cut short at byte 5. Copy it again.")
        return self.whole.read(places)


def in_order(load: Load, count: int, batch: int = 8) -> Any:
    """Shares that take samples one after the other, from place 0 on."""
    torch, shares = load("torch"), load("data.loading")
    return shares.TrainingShares(torch.arange(count), 0, batch, 1, 0, 1)


def batches(load: Load, samples: Any, shares: Any, workers: int, view: Any = None) -> Any:
    cpu = load("torch").device("cpu")
    view = view or load("data.samples").View()
    return load("data.loading").open_batches(samples, shares, view, cpu, workers=workers)


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
            with batches(load, data.train, mine, workers, data.view()) as reading:
                found += [int(target) for _, targets in reading for target in targets]
        return found

    # 2 ranks with 2 workers each are interrupted after 48 samples, and 3 without workers go on.
    assert sorted(read(0, 48, 2, workers=2)) == sorted(expected[:48])
    assert sorted(read(48, 120, 3, workers=0)) == sorted(expected[48:])
    alone = shares.TrainingShares(order, 0, 4, 1, 0, 1)
    with batches(load, data.train, alone, 3, data.view()) as reading:
        images, targets = zip(*reading, strict=True)
    assert torch.cat(targets).tolist() == expected
    assert images[0].shape == (4, 1, 28, 28) and images[0].dtype == torch.float32


def test_reading_changes_no_random_numbers_of_the_training(load: Load) -> None:
    torch = load("torch")
    samples = load("data.sets").open_data("synthetic:32", shape=load("models.table").DIGITS).train
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    with batches(load, samples, in_order(load, 32), workers=1) as reading:
        assert len(list(reading)) == 4
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["data.samples.BadData", "OSError"])
def test_a_damaged_file_is_named_when_its_batch_is_due(load: Load, workers: int, kind: str) -> None:
    bad = load("data.samples").BadData
    samples = load("data.sets").open_data("synthetic:90", shape=load("models.table").DIGITS).train
    damaged = Other(samples, bad if kind.endswith("BadData") else OSError)
    got = 0
    with (
        batches(load, damaged, in_order(load, 90), workers) as reading,
        pytest.raises(bad, match=r"^x\.tar is cut short at byte 5\. Copy it again\.$"),
    ):
        for _ in reading:
            got += 1
    assert got == 8  # of samples 0 to 63
