"""An autoencoder: an image through three numbers and back."""

from __future__ import annotations

from torch import Tensor, nn


class Autoencoder(nn.Module):
    """784-64-3 and back for MNIST, the network of PyTorch Lightning's first example.

    Source: lightning.ai/docs/pytorch/stable/starter/introduction.html.
    """

    def __init__(self, channels: int, height: int, width: int, classes: int) -> None:
        """Build it; the classes don't matter: what it should give is its input."""
        super().__init__()
        pixels = channels * height * width
        self.encoder = nn.Sequential(nn.Linear(pixels, 64), nn.ReLU(), nn.Linear(64, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, pixels))

    def forward(self, images: Tensor) -> Tensor:
        """Images like those of the batch."""
        rebuilt: Tensor = self.decoder(self.encoder(images.flatten(1)))
        return rebuilt.reshape(images.shape)
