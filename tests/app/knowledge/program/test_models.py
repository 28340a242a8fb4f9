"""How many parameters a name says, and what their training takes of a GPU."""

import pytest

from lumitui.app.knowledge.program.models import parameters, states_gib


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("meta-llama/Llama-2-7b-hf", 7),
        ("/scratch/project_462000001/models/Qwen2.5-0.5B", 0.5),
        ("mistralai/Mixtral-8x7B-v0.1", 56),
        ("EleutherAI/pythia-410m", 0.41),
        ("gpt2-xl", 1.558),
    ],
)
def test_a_name_says_its_parameters(name: str, billions: float) -> None:
    assert parameters(name) == pytest.approx(billions)


@pytest.mark.parametrize("name", ["my-model", "resnet50", "data-2024b1", "checkpoint-7", "7bit"])
def test_a_name_without_a_size_says_nothing(name: str) -> None:
    assert parameters(name) is None


def test_each_stage_of_zero_splits_more() -> None:
    # 1 billion parameters on 4 ranks: 16, 4 + 12/4, 2 + 14/4 and 16/4 bytes each
    gib = 1e9 / 2**30
    found = [states_gib(1, stage, 4) for stage in range(4)]
    assert found == pytest.approx([16 * gib, 7 * gib, 5.5 * gib, 4 * gib])


def test_an_optimizer_on_the_cpu_takes_nothing_of_the_gpu() -> None:
    assert states_gib(1, 0, 1, optimizer_on_cpu=True) == pytest.approx(4e9 / 2**30)


def test_a_model_in_16_bits_has_no_copy_in_32() -> None:
    assert states_gib(1, 0, 1, all_in_16=True) == pytest.approx(8e9 / 2**30)
