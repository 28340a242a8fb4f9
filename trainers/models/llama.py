"""A decoder of the shape of Llama 2 (Touvron et al. 2023, arXiv:2307.09288).

RMS norm, rotary places, SwiGLU, and queries that share keys and values in groups. Names of the
weights are those of transformers' LlamaForCausalLM without its "model.". With the same weights
the logits of the sizes 125m and 1b differ from those of transformers 5.23 by 2e-6 and 1e-5, where
the largest are 2 and 5 (float32 on a CPU).
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
    """Words through decoder layers; each position gives logits of the next word."""

    def __init__(
        self, length: int, vocabulary: int,
        *, dim: int, depth: int, heads: int, groups: int, hidden: int, tied: bool = False,
    ) -> None:  # fmt: skip
        """Build it; nothing in it depends on the length of the texts.

        Args:
            length: of the texts.
            vocabulary: how many words there are.
            dim: width of the vectors.
            depth: how many layers.
            heads: of queries.
            groups: heads of keys and values; `heads` / `groups` heads of queries share one.
            hidden: width between the linear layers.
            tied: whether one matrix serves the words at both ends.
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
        """By the names in transformers."""
        self.rotary = Rotary()
        embed = TiedEmbedding if tied else nn.Embedding
        self.embed_tokens = embed(vocabulary, dim)
        self.layers = nn.ModuleList(DecoderLayer(dim, heads, groups, hidden) for _ in range(depth))
        self.norm = RmsNorm(dim)
        self.lm_head = None if tied else nn.Linear(dim, vocabulary, bias=False)
        self.init_weights()

    def forward(self, tokens: Tensor, targets: Tensor | None = None) -> Tensor:
        """Logits (batch, length, vocabulary); with targets their mean loss, in `loss_parts`."""
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
        """Compute as the model that a config.json of Hugging Face describes, or refuse it.

        CodeLlama, for one, turns by another base than Llama 2 (1,000,000), and Llama 3.1 stretches
        the slow angles. Weights of the right shapes give other logits without that.

        Raises:
            ValueError: they need what this network does not compute.
        """
        window = config.get("sliding_window")
        ours = self.widths | {
            "head_dim": self.head_width,
            "hidden_act": "silu",
            "attention_bias": False,
            "mlp_bias": False,
        }
        if (kind := config.get("model_type", "llama")) not in ("llama", "mistral"):
            raise ValueError(f"they are of the family {kind}, which computes other layers")
        for key, own in ours.items():
            if config.get(key) not in (None, own):
                raise ValueError(f"{key} is {config[key]!r} there and {own!r} here")
        if isinstance(window, int) and window < self.length:
            raise ValueError(f"their attention sees {window} places, and texts have {self.length}")
        self.rotary = Rotary.of(config)
        for module in self.modules():
            if isinstance(module, RmsNorm):
                module.eps = float(str(config.get("rms_norm_eps", module.eps)))

    def config(self) -> dict[str, object]:
        """The config.json with which transformers computes the same."""
        return self.widths | {
            "model_type": "llama",
            "vocab_size": self.embed_tokens.num_embeddings,
            "max_position_embeddings": self.length,
            "rms_norm_eps": self.norm.eps,
            "rope_theta": self.rotary.base,
            "tie_word_embeddings": self.lm_head is None,
        }

    def init_weights(self) -> None:
        """Draw new weights: normal, the ends of residual paths scaled as GPT-2's.

        The papers don't say; transformers takes a deviation of 0.02.
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
        """Build it."""
        super().__init__()
        self.input_layernorm = RmsNorm(dim)
        self.self_attn = GroupedAttention(dim, heads, groups)
        self.post_attention_layernorm = RmsNorm(dim)
        self.mlp = SwiGlu(dim, hidden)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """Map (batch, length, dim) to the same; `turn` is the rotation of each place."""
        x = x + self.self_attn(self.input_layernorm(x), turn)
        mapped: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return mapped


class GroupedAttention(nn.Module):
    """Causal attention; heads share keys and values (Ainslie et al. 2023, arXiv:2305.13245)."""

    def __init__(self, dim: int, heads: int, groups: int) -> None:
        """Build it."""
        super().__init__()
        self.width = dim // heads
        self.shared_by = heads // groups
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, groups * self.width, bias=False)
        self.v_proj = nn.Linear(dim, groups * self.width, bias=False)
        self.o_proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """Mix each place with the places before it."""
        queries, keys, values = (
            project(x).unflatten(2, (-1, self.width)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        queries, keys = rotate(queries, turn), rotate(keys, turn)
        if self.shared_by > 1:  # scaled_dot_product_attention does it itself from PyTorch 2.5 on
            keys = keys.repeat_interleave(self.shared_by, dim=1)
            values = values.repeat_interleave(self.shared_by, dim=1)
        mixed: Tensor = self.o_proj(merge_heads(attend(queries, keys, values, is_causal=True)))
        return mixed


class SwiGlu(nn.Module):
    """Two linear layers, one of which gates the other (Shazeer 2020, arXiv:2002.05202)."""

    def __init__(self, dim: int, hidden: int) -> None:
        """Build it."""
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
        """Build it."""
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
    """By which angles each place is turned (Su et al. 2021, arXiv:2104.09864)."""

    base: float = 10_000.0
    factor: float = 1.0
    """Llama 3.1: waves longer than `context` / `low` are this many times longer."""
    low: float = 1.0
    high: float = 4.0
    """Those shorter than `context` / `high` stay; between, the factor changes step by step."""
    context: float = 8192.0
    """Length of the texts before they were stretched."""

    @classmethod
    def of(cls, config: Mapping[str, object]) -> Rotary:
        """Read a config.json: `rope_parameters` of transformers 5, `rope_scaling` before.

        Raises:
            ValueError: another way to stretch the angles.
        """
        found: dict[str, object] = {}
        for name in ("rope_scaling", "rope_parameters"):
            value = config.get(name)
            found |= value if isinstance(value, dict) else {}
        kind = found.get("rope_type", found.get("type", "default"))
        base = float(str(found.get("rope_theta", config.get("rope_theta", cls.base))))
        partial = found.get("partial_rotary_factor", config.get("partial_rotary_factor", 1.0))
        if kind not in ("default", "llama3") or partial != 1.0 or "full_attention" in found:
            raise ValueError(f"they turn the places in a way of their own ({kind})")
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
        """Cosine and sine (length, width) of each place's angles.

        Computed in each forward pass, which costs little, rather than kept: nothing is to be saved,
        moved or rounded to another precision.
        """
        half = torch.arange(0, width, 2, device=device, dtype=torch.float32) / width
        speeds = self.base**-half
        if self.factor != 1.0:
            waves = self.context * speeds / (2 * math.pi)  # in the context, of each pair
            kept = ((waves - self.low) / (self.high - self.low)).clamp(0, 1)
            speeds = speeds * (kept + (1 - kept) / self.factor)
        places = torch.arange(length, device=device, dtype=torch.float32)
        angles = (places[:, None] * speeds).repeat(1, 2)
        return angles.cos(), angles.sin()


def rotate(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Turn the pairs (i, i + width / 2) of each head by the angles of their place."""
    cosine, sine = turn
    first, second = x.chunk(2, dim=-1)
    return (x * cosine + torch.cat([-second, first], dim=-1) * sine).to(x.dtype)
