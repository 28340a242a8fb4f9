"""Steps that are skipped on the device, blocks that are computed again."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from tests.support.trainers.ranks import Load, train


def trained(load: Load, make: Any, bad: tuple[int, ...]) -> tuple[Any, Any]:
    """Five steps of a small model; those in `bad` are to be skipped. Returns its weights."""
    torch, optimizers = load("torch"), load("strategies.pytorch")
    torch.manual_seed(0)
    net = torch.nn.Linear(5, 3)
    optimizer = make(net.parameters())
    good = 0
    for number in range(5):
        net(torch.full((2, 5), 0.1 * (1 + good))).square().sum().backward()
        if number in bad:
            for weight in net.parameters():
                weight.grad.fill_(torch.nan)
        if optimizer.param_groups[0]["fused"]:
            optimizers.step(optimizer, torch.tensor(number not in bad))
        elif number not in bad:
            optimizer.step()
        optimizer.zero_grad()
        good += number not in bad
    return torch.cat([weight.detach().flatten() for weight in net.parameters()]), optimizer


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
def test_a_skipped_step_changes_neither_weights_nor_state(load: Load, name: str) -> None:
    torch, optimizers = load("torch"), load("strategies.pytorch")
    args = Namespace(optimizer=name, lr=0.1, weight_decay=0.01, decay="all", betas=(0.9, 0.999))

    def ours(weights: Any) -> Any:
        return optimizers.make(args, weights)

    def plain(weights: Any) -> Any:
        if name == "sgd":
            return torch.optim.SGD(weights, 0.1, momentum=0.9, weight_decay=0.01)
        kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name]
        return kind(weights, 0.1, weight_decay=0.01)

    bad = (0, 2)  # the first of all, when there is no state yet
    weights, optimizer = trained(load, ours, bad)
    expected, _ = trained(load, plain, bad)
    assert all(group["fused"] for group in optimizer.param_groups)
    assert torch.allclose(weights, expected, rtol=0, atol=1e-6)


NAMED = """
import torch
def compile(self, **options):
    with open("compiled", "w") as file:
        file.write(type(self).__name__)
torch.nn.Module.compile = compile
"""
"""Writes which module is compiled, and compiles nothing."""


def test_blocks_are_computed_again_with_the_same_gradients(load: Load) -> None:
    torch, blocks, table = load("torch"), load("strategies.pytorch"), load("models.table")
    gradients, passes = [], []
    for recompute in ("", "all", "selective"):
        net = table.build("gpt2-tiny", table.MODELS["gpt2-tiny"].sample, seed=0)
        names = list(net.state_dict())
        if recompute:
            blocks.recompute(net, "gpt2-tiny", recompute)
        assert list(net.state_dict()) == names
        calls: list[int] = []
        first = blocks.blocks(net, "gpt2-tiny")[0]
        next(first.children()).register_forward_hook(lambda *given, calls=calls: calls.append(1))
        net(torch.arange(64)[None]).square().mean().backward()
        gradients.append([weight.grad for weight in net.parameters()])
        passes.append(len(calls))
    assert passes == [1, 2, 2]
    assert all(torch.equal(*pair) for pair in zip(gradients[0], gradients[1], strict=True))
    assert all(torch.equal(*pair) for pair in zip(gradients[0], gradients[2], strict=True))
    with pytest.raises(load("engine.exits").UsageError, match="cnn has no blocks"):
        blocks.recompute(torch.nn.Linear(1, 1), "cnn", "all")


def test_the_loss_is_compiled_with_the_model(load: Load) -> None:
    """Apart, the loss of a text's logits took 40 % of a step on an H100."""
    torch, pytorch, table = load("torch"), load("strategies.pytorch"), load("models.table")
    net = table.build("gpt2-tiny", table.MODELS["gpt2-tiny"].sample, seed=0)
    passes = pytorch.WithLoss(net, load("engine.training").TASKS["next-token"].loss, 1)
    tokens = torch.arange(65)[None]
    expected = passes(tokens[:, :-1], tokens[:, 1:])
    expected.backward()
    gradients = [weight.grad for weight in net.parameters()]
    net.zero_grad()
    graphs: list[Any] = []

    def backend(graph: Any, example: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    passes.compile(backend=backend)
    loss = passes(tokens[:, :-1], tokens[:, 1:])
    loss.backward()
    [graph] = graphs
    assert [node for node in graph.graph.nodes if "cross_entropy" in str(node.target)]
    assert torch.equal(loss, expected)
    pairs = zip(net.parameters(), gradients, strict=True)
    assert all(torch.allclose(weight.grad, gradient) for weight, gradient in pairs)


def test_a_strategy_compiles_the_loss_too(tmp_path: Path) -> None:
    words = ("--model", "gpt2-tiny", "--data", "synthetic:64", "--steps", "1", "--eval", "never")
    train(tmp_path, 1, "ddp.py", *words, "--compile", before=NAMED)
    assert (tmp_path / "compiled").read_text() == "WithLoss"


def test_logits_of_padded_rows_are_those_of_the_weight(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch, attention = load("torch"), load("models.attention")
    logits, linear, rows = attention.logits, torch.nn.functional.linear, list[int]()

    def counted(x: Any, weight: Any) -> Any:
        rows.append(len(weight))
        return linear(x, weight)

    monkeypatch.setattr(attention.functional, "linear", counted)
    torch.manual_seed(0)
    x, weight = torch.randn(2, 3, 8), torch.randn(57, 8, requires_grad=True)
    plain = logits(x, weight, 1)
    plain.square().sum().backward()
    expected, weight.grad = weight.grad, None
    padded = logits(x, weight, 64)
    padded.square().sum().backward()
    assert rows == [57, 64]
    assert padded.shape == plain.shape
    assert torch.allclose(padded, plain, atol=1e-5)
    assert torch.allclose(weight.grad, expected, atol=1e-4)


def test_only_matrices_decay_where_that_is_asked_for(load: Load) -> None:
    torch, optimizers = load("torch"), load("strategies.pytorch")
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.LayerNorm(3))
    args = Namespace(optimizer="adamw", lr=0.1, weight_decay=0.3, decay="matrices",
                     betas=(0.8, 0.95))  # fmt: skip
    matrices, others = optimizers.make(args, net.parameters()).param_groups
    assert [len(weight.shape) for weight in matrices["params"]] == [2]
    assert [len(weight.shape) for weight in others["params"]] == [1, 1, 1]
    assert (matrices["weight_decay"], others["weight_decay"]) == (0.3, 0.0)
    assert matrices["betas"] == others["betas"] == (0.8, 0.95)


@pytest.mark.parametrize("schedule", ["cosine", "constant"])
def test_the_rate_rises_over_the_steps_that_the_arguments_say(load: Load, schedule: str) -> None:
    rate = load("strategies.pytorch").rate
    args = Namespace(schedule=schedule, lr=0.1, warmup_steps=4)
    rates = [rate(args, 0.0, step) for step in range(6)]
    assert rates == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.1, 0.1])
    assert rate(Namespace(schedule=schedule, lr=0.1, warmup_steps=None), 0.5, 50) == pytest.approx(
        0.05 if schedule == "cosine" else 0.1
    )
