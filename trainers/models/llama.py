"""A decoder with the architecture of Llama 2 (Touvron et al. 2023, arXiv:2307.09288).

RMS norm, rotary embeddings, SwiGLU and grouped-query attention. The names of the weights are those
of transformers' LlamaForCausalLM without "model.". With the same weights, the logits of the sizes
125m and 1b differ from those of transformers 5.23 by 2e-6 and 1e-5, where the largest are 2 and 5
(float32 on a CPU).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import scaled_dot_product_attention as attend

from models.attention import TiedEmbedding, fill_normal, loss_in_parts, merge_heads


class Llama(nn.Module):
    """Tokens through decoder layers; each position gives logits of the next token."""

    def __init__(
        self, length: int, vocabulary: int,
        *, dim: int, depth: int, heads: int, groups: int, hidden: int, tied: bool = False,
    ) -> None:  # fmt: skip
        """Build it for `length` tokens per text; no weight depends on that.

        `groups` is the number of key and value heads, each shared by `heads` / `groups` query
        heads, and `hidden` the width between the linear layers of a SwiGLU. `tied` input and output
        embeddings share a matrix.
        """
        super().__init__()
        self.loss_parts = 1
        self.length, self.head_width = length, dim // heads
        self.widths: dict[str, object] = {
            "hidden_size": dim,
            "num_hidden_layers": depth,
            "num_attention_heads": heads,
            "num_key_value_heads": groups,
            "intermediate_size": hidden,
        }
        """Settings by their names in transformers."""
        self.rotary = Rotary()
        embed = TiedEmbedding if tied else nn.Embedding
        self.embed_tokens = embed(vocabulary, dim)
        self.layers = nn.ModuleList(DecoderLayer(dim, heads, groups, hidden) for _ in range(depth))
        self.norm = RmsNorm(dim)
        self.lm_head = None if tied else nn.Linear(dim, vocabulary, bias=False)
        self.init_weights()

    def forward(self, tokens: Tensor, targets: Tensor | None = None) -> Tensor:
        """Return logits (batch, length, vocabulary), or with targets their mean loss."""
        turn = self.rotary.turn(tokens.shape[1], self.head_width, tokens.device)
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, turn)
        x, head = self.norm(x), self.lm_head or self.embed_tokens
        if targets is not None:
            return loss_in_parts(head, x, targets, self.loss_parts)
        logits: Tensor = head(x)
        return logits

    def suit(self, config: Mapping[str, object]) -> None:
        """Adopt the settings of a Hugging Face config.json, or refuse it.

        For example, CodeLlama's rotary base (1,000,000) differs from Llama 2's, and Llama 3.1
        scales the low frequencies. Without these settings, weights of the right shape give wrong
        logits.

        Raises:
            ValueError: this network does not support a setting.
        """
        window = config.get("sliding_window")
        ours = self.widths | {
            "head_dim": self.head_width,
            "hidden_act": "silu",
            "attention_bias": False,
            "mlp_bias": False,
        }
        if (kind := config.get("model_type", "llama")) not in ("llama", "mistral"):
            raise ValueError(f"they belong to the family {kind}, which has different layers")
        for key, own in ours.items():
            if config.get(key) not in (None, own):
                raise ValueError(f"{key} is {config[key]!r} there and {own!r} here")
        if isinstance(window, int) and window < self.length:
            raise ValueError(
                f"their attention sees {window} positions, but texts have {self.length}"
            )
        self.rotary = Rotary.of(config)
        for module in self.modules():
            if isinstance(module, RmsNorm):
                module.eps = float(str(config.get("rms_norm_eps", module.eps)))

    def config(self) -> dict[str, object]:
        """Return the config.json with which transformers computes the same logits."""
        return self.widths | {
            "model_type": "llama",
            "vocab_size": self.embed_tokens.num_embeddings,
            "max_position_embeddings": self.length,
            "rms_norm_eps": self.norm.eps,
            "rope_theta": self.rotary.base,
            "tie_word_embeddings": self.lm_head is None,
        }

    def init_weights(self) -> None:
        """Draw new weights: normal, with the ends of residual paths scaled as in GPT-2.

        The papers do not define it; transformers uses a deviation of 0.02.
        """
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                fill_normal(module, 0.02)
        for layer in self.layers:
            assert isinstance(layer, DecoderLayer)
            for last in (layer.self_attn.o_proj, layer.mlp.down_proj):
                fill_normal(last, 0.02 / math.sqrt(2 * len(self.layers)))


class DecoderLayer(nn.Module):
    """Causal attention and SwiGLU, each after an RMS norm and with a skip connection."""

    def __init__(self, dim: int, heads: int, groups: int, hidden: int) -> None:
        super().__init__()
        self.input_layernorm = RmsNorm(dim)
        self.self_attn = GroupedAttention(dim, heads, groups)
        self.post_attention_layernorm = RmsNorm(dim)
        self.mlp = SwiGlu(dim, hidden)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """Map (batch, length, dim) to the same shape; `turn` is the rotation of each position."""
        x = x + self.self_attn(self.input_layernorm(x), turn)
        mapped: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return mapped


class GroupedAttention(nn.Module):
    """Causal attention; heads share keys and values (Ainslie et al. 2023, arXiv:2305.13245)."""

    def __init__(self, dim: int, heads: int, groups: int) -> None:
        super().__init__()
        self.width = dim // heads
        self.shared_by = heads // groups
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, groups * self.width, bias=False)
        self.v_proj = nn.Linear(dim, groups * self.width, bias=False)
        self.o_proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """Mix each position with earlier positions."""
        queries, keys, values = (
            project(x).unflatten(2, (-1, self.width)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        queries, keys = rotate(queries, turn), rotate(keys, turn)
        if self.shared_by > 1:  # since PyTorch 2.5, scaled_dot_product_attention can do it
            keys = keys.repeat_interleave(self.shared_by, dim=1)
            values = values.repeat_interleave(self.shared_by, dim=1)
        mixed: Tensor = self.o_proj(merge_heads(attend(queries, keys, values, is_causal=True)))
        return mixed


class SwiGlu(nn.Module):
    """Two linear layers, one of which gates the other (Shazeer 2020, arXiv:2002.05202)."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(dim, hidden, bias=False)
        self.up_proj = nn.Linear(dim, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map each position separately."""
        mapped: Tensor = self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))
        return mapped


class RmsNorm(nn.Module):
    """Divides by the root of the mean square (Zhang & Sennrich 2019, arXiv:1910.07467)."""

    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last axis, in float32 whatever the precision of the input."""
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return self.weight * scaled.to(x.dtype)


@dataclass(frozen=True)
class Rotary:
    """The rotary angles of each position (Su et al. 2021, arXiv:2104.09864)."""

    base: float = 10_000.0
    factor: float = 1.0
    """Llama 3.1: wavelengths above `context` / `low` are multiplied by this."""
    low: float = 1.0
    high: float = 4.0
    """Wavelengths below `context` / `high` stay; between, the factor is interpolated."""
    context: float = 8192.0
    """Original context length, before scaling."""

    @classmethod
    def of(cls, config: Mapping[str, object]) -> Rotary:
        """Read a config.json of transformers 5 or earlier; ValueError if it scales differently."""
        found: dict[str, object] = {}
        for name in ("rope_scaling", "rope_parameters"):
            value = config.get(name)
            found |= value if isinstance(value, dict) else {}
        kind = found.get("rope_type", found.get("type", "default"))
        base = float(str(found.get("rope_theta", config.get("rope_theta", cls.base))))
        partial = found.get("partial_rotary_factor", config.get("partial_rotary_factor", 1.0))
        if kind not in ("default", "llama3") or partial != 1.0 or "full_attention" in found:
            raise ValueError(f"they rotate positions in a different way ({kind})")
        if kind == "default":
            return cls(base)
        try:
            factor, low, high, context = (
                float(str(found[name]))
                for name in ("factor", "low_freq_factor", "high_freq_factor",
                             "original_max_position_embeddings")
            )  # fmt: skip
        except KeyError as error:
            raise ValueError(f"their angles are stretched, and {error} is missing") from error
        return cls(base, factor, low, high, context)

    def turn(self, length: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return cosine and sine (length, width) of each position's angles.

        Computed in each forward pass, which is cheap: so nothing must be saved, moved or rounded to
        another precision.
        """
        half = torch.arange(0, width, 2, device=device, dtype=torch.float32) / width
        speeds = self.base**-half
        if self.factor != 1.0:
            waves = self.context * speeds / (2 * math.pi)  # rotations of each pair in the context
            kept = ((waves - self.low) / (self.high - self.low)).clamp(0, 1)
            speeds = speeds * (kept + (1 - kept) / self.factor)
        places = torch.arange(length, device=device, dtype=torch.float32)
        angles = (places[:, None] * speeds).repeat(1, 2)
        return angles.cos(), angles.sin()


def rotate(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate the pairs (i, i + width / 2) of each head by the angles of their position."""
    cosine, sine = turn
    first, second = x.chunk(2, dim=-1)
    return (x * cosine + torch.cat([-second, first], dim=-1) * sine).to(x.dtype)
