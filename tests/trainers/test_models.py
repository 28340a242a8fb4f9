"""The networks: of the published size, alike on every rank, able to learn, or refused."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.trainers.ranks import Load

SIZES = {
    "cnn": 29_034,
    "cnn-gn": 29_034,
    "vit": 105_418,
    "autoencoder": 101_651,
    "vit-s16": 22_050_664,
    "vit-b16": 86_567_656,
    "vit-l16": 304_326_632,
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "resnet18-cifar": 11_173_962,
    "gpt2-124m": 124_439_808,
    "gpt2-355m": 354_823_168,
    "gpt2-774m": 774_030_080,
    "gpt2-1.5b": 1_557_611_200,
    "llama-125m": 124_635_456,
    "llama-1b": 1_100_048_384,
    "llama-7b": 6_738_415_616,
}
"""How many parameters each has as published (torchvision, timm, transformers, the papers)."""
TINY = ("vit-tiny", "resnet-tiny", "gpt2-tiny", "llama-tiny")
SMALL = (*TINY, "cnn", "cnn-gn", "vit", "autoencoder")


@pytest.fixture(autouse=True)
def one_thread(load: Load) -> Iterator[None]:
    """Keep two threads from waiting for each other over networks this small."""
    torch = load("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def batch(load: Load, name: str, count: int = 4) -> tuple[Any, Any]:
    """Return inputs that a model of the table reads, and what it should give for them."""
    table, torch = load("models.table"), load("torch")
    row, generator = table.MODELS[name], torch.Generator().manual_seed(0)
    shape = row.sample
    if row.task == "next-token":
        words = torch.randint(shape.classes, (count, 17), generator=generator)
        return words[:, :-1], words[:, 1:]
    images = torch.randn(count, *shape.input, generator=generator)
    labels = torch.randint(shape.classes, (count,), generator=generator)
    return images, images.tanh() if row.task == "rebuild" else labels


def tiny(load: Load, name: str, seed: int = 0) -> Any:
    table = load("models.table")
    return table.build(name, table.MODELS[name].sample, seed)


@pytest.mark.parametrize("name", SIZES)
def test_a_network_has_the_parameters_that_were_published(load: Load, name: str) -> None:
    with load("torch").device("meta"):
        assert load("models.table").size(tiny(load, name)) == SIZES[name]


def test_every_network_is_checked(load: Load) -> None:
    assert set(load("models.table").MODELS) == {*SIZES, *TINY}


@pytest.mark.parametrize("name", SMALL)
def test_every_rank_builds_the_same_weights(load: Load, name: str) -> None:
    torch = load("torch")
    one, same, other = (tiny(load, name, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert any(not torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("name", SMALL)
def test_a_network_learns_a_batch_by_heart(load: Load, name: str) -> None:
    torch = load("torch")
    functional, net = torch.nn.functional, tiny(load, name)
    inputs, wanted = batch(load, name)
    optimizer = torch.optim.Adam(net.parameters(), 0.005)
    losses = []
    for _ in range(12):
        given = net(inputs)
        if given.shape == inputs.shape:
            loss = functional.mse_loss(given, wanted)
        else:
            loss = functional.cross_entropy(given.flatten(0, -2), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("name", SMALL)
def test_a_network_gives_nearly_the_same_in_bfloat16(load: Load, name: str) -> None:
    torch, net = load("torch"), tiny(load, name).eval()
    inputs, _ = batch(load, name)
    if name == "vit-tiny":  # its last layer starts with zeros
        torch.nn.init.normal_(net.head.weight, std=0.1)
    with torch.no_grad():
        right = net(inputs)
        with torch.autocast("cpu", torch.bfloat16):
            mixed = net(inputs)
        given = net.bfloat16()(inputs.bfloat16() if inputs.is_floating_point() else inputs)
    assert given.dtype == torch.bfloat16
    for other in (mixed, given):
        assert (other.float() - right).abs().max() < 0.05 * right.abs().max()


@pytest.mark.parametrize("name", ["vit-tiny", "resnet-tiny", "cnn", "vit", "autoencoder"])
def test_the_order_of_an_images_bytes_does_not_matter(load: Load, name: str) -> None:
    torch, net = load("torch"), tiny(load, name).eval()
    images, _ = batch(load, name)
    right = net(images)
    last = torch.channels_last
    given = net.to(memory_format=last)(images.contiguous(memory_format=last))
    assert torch.allclose(given, right, atol=1e-4)


@pytest.mark.parametrize("name", ["gpt2-tiny", "llama-tiny"])
def test_a_word_changes_nothing_before_it(load: Load, name: str) -> None:
    torch, net = load("torch"), tiny(load, name).eval()
    words, _ = batch(load, name)
    changed = words.clone()
    changed[:, 10] = (changed[:, 10] + 1) % 256
    before, after = net(words), net(changed)
    assert torch.equal(before[:, :10], after[:, :10])
    assert not torch.allclose(before[:, 10:], after[:, 10:])


def test_rotary_places_see_distances_only(load: Load) -> None:
    llama, torch = load("models.llama"), load("torch")
    turn = llama.Rotary().turn(64, 16, torch.device("cpu"))
    query, key = torch.randn(2, 16, generator=torch.Generator().manual_seed(1)).unbind()
    queries, keys = (llama.rotate(one.expand(64, 16), turn) for one in (query, key))
    products = queries @ keys.T
    for distance in (-7, 0, 5):
        alike = products.diagonal(distance)
        assert torch.allclose(alike, alike[:1].expand_as(alike), atol=1e-4)
    assert not torch.allclose(products[0, 5], products[0, 9], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_network_can_be_compiled(load: Load, name: str) -> None:
    torch, net = load("torch"), tiny(load, name).eval()
    inputs, _ = batch(load, name)
    whole = torch.export.export(net, (inputs,)).module()
    assert torch.allclose(whole(inputs), net(inputs), atol=1e-5)


@pytest.mark.parametrize("name", ["cnn", "cnn-gn", "vit", "autoencoder", "vit-tiny", "resnet-tiny"])
def test_a_small_network_takes_other_images(load: Load, name: str) -> None:
    table, torch = load("models.table"), load("torch")
    height, width = (40, 24) if name == "vit-tiny" else (34, 27)
    net = table.build(name, table.Shape("images", (2, height, width), 7), 0)
    wanted = (2, 2, height, width) if name == "autoencoder" else (2, 7)
    assert net(torch.zeros(2, 2, height, width)).shape == wanted


@pytest.mark.parametrize(
    ("name", "kind", "axes", "complaint"),
    [
        ("cnn", "tokens", (8,), "reads images, but the data are tokens"),
        ("gpt2-tiny", "images", (3, 8, 8), "reads tokens, but the data are images"),
        ("vit-tiny", "images", (3, 32, 31), "can't take images of 32x31: .* multiples of 8"),
    ],
)
def test_data_that_a_network_cannot_read_give_a_sentence(
    load: Load, name: str, kind: str, axes: tuple[int, ...], complaint: str
) -> None:
    table = load("models.table")
    with pytest.raises(load("engine.exits").UsageError, match=complaint):
        table.build(name, table.Shape(kind, axes, 10), 0)
