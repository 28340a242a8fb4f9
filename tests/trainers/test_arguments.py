"""What arguments change: rounding, the times of saves, memory; and what memory held at its end."""

from pathlib import Path

import pytest

from tests.support.trainers.ranks import Load, checkpoints, events, losses, train, train_alone

pytestmark = pytest.mark.usefixtures("needs_torch")

SHORT = ("ddp.py", "--model", "cnn-gn", "--limit", "256", "--epochs", "1", "--eval", "never")
SHOWN = """
import torch
from engine import training
real = training.Training.step
def step(self, batches):
    real(self, batches)
    if self.at.step == 1:
        print("products are", torch.get_float32_matmul_precision(), flush=True)
training.Training.step = step
"""


@pytest.mark.parametrize(("words", "precision"), [((), "highest"), (("--tf32",), "high")])
def test_float32_products_are_rounded_where_that_is_asked_for(
    tmp_path: Path, words: tuple[str, ...], precision: str
) -> None:
    code, said = train_alone(tmp_path, *SHORT, "--steps", "1", *words, before=SHOWN)
    assert code == 0 and f"products are {precision}\n" in said, said


def test_a_training_saves_when_its_minutes_are_over(tmp_path: Path) -> None:
    # Both ranks save after the same steps, which rank 0's clock decides.
    words = (*SHORT, "--batch-size", "8", "--log-every", "4", "--save-minutes")
    train(tmp_path / "often", 2, *words, "1e-6")
    saved = [line["step"] for line in events(tmp_path / "often", "checkpoint")]
    assert {4, 8, 12, 16} <= set(saved)
    train(tmp_path / "seldom", 2, *words, "60", "--limit", "1024")
    assert [line["step"] for line in events(tmp_path / "seldom", "checkpoint")] == [64]


TESTED = """
import os
from engine import training
figures = iter(map(float, os.environ["FIGURES"].split(",")))
training.Training._figure = lambda self: next(figures)
"""


def test_the_checkpoint_of_the_best_test_stays_beside_the_last_two(tmp_path: Path) -> None:
    words = ("ddp.py", "--model", "cnn-gn", "--limit", "64", "--save-every", "1", "--keep-best")
    figures = {"FIGURES": "0.5,0.9,0.7,0.6"}
    code, said = train_alone(tmp_path, *words, "--epochs", "4", before=TESTED, **figures)
    assert code == 0, said
    steps = [int(name.rpartition("-")[2]) for name in checkpoints(tmp_path)]
    assert steps == [4, 7, 8]
    # A training that resumes knows what the best was, and keeps it until another is better.
    for epochs, figure, kept in (("5", "0.8", [4, 9, 10]), ("6", "0.95", [11, 12])):
        more = {"FIGURES": figure}
        code, said = train_alone(
            tmp_path, *words, "--epochs", epochs, "--resume", before=TESTED, **more
        )
        assert code == 0, said
        assert [int(name.rpartition("-")[2]) for name in checkpoints(tmp_path)] == kept


TEXT = ("--model", "gpt2-tiny", "--data", "synthetic:64", "--steps", "4", "--eval", "never",
        "--optimizer", "adamw", "--lr", "0.001", "--schedule", "constant")  # fmt: skip


@pytest.mark.parametrize(("trainer", "ranks"), [("ddp.py", 2), ("fsdp.py", 2)])
def test_a_loss_in_parts_trains_the_same(tmp_path: Path, trainer: str, ranks: int) -> None:
    train(tmp_path / "whole", 1, "ddp.py", *TEXT, "--batch-size", "8")
    parts = ("--batch-size", "2", "--accumulate", "2", "--loss-parts", "3")
    train(tmp_path / "parts", ranks, trainer, *TEXT, *parts)
    assert losses(tmp_path / "parts") == pytest.approx(losses(tmp_path / "whole"), abs=1e-5)


@pytest.mark.parametrize("name", ["gpt2-tiny", "llama-tiny"])
def test_a_loss_in_parts_never_has_all_logits(load: Load, name: str) -> None:
    torch, table = load("torch"), load("models.table")
    modes = load("torch.utils._python_dispatch")
    sizes = []

    class Sizes(modes.TorchDispatchMode):  # type: ignore[misc, name-defined, unused-ignore]
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            found = func(*args, **(kwargs or {}))
            sizes.append(found.numel() if isinstance(found, torch.Tensor) else 0)
            return found

    net = table.build(name, table.Shape("tokens", (64,), 5000), 0)
    words = torch.randint(5000, (4, 65), generator=torch.Generator().manual_seed(0))
    inputs, targets = words[:, :-1], words[:, 1:]
    whole = torch.nn.functional.cross_entropy(net(inputs).flatten(0, 1), targets.flatten())
    net.loss_parts = 8
    with Sizes():
        loss = net(inputs, targets)
        loss.backward()
    assert float(loss.detach()) == pytest.approx(float(whole.detach()), abs=1e-5)
    assert max(sizes) <= max(4 * 64 * 5000 // 8, 5000 * 64)  # or the words themselves


def test_a_model_without_words_has_no_loss_in_parts(tmp_path: Path) -> None:
    code, said = train_alone(tmp_path, *SHORT, "--loss-parts", "4")
    assert code == 2 and "The model cnn-gn does not predict the next word" in said


FULL = """
import torch
from engine import training
def step(self, batches):
    raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
training.Training.step = step
torch.cuda.memory._dump_snapshot = lambda path: open(path, "w").write("blocks")
"""


def test_what_the_memory_held_is_kept_when_it_is_full(tmp_path: Path) -> None:
    code, said = train_alone(tmp_path, *SHORT, before=FULL)
    assert code == 1 and "CUDA out of memory." in said
    assert (tmp_path / "memory" / "rank-0.pickle").read_text() == "blocks"
    assert "memory/rank-0.pickle lists the contents of the GPU's memory: open it at" in said
