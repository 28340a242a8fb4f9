"""Every sample of an epoch goes to one rank once, for any number of ranks and any start."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.trainers.ranks import Load


def test_each_epoch_and_seed_has_its_own_order(load: Load) -> None:
    order = load("data.loading").epoch_order
    first = order(1000, seed=3, epoch=1).tolist()
    assert first == order(1000, seed=3, epoch=1).tolist()
    assert sorted(first) == list(range(1000))
    assert first != order(1000, seed=3, epoch=2).tolist() != order(1000, seed=4, epoch=2).tolist()


def test_ranks_share_each_step_without_overlap_or_loss(load: Load) -> None:
    shares = load("data.loading")

    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(
        world_size=st.integers(1, 64),
        batch=st.integers(1, 9),
        accumulate=st.integers(1, 5),
        count=st.integers(0, 4000),
        start=st.integers(0, 4000),
    )
    def holds(world_size: int, batch: int, accumulate: int, count: int, start: int) -> None:
        order = shares.epoch_order(count, seed=1, epoch=0)
        mine = [
            shares.TrainingShares(order, start, batch, accumulate, rank, world_size)
            for rank in range(world_size)
        ]
        size = batch * accumulate * world_size
        steps = max(0, count - start) // size
        assert {len(one) for one in mine} == {steps * accumulate}
        taken = order[start:].tolist()
        for step in range(steps):
            numbers = range(step * accumulate, (step + 1) * accumulate)
            parts = [one[number].tolist() for one in mine for number in numbers]
            assert {len(part) for part in parts} == {batch}
            # A step has the same samples for every number of ranks: the next ones of the epoch.
            wanted = taken[step * size : (step + 1) * size]
            assert sorted(itertools.chain(*parts)) == sorted(wanted)

    holds()


def test_a_test_reads_every_sample_once_in_as_many_batches_on_every_rank(load: Load) -> None:
    shares = load("data.loading")

    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(st.integers(0, 2000), st.integers(1, 70), st.integers(1, 64))
    def holds(count: int, batch: int, world_size: int) -> None:
        mine = [shares.TestingShares(count, batch, rank, world_size) for rank in range(world_size)]
        assert len({len(one) for one in mine}) == 1
        read = [one[number].tolist() for one in mine for number in range(len(one))]
        assert max(map(len, read), default=0) <= batch
        assert sorted(itertools.chain(*read)) == list(range(count))

    holds()
