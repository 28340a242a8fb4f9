"""Weights to begin with: of a checkpoint in one file or in parts, or of Hugging Face's files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.trainers.ranks import Load, checkpoints, losses, reported, train


@pytest.fixture
def make(load: Load) -> Callable[[int], Any]:
    """Build a small Llama with the first weights of a seed."""
    table = load("models.table")
    return lambda seed: table.build("llama-tiny", table.MODELS["llama-tiny"].sample, seed)


def write(path: Path, tensors: dict[str, Any]) -> None:
    """Write a file of safetensors."""
    pytest.importorskip("safetensors.torch").save_file(tensors, path)


def theirs(net: Any) -> dict[str, Any]:
    """Its weights, by the names that transformers has."""
    own = net.state_dict()
    return {name if "lm_head" in name else f"model.{name}": value for name, value in own.items()}


def same(one: Any, two: Any) -> bool:
    return all((value == two.state_dict()[name]).all() for name, value in one.state_dict().items())


def test_weights_of_hugging_face_are_taken_with_what_lies_beside_them(
    load: Load, make: Callable[[int], Any], tmp_path: Path
) -> None:
    begin_with, torch = load("saving.weights").begin_with, load("torch")
    given, net = make(1), make(0)
    given.lm_head.weight.data = given.lm_head.weight.bfloat16().float()
    weights = theirs(given) | {"model.rotary_emb.inv_freq": torch.ones(3)}
    weights["lm_head.weight"] = weights["lm_head.weight"].bfloat16()
    weights["model.places"] = torch.arange(4)
    names = sorted(weights)
    write(tmp_path / "model-00001-of-00002.safetensors", {n: weights[n] for n in names[:9]})
    write(tmp_path / "model-00002-of-00002.safetensors", {n: weights[n] for n in names[9:]})
    before = (tmp_path / "model-00001-of-00002.safetensors").read_bytes()
    assert not same(given, net)
    begin_with(net, tmp_path)
    assert same(given, net) and net.rotary.base == 10_000
    (tmp_path / "config.json").write_text('{"rope_theta": 1000000, "rms_norm_eps": 1e-6}')
    other = make(0)
    begin_with(other, tmp_path, weights=False)
    assert same(other, make(0)) and (other.rotary.base, other.norm.eps) == (1e6, 1e-6)
    tokens = torch.arange(64)[None]
    assert not torch.allclose(net(tokens), (begin_with(other, tmp_path), other(tokens))[1])
    with torch.no_grad():
        net.norm.weight.zero_()
    assert (tmp_path / "model-00001-of-00002.safetensors").read_bytes() == before


def test_what_cannot_be_begun_with_gives_a_sentence(
    load: Load, make: Callable[[int], Any], tmp_path: Path
) -> None:
    begin_with, usage = load("saving.weights").begin_with, load("engine.exits").UsageError
    torch = load("torch")
    net = make(0)

    def refused(place: Path, words: str) -> None:
        with pytest.raises(usage, match=words):
            begin_with(net, place)

    refused(tmp_path / "none", "There are no weights .*none. Give --init a folder")
    refused(tmp_path, "contains no weights")
    path = tmp_path / "a.safetensors"
    weights = theirs(make(1))
    write(path, {name: weights[name] for name in list(weights)[1:]})
    refused(tmp_path, r"lacks 1 of the weights of this --model, like embed_tokens")
    whole = path.read_bytes()
    for cut in (0, 5, 40, len(whole) - 100):
        path.write_bytes(whole[:cut])
        refused(path, "can't be read")
    write(path, weights | {"model.norm.weight": weights["model.norm.weight"][:9]})
    refused(path, r"norm.weight of .* is \(9,\), and this --model has \(64,\)")
    write(path, weights | {"model.layers.2.mlp.up_proj.weight": torch.ones(9)})
    refused(tmp_path, r"has weights that this --model lacks, like layers\.2\.mlp")
    for config, words in UNLIKE:
        (tmp_path / "config.json").write_text(json.dumps(config))
        refused(tmp_path, f"do not match this --model: {words}")
    (tmp_path / "config.json").unlink()
    path.unlink()
    (tmp_path / "state.pt").write_bytes(b"half")
    refused(tmp_path, "is not a readable checkpoint")


UNLIKE: list[tuple[dict[str, object], str]] = [
    (
        {"rope_scaling": {"type": "dynamic", "factor": 8}},
        "they rotate positions in a different way",
    ),
    (
        {"rope_parameters": {"rope_type": "llama3", "factor": 8.0}},
        "their angles are stretched, and",
    ),
    ({"model_type": "qwen2"}, "they belong to the family qwen2"),
    ({"num_hidden_layers": 3}, "num_hidden_layers is 3 there and 2 here"),
    ({"num_attention_heads": 8}, "num_attention_heads is 8 there"),
    ({"hidden_act": "gelu"}, "hidden_act is 'gelu' there"),
    ({"attention_bias": True}, "attention_bias is True there"),
    ({"sliding_window": 32}, "their attention sees 32 positions, but texts have 64"),
]
STRETCHED = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
             "original_max_position_embeddings": 32}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
         [-0.08113, 0.26422, -0.41819, 0.52608]),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}},
         [-0.18131, 0.33274, -0.4475, 0.51296]),
        ({"rope_parameters": {"rope_theta": 5e5, **STRETCHED}},
         [-0.01468, 0.21803, -0.39736, 0.5329]),
        ({"rope_theta": 5e5, "rope_scaling": STRETCHED}, [-0.01468, 0.21803, -0.39736, 0.5329]),
        ({"model_type": "mistral", "rms_norm_eps": 1e-6, "sliding_window": None},
         [-0.08124, 0.2643, -0.41824, 0.52609]),
    ],
    ids=["llama 2", "llama 3", "llama 3.1", "llama 3.1 of transformers 4", "mistral"],
)  # fmt: skip
def test_the_logits_are_those_of_transformers(
    load: Load,
    make: Callable[[int], Any],
    tmp_path: Path,
    config: dict[str, object],
    expected: list[float],
) -> None:
    """Recorded with transformers 5.23.0 (LlamaForCausalLM, MistralForCausalLM) on the CPU."""
    torch, given, net = load("torch"), make(1), make(0)
    for place, (name, weight) in enumerate(sorted(theirs(given).items())):
        wave = torch.arange(weight.numel(), dtype=torch.float64) * (place + 1) * 0.7311 + place
        value = torch.sin(wave).float().view(weight.shape)
        weight.copy_(1 + 0.1 * value if "norm" in name else 0.25 * value)
    write(tmp_path / "model.safetensors", theirs(given))
    (tmp_path / "config.json").write_text(json.dumps({"rms_norm_eps": 1e-5, **config}))
    load("saving.weights").begin_with(net, tmp_path)
    with torch.no_grad():
        logits = net(torch.arange(64)[None] * 3 % 256)[0, -1, :4]
    assert logits.tolist() == pytest.approx(expected, abs=2e-5)


SHORT = ("--model", "llama-tiny", "--data", "synthetic:64", "--batch-size", "4", "--optimizer",
         "adamw", "--lr", "0.01", "--schedule", "constant", "--eval", "never")  # fmt: skip


@pytest.mark.usefixtures("needs_torch")
def test_a_fine_tuning_begins_with_the_weights_of_another_trainings_parts(tmp_path: Path) -> None:
    first, tuned, other = (tmp_path / name for name in ("first", "tuned", "other"))
    train(first, 2, "fsdp.py", *SHORT, "--steps", "4")
    began = losses(first)[1]
    saved = first / "checkpoints" / checkpoints(first)[-1]
    # From the parts of two ranks, and from the folder of all checkpoints; with another strategy.
    train(tuned, 2, "fsdp.py", *SHORT, "--steps", "2", "--init", str(saved))
    train(other, 1, "ddp.py", *SHORT, "--batch-size", "8", "--steps", "3",
          "--init", str(saved.parent))  # fmt: skip
    assert losses(tuned)[1] < 0.9 * began
    # What it has learnt itself is not lost when it resumes: the losses are those of one training.
    train(tuned, 1, "fsdp.py", *SHORT, "--batch-size", "8", "--steps", "3", "--init", str(saved),
          "--resume")  # fmt: skip
    assert losses(other) == pytest.approx(losses(tuned), abs=1e-4)
    assert [line["first_step"] for line in reported(tuned) if "first_step" in line] == [1, 3]
