"""How stored images become a model's input, for a whole batch at once, on the model's device.

Random crops follow from a seed and from a sample's place in the data. So they are the same however
the samples are dealt to ranks and batches, and after a resume.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

AREA = (0.08, 1.0)
"""Smallest and largest share of a photo that a random crop shows."""
RATIO = (3 / 4, 4 / 3)
"""Width over height of a random crop.

Source of both: "Going Deeper with Convolutions" (2015), section 6; torchvision's
RandomResizedCrop has them too."""
CENTRE = 7 / 8
"""Share of a side that a test sees: 224 of 256 pixels."""


@dataclass(frozen=True)
class View:
    """What a model sees of stored images. Tokens have no mean, and are passed on as they are."""

    mean: tuple[float, ...] = ()
    """Of each channel, on a scale of 0 to 1."""
    deviation: tuple[float, ...] = ()
    dtype: torch.dtype = torch.float32
    """The model's."""
    side: int | None = None
    """Photos are cropped to side x side pixels; None: images stay as they are stored."""
    seed: int | None = None
    """Of random crops and flips (see loading.epoch_seed); None: the centre, as tests need it."""

    def __call__(self, inputs: Tensor, places: Tensor) -> Tensor:
        """Return the input for these samples, which come from these places in the data."""
        if not self.mean:
            return inputs
        images = inputs.float()
        if self.side is not None and len(images):
            if self.seed is None:
                images = centre(images, self.side)
            else:
                images = random_crops(images, self.side, draws(self.seed, places))
        mean = _channels(self.mean, inputs.device)
        images = (images / 255 - mean) / _channels(self.deviation, inputs.device)
        return images.to(self.dtype, memory_format=torch.contiguous_format)


@cache
def _channels(numbers: tuple[float, ...], device: torch.device) -> Tensor:
    """One number a channel, sent to a GPU once: a copy from pageable memory waits for the GPU."""
    return torch.tensor(numbers, device=device).view(1, -1, 1, 1)


def centre(images: Tensor, side: int) -> Tensor:
    """The middle of square images, at side x side pixels."""
    stored = images.shape[-1]
    seen = min(stored, max(side, round(stored * CENTRE)))
    start = (stored - seen) // 2
    images = images[..., start : start + seen, start : start + seen]
    if seen == side:
        return images
    scaled: Tensor = functional.interpolate(images, (side, side), mode="bilinear", antialias=True)
    return scaled


def random_crops(images: Tensor, side: int, random: Tensor) -> Tensor:
    """A random part of each image, scaled to side x side pixels, half of them mirrored.

    The pixels between are interpolated without smoothing, so pack photos no larger than twice
    what the model sees.

    Args:
        images: floats (count, channels, height, width).
        side: of the result.
        random: (count, 5) numbers from 0 to 1.
    """
    area = AREA[0] + (AREA[1] - AREA[0]) * random[:, 0]
    low, high = torch.tensor(RATIO).log().tolist()
    ratio = torch.exp(low + (high - low) * random[:, 1])
    width = (area * ratio).sqrt().clamp(max=1)
    height = (area / ratio).sqrt().clamp(max=1)
    mirrored = torch.where(random[:, 2] < 0.5, -1.0, 1.0)
    # On affine_grid's scale the image reaches from -1 to 1.
    across = (1 - width) * (2 * random[:, 3] - 1)
    down = (1 - height) * (2 * random[:, 4] - 1)
    none = torch.zeros_like(width)
    rows = [width * mirrored, none, across, none, height, down]
    theta = torch.stack(rows, dim=1).view(-1, 2, 3).to(images.dtype)
    if images.is_cuda:  # a copy from pageable memory would wait for the GPU
        theta = theta.pin_memory().to(images.device, non_blocking=True)
    size = [len(images), images.shape[1], side, side]
    grid = functional.affine_grid(theta, size, align_corners=False)
    crops: Tensor = functional.grid_sample(images, grid, padding_mode="border", align_corners=False)
    return crops


def draws(seed: int, places: Tensor) -> Tensor:
    """Five numbers from 0 to 1 for each place: the same for a place wherever it is asked for.

    SplitMix64's mixing of a counter; torch's generators would draw by the place in a batch.
    Source: "Fast splittable pseudorandom number generators" (2014), figure 17.
    """
    numbers = places.unsqueeze(1) * 5 + torch.arange(1, 6) + seed * 0x5851F42D4C957F2D % 2**62
    mixed = numbers * _signed(0x9E3779B97F4A7C15)
    for right, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ _right(mixed, right)) * _signed(factor)
    return _right(mixed ^ _right(mixed, 31), 11).double().mul(2**-53).float()


def _right(numbers: Tensor, bits: int) -> Tensor:
    """Shift right as if they had no sign."""
    shifted: Tensor = (numbers >> bits) & (2 ** (64 - bits) - 1)
    return shifted


def _signed(number: int) -> int:
    """The int64 with the same bits."""
    return number - 2**64
