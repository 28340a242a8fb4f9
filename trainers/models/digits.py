"""Small networks for small images; default sizes are for MNIST (28x28 grey, 10 classes)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Cnn(nn.Module):
    """Two convolutions and a linear layer, the network of CSC's MNIST examples (29k parameters).

    Source: github.com/CSCfi/pytorch-ddp-examples, mnist_ddp.py (described, not copied).
    """

    def __init__(
        self, channels: int, height: int, width: int, classes: int, *, groups: bool = False
    ) -> None:
        """Build it for images of at least 4x4, with batch norm or group norm over four channels."""
        super().__init__()

        def norm(count: int) -> nn.Module:
            return nn.GroupNorm(count // 4, count) if groups else nn.BatchNorm2d(count)

        self.features = nn.Sequential(
            nn.Conv2d(channels, 16, kernel_size=5, padding=2),
            norm(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, kernel_size=5, padding=2),
            norm(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Linear((height // 4) * (width // 4) * 32, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of a batch."""
        logits: Tensor = self.head(self.features(images).flatten(1))
        return logits


class VisionTransformer(nn.Module):
    """A transformer over 16 patches, whose sides are a quarter of the image's (105k parameters)."""

    def __init__(self, channels: int, height: int, width: int, classes: int) -> None:
        """Build it for images of at least 16x16; ignores pixels beyond a multiple of 4."""
        super().__init__()
        dim, depth, heads = 64, 3, 4
        patch = (height // 4, width // 4)
        self.patches = nn.Conv2d(channels, dim, kernel_size=patch, stride=patch)
        self.position = nn.Parameter(torch.randn(1, 16, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(
            dim, heads, dim_feedforward=2 * dim, dropout=0.1, activation="gelu",
            batch_first=True, norm_first=True,
        )  # fmt: skip
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of a batch."""
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.position
        logits: Tensor = self.head(self.norm(self.blocks(tokens)).mean(dim=1))
        return logits


class Autoencoder(nn.Module):
    """784-64-3 and back for MNIST, as in PyTorch Lightning's first example.

    Source: lightning.ai/docs/pytorch/stable/starter/introduction.html.
    """

    def __init__(self, channels: int, height: int, width: int, classes: int) -> None:
        """Build it; the classes do not matter, because its target is its input."""
        super().__init__()
        pixels = channels * height * width
        self.encoder = nn.Sequential(nn.Linear(pixels, 64), nn.ReLU(), nn.Linear(64, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, pixels))

    def forward(self, images: Tensor) -> Tensor:
        """Return the reconstructed images of a batch."""
        rebuilt: Tensor = self.decoder(self.encoder(images.flatten(1)))
        return rebuilt.reshape(images.shape)
