"""The networks: built alike on every rank, for data of other shapes too, or refused."""

import pytest

from tests.support.trainers.ranks import Load

SIZES = {"cnn": 29_034, "cnn-gn": 29_034, "vit": 105_418}
"""How many parameters each network has for the data it was made for."""


@pytest.mark.parametrize("name", SIZES)
def test_a_network_has_the_parameters_that_it_should(load: Load, name: str) -> None:
    table, torch = load("models.table"), load("torch")
    with torch.device("meta"):
        assert table.size(table.build(name, table.MODELS[name].sample, 0)) == SIZES[name]


def test_every_rank_builds_the_same_weights(load: Load) -> None:
    table, torch = load("models.table"), load("torch")
    one, same, other = (table.build("vit", table.DIGITS, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["position"], other["position"])


@pytest.mark.parametrize("name", ["cnn", "cnn-gn", "vit"])
def test_a_small_network_takes_other_images(load: Load, name: str) -> None:
    table, torch = load("models.table"), load("torch")
    net = table.build(name, table.Shape("images", (3, 34, 34), 7), 0)
    assert net(torch.zeros(2, 3, 34, 34)).shape == (2, 7)


@pytest.mark.parametrize(
    ("kind", "sides", "complaint"),
    [("tokens", (8,), "reads images, but the data are tokens"), ("images", (3, 8, 9), "8x9")],
)
def test_data_that_a_network_cannot_read_give_a_sentence(
    load: Load, kind: str, sides: tuple[int, ...], complaint: str
) -> None:
    table = load("models.table")
    with pytest.raises(load("engine.reporting").UsageError, match=complaint):
        table.build("cnn", table.Shape(kind, sides, 10), 0)
