"""What `--data` names is opened by what it holds."""

import pytest

from tests.support.places import TRAINERS
from tests.support.trainers.ranks import Load


def test_the_sample_is_mnist(load: Load) -> None:
    torch = load("torch")
    sets = load("data.sets")
    data = sets.open_data(
        str(TRAINERS / "data" / "sample"), shape=load("models.table").DIGITS, limit=100
    )
    assert (len(data.train), len(data.test)) == (100, 1500)
    assert data.shape == data.train.shape == load("models.table").Shape("images", (1, 28, 28), 10)
    images, targets = data.train.read(torch.tensor([99, 0]))
    assert images.dtype == torch.uint8 and images.shape == (2, 1, 28, 28)
    assert targets.dtype == torch.int64
    seen = data.view()(images, torch.tensor([99, 0]))
    mnist = load("data.mnist")
    assert torch.equal(seen, (images / 255 - mnist.MEAN) / mnist.DEVIATION)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("", "--data is empty"),
        ("synthetic:0", "synthetic:0 needs a whole number from 1"),
        ("synthetic:-4", "Write it like synthetic:1000"),
    ],
)
def test_data_that_are_misspelt_are_named(load: Load, where: str, words: str) -> None:
    with pytest.raises(load("engine.exits").UsageError, match=words):
        load("data.sets").open_data(where, shape=load("models.table").DIGITS)


@pytest.mark.parametrize(
    ("kind", "size", "classes"), [("images", (3, 32, 32), 100), ("tokens", (16,), 50)]
)
def test_synthetic_samples_follow_from_their_places(
    load: Load, kind: str, size: tuple[int, ...], classes: int
) -> None:
    torch = load("torch")
    shape = load("models.table").Shape(kind, size, classes)
    data = load("data.sets").open_data("synthetic:3000", shape=shape)
    assert (len(data.train), len(data.test), data.shape) == (3000, 375, shape)
    places = torch.randperm(3000)
    inputs, targets = data.train.read(places)
    again = data.train.read(places[500:510])
    assert torch.equal(again[0], inputs[500:510]) and torch.equal(again[1], targets[500:510])
    assert targets.min() == 0 and targets.max() == classes - 1
    different = 5 * classes if kind == "tokens" else 900
    assert len(inputs.flatten(1).unique(dim=0)) >= different
    if kind == "tokens":
        assert torch.equal(inputs[:, 1:], targets[:, :-1])
        steps = (targets - inputs) % classes
        assert torch.equal(steps, steps[:, :1].expand_as(steps)) and len(steps.unique()) == 5
    else:
        # A class is known by its picture: the difference of two of its samples is one number.
        one, other = inputs[targets == 7][:2].int()
        assert len((one - other).unique()) == 1
