"""The Vision Transformer (Dosovitskiy et al. 2020, arXiv:2010.11929).

The names of the weights are those of timm's vit_*_patch16_224, whose files can be loaded: with the
same weights, the logits of all three sizes equal those of timm 1.0.31 (float32 on a CPU, to the
bit).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from models.attention import SelfAttention


class Vit(nn.Module):
    """Patches and a class token through encoder blocks; the class token gives the logits."""

    def __init__(
        self, channels: int, height: int, width: int, classes: int,
        *, dim: int, depth: int, heads: int, patch: int = 16,
    ) -> None:  # fmt: skip
        """Build it for patches of `patch` x `patch` pixels; ValueError if some would be cut."""
        super().__init__()
        if height % patch or width % patch:
            raise ValueError(f"height and width must be multiples of {patch} pixels")
        patches = height * width // patch**2
        self.patch_embed = PatchEmbedding(channels, dim, patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.empty(1, 1 + patches, dim))
        self.blocks = nn.Sequential(*(EncoderBlock(dim, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, classes)
        self.init_weights()

    def forward(self, images: Tensor) -> Tensor:
        """Logits of a batch."""
        patches = self.patch_embed(images)
        first = self.cls_token.expand(len(images), -1, -1)
        tokens = torch.cat([first, patches], dim=1) + self.pos_embed
        logits: Tensor = self.head(self.norm(self.blocks(tokens)[:, 0]))
        return logits

    def init_weights(self) -> None:
        """Draw new weights as in the authors' code.

        Source: github.com/google-research/vision_transformer, vit_jax/models_vit.py.
        """
        nn.init.normal_(self.pos_embed, std=0.02)
        nn.init.zeros_(self.cls_token)
        conv = self.patch_embed.proj
        fan_in = conv.weight[0].numel()
        # Flax's lecun_normal: truncated at two deviations, then scaled to variance 1 / fan_in.
        deviation = math.sqrt(1 / fan_in) / 0.87962566103423978
        nn.init.trunc_normal_(conv.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
        if conv.bias is not None:
            nn.init.zeros_(conv.bias)
        for block in self.blocks:
            assert isinstance(block, EncoderBlock)
            block.init_weights()
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)


class PatchEmbedding(nn.Module):
    """Each patch of the image as one token."""

    def __init__(self, channels: int, dim: int, patch: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(channels, dim, kernel_size=patch, stride=patch)

    def forward(self, images: Tensor) -> Tensor:
        """Return tokens (batch, patches, dim), row by row."""
        embedded: Tensor = self.proj(images)
        return embedded.flatten(2).transpose(1, 2)


class EncoderBlock(nn.Module):
    """Attention and two linear layers, each after a layer norm and with a shortcut."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = SelfAttention(dim, heads)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = Mlp(dim)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, dim) to the same shape."""
        x = x + self.attn(self.norm1(x))
        mapped: Tensor = x + self.mlp(self.norm2(x))
        return mapped

    def init_weights(self) -> None:
        """Draw the weights as the authors do, with queries, keys and values as three matrices."""
        dim = self.attn.proj.in_features
        bound = math.sqrt(6 / (dim + dim))
        nn.init.uniform_(self.attn.qkv.weight, -bound, bound)
        nn.init.xavier_uniform_(self.attn.proj.weight)
        nn.init.zeros_(self.attn.qkv.bias)
        nn.init.zeros_(self.attn.proj.bias)
        for layer in (self.mlp.fc1, self.mlp.fc2):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.normal_(layer.bias, std=1e-6)


class Mlp(nn.Module):
    """Two linear layers with a GELU between them."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(4 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """Map each token separately."""
        mapped: Tensor = self.fc2(self.act(self.fc1(x)))
        return mapped
