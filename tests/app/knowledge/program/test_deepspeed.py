"""What is read of a DeepSpeed configuration."""

from lumitui.app.knowledge.program.deepspeed_config import Offload, read_config

TEXT = """\
{
  "train_batch_size": 64,
  "gradient_accumulation_steps": "auto",
  "fp16": {"enabled": true, "loss_scale": 128},
  "zero_optimization": {
    "stage": 2,
    "offload_optimizer": {"device": "nvme"}
  },
}
"""


def test_trailing_commas_are_read() -> None:
    config = read_config(TEXT, "ds.json")
    assert config.fault is None
    assert (config.train, config.accumulation) == (64, "auto")
    assert (config.fp16, config.bf16) == (True, None)
    assert config.offload_optimizer == Offload("nvme", None)


def test_a_key_has_its_line() -> None:
    config = read_config(TEXT, "ds.json")
    assert config.at("zero_optimization", "stage").line == 6
    assert config.at("fp16", "enabled").line == 4


def test_what_cannot_be_read_is_a_fault_with_its_line() -> None:
    fault = read_config('{\n  "fp16": {"enabled": true\n', "ds.json").fault
    assert fault is not None
    assert fault.at.line >= 2
