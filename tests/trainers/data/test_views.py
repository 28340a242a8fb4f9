"""What a model sees of a photo follows from its place and the seed alone."""

import pytest

from tests.support.trainers.ranks import Load


def test_a_random_crop_is_the_same_wherever_a_sample_is_read(load: Load) -> None:
    torch, views = load("torch"), load("data.samples")
    stored = torch.randint(0, 256, (12, 3, 20, 20), dtype=torch.uint8)
    mean = (0.5, 0.5, 0.5)
    view = views.View(mean, mean, torch.float32, side=16, seed=7)
    places = torch.arange(100, 112)
    seen = view(stored, places)
    assert seen.shape == (12, 3, 16, 16) and seen.is_contiguous()
    some = torch.tensor([11, 3, 5])
    assert torch.allclose(view(stored[some], places[some]), seen[some], atol=1e-6)
    other = views.View(mean, mean, torch.float32, side=16, seed=8)
    assert not torch.allclose(other(stored, places), seen, atol=0.1)
    assert view(stored[:0], places[:0]).shape[0] == 0


def test_the_draws_are_even_and_independent(load: Load) -> None:
    torch = load("torch")
    drawn = load("data.samples").draws(3, torch.arange(20_000)).double()
    assert drawn.min() >= 0 and drawn.max() <= 1
    assert (drawn.mean(0) - 0.5).abs().max() < 0.01
    assert (drawn.T.corrcoef() - torch.eye(5)).abs().max() < 0.03
    neighbours = torch.stack([drawn[:-1, 0], drawn[1:, 0]]).corrcoef()
    assert neighbours[0, 1].abs() < 0.03


def test_a_crop_shows_the_part_that_was_drawn(load: Load) -> None:
    torch, views = load("torch"), load("data.samples")
    # The value of a pixel is its column: a crop's first and last column say what part it shows.
    columns = torch.arange(64.0).expand(1, 1, 64, 64).repeat(500, 1, 1, 1)
    random = views.draws(1, torch.arange(500))
    crops = views.random_crops(columns, 32, random)
    left, right = crops[:, 0, 16, 0], crops[:, 0, 16, -1]
    mirrored = left > right
    assert 180 < mirrored.sum() < 320
    assert torch.equal(mirrored, random[:, 2] < 0.5)
    assert crops.min() >= 0 and crops.max() <= 63
    shares = ((left - right).abs() + 1) / 64
    assert shares.min() > 0.2 and shares.max() <= 1.02  # of a side: the root of 8 to 100 %
    # All of it, not mirrored, is the image.
    whole = torch.tensor([[1.0, 0.5, 0.9, 0.5, 0.5]])
    assert torch.allclose(views.random_crops(columns[:1], 64, whole), columns[:1], atol=1e-3)


def test_a_test_sees_the_centre(load: Load) -> None:
    torch, centre = load("torch"), load("data.samples").centre
    images = torch.rand(2, 3, 32, 32)
    assert torch.equal(centre(images, 28), images[:, :, 2:30, 2:30])  # 7 of 8 pixels, as they are
    assert torch.equal(centre(images, 32), images)
    assert centre(images, 8).shape == centre(images[:, :, :4, :4], 8).shape == (2, 3, 8, 8)


def test_what_each_batch_needs_is_sent_to_the_device_once(load: Load) -> None:
    torch, views = load("torch"), load("data.samples")
    device = torch.device("cpu")
    assert views._channels((0.5,), device) is views._channels((0.5,), device)
    view = views.View((0.5, 0.5, 0.5), (0.2, 0.2, 0.2), side=8, seed=1)
    images, places = torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8), torch.arange(4)
    assert torch.equal(view(images, places), view(images, places))


def test_no_batch_waits_for_the_gpu(load: Load) -> None:
    torch = load("torch")
    if not torch.cuda.is_available():
        pytest.skip("counts what waits for a GPU")
    view = load("data.samples").View((0.5, 0.5, 0.5), (0.2, 0.2, 0.2), side=8, seed=1)
    images = torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8, device="cuda")
    view(images, torch.arange(4))
    torch.cuda.set_sync_debug_mode("error")
    try:
        view(images, torch.arange(4))
    finally:
        torch.cuda.set_sync_debug_mode("default")
