"""GPT-2 (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners").

With the same weights, the logits of the smallest size differ from those of transformers 5.23 by
2e-6, where the largest are 3 (float32 on a CPU); there, the linear layers are transposed
("Conv1D"), and some have other names. Trains without dropout, as usual for one pass over much text.

The published vocabulary has 50,257 tokens, an odd number that slows some matrix kernels: with
50,304, training is faster (github.com/karpathy/nanoGPT; the additional 47 tokens never occur).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from models.attention import SelfAttention, TiedEmbedding, fill_normal, loss_in_parts


class Gpt2(nn.Module):
    """Tokens and positions through decoder blocks; each position gives logits of the next token."""

    def __init__(self, length: int, vocabulary: int, *, dim: int, depth: int, heads: int) -> None:
        """Build it for texts of at most `length` tokens."""
        super().__init__()
        self.loss_parts = 1
        self.wte = TiedEmbedding(vocabulary, dim)
        self.wpe = nn.Embedding(length, dim)
        self.blocks = nn.ModuleList(DecoderBlock(dim, heads) for _ in range(depth))
        self.ln_f = nn.LayerNorm(dim)
        self.init_weights()

    def forward(self, tokens: Tensor, targets: Tensor | None = None) -> Tensor:
        """Return logits (batch, length, vocabulary), or with targets their mean loss."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.wte(tokens) + self.wpe(places)
        for block in self.blocks:
            x = block(x)
        x = self.ln_f(x)
        if targets is not None:
            return loss_in_parts(self.wte, x, targets, self.loss_parts)
        logits: Tensor = self.wte(x)
        return logits

    def init_weights(self) -> None:
        """Draw new weights, with the deviations of github.com/openai/gpt-2, src/model.py.

        The last layers of the residual paths are scaled by 1/sqrt(their number), as in section 2.3
        of the paper.
        """
        fill_normal(self.wte, 0.02)
        fill_normal(self.wpe, 0.01)
        for block in self.blocks:
            assert isinstance(block, DecoderBlock)
            for layer in (block.attn.qkv, block.mlp.c_fc):
                fill_normal(layer, 0.02)
            for layer in (block.attn.proj, block.mlp.c_proj):
                fill_normal(layer, 0.02 / math.sqrt(2 * len(self.blocks)))


class DecoderBlock(nn.Module):
    """Causal attention and two linear layers, each after a layer norm and with a shortcut."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(dim)
        self.attn = SelfAttention(dim, heads, causal=True)
        self.ln_2 = nn.LayerNorm(dim)
        self.mlp = TanhMlp(dim)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, dim) to the same shape."""
        x = x + self.attn(self.ln_1(x))
        mapped: Tensor = x + self.mlp(self.ln_2(x))
        return mapped


class TanhMlp(nn.Module):
    """Two linear layers with the tanh approximation of GELU between them."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.c_fc = nn.Linear(dim, 4 * dim)
        self.act = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """Map each position separately."""
        mapped: Tensor = self.c_proj(self.act(self.c_fc(x)))
        return mapped
