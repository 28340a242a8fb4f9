"""Train a Llama with torchtitan: split by tensors and by context, and computed in FP8.

`--module train --config NAME` names a function of this file: it returns torchtitan's own
configuration, changed where the job needs it. Arguments change any of its values. The lines for
lumitui are numbered.
"""

from __future__ import annotations

from torchtitan import train
from torchtitan.components.quantization import Float8LinearConverter
from torchtitan.config import CompileConfig
from torchtitan.models.llama3 import config_registry, model_registry
from torchtitan.trainer import Trainer

import lumitui_run as run  # 1


def llama3_8b() -> Trainer.Config:
    """Llama 3.1 8B, from new weights, on lines of JSON like {"text": …}."""
    return _adapted(config_registry.llama3_8b())


def llama3_8b_float8() -> Trainer.Config:
    """The same with matrix products in FP8; it needs torchao and an H100, an MI300 or newer."""
    config = llama3_8b()
    config.compile = CompileConfig(enable=True)  # without it, FP8 is slower than BF16
    converter = Float8LinearConverter.Config(filter_fqns=["lm_head"], model_compile_enabled=True)
    config.model_spec = model_registry("8B", converters=[converter])
    return config


def debugmodel() -> Trainer.Config:
    """Six small layers, to try the job."""
    return _adapted(config_registry.llama3_debugmodel())


def _adapted(config: Trainer.Config) -> Trainer.Config:
    config.dump_folder = str(run.RUN_DIR)
    config.dataloader.dataset = "c4_test"  # its loader reads a folder of such files offline
    config.checkpoint.enable = True
    config.checkpoint.folder = run.checkpoint_dir().name  # 2
    config.checkpoint.keep_latest_k = 2
    config.checkpoint.last_save_model_only = False  # a stop is not the end: keep the optimizer
    config.validator.enable = False
    config.profiler.enable_profiling = False
    config.metrics.disable_color_printing = True
    return config


def goes_on(trainer: Trainer) -> bool:
    """Whether to take another step; torchtitan asks before each, on every rank."""
    if trainer.step and run.stop_requested():  # 3
        trainer.checkpointer.save(trainer.step, last_step=True)
        return False
    return trainer.step < trainer.config.training.steps


if __name__ == "__main__":
    Trainer.should_continue_training = goes_on  # 4
    train.main()
    run.finish()  # 5
