"""Three small networks for 28x28 grey images of digits, and the table that names them.

Each maps a float tensor (batch, 1, 28, 28) to logits (batch, 10).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from data.shares import seed_of

Norm = Callable[[int], nn.Module]
"""Makes a normalisation layer for a number of channels."""


class Cnn(nn.Module):
    """Two convolutions and a linear layer, the network of CSC's MNIST examples (29k parameters).

    Source: github.com/CSCfi/pytorch-ddp-examples, mnist_ddp.py (described, not copied).
    """

    def __init__(self, norm: Norm) -> None:
        """Build it with this normalisation after each convolution."""
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=5, padding=2),
            norm(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, kernel_size=5, padding=2),
            norm(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Linear(7 * 7 * 32, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of a batch."""
        logits: Tensor = self.head(self.features(images).flatten(1))
        return logits


class VisionTransformer(nn.Module):
    """A transformer over the 16 patches of 7x7 pixels (dim 64, 4 heads; 105k parameters)."""

    def __init__(self, dim: int = 64, depth: int = 3, heads: int = 4, patch: int = 7) -> None:
        """Build it; `dim` has to be a multiple of `heads` and 28 of `patch`."""
        super().__init__()
        self.patches = nn.Conv2d(1, dim, kernel_size=patch, stride=patch)
        self.position = nn.Parameter(torch.randn(1, (28 // patch) ** 2, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(
            dim, heads, dim_feedforward=2 * dim, dropout=0.1, activation="gelu",
            batch_first=True, norm_first=True,
        )  # fmt: skip
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of a batch."""
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.position
        logits: Tensor = self.head(self.norm(self.blocks(tokens)).mean(dim=1))
        return logits


def _groups_of_four(channels: int) -> nn.Module:
    return nn.GroupNorm(channels // 4, channels)


MODELS: dict[str, Callable[[], nn.Module]] = {
    # Batch norm sees a rank's own images only: its results depend on the world size.
    "cnn": lambda: Cnn(nn.BatchNorm2d),
    # Group norm looks at one image at a time: any world size gives the same training.
    "cnn-gn": lambda: Cnn(_groups_of_four),
    "vit": VisionTransformer,
}


def build(name: str, seed: int) -> nn.Module:
    """Build a model of MODELS with the same first weights on every rank."""
    torch.manual_seed(seed_of(seed))
    return MODELS[name]()


def size(model: nn.Module) -> int:
    """How many parameters a model has; ZeRO stage 3 keeps their full size beside its parts."""
    return sum(getattr(weight, "ds_numel", weight.numel()) for weight in model.parameters())
