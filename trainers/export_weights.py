"""Write a trained Llama as Hugging Face's files, which transformers, TRL and vLLM load.

    python export_weights.py RUN_DIR/checkpoints OUT --model llama-7b --like CodeLlama-7b-hf

CHECKPOINT is one from `ddp` or `fsdp`, or a folder of checkpoints, the newest of which is used.
--like is the folder given to --init, whose configuration and tokenizer are copied. Needs the
package safetensors.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from data.samples import Shape
from engine.arguments import count
from engine.exits import TrainingError
from models.llama import Llama
from models.table import MODELS, build
from saving import weights
from saving.files import write_whole

KINDS = {"bfloat16": torch.bfloat16, "float32": torch.float32}
BESIDE = ("tokenizer*", "special_tokens_map.json", "generation_config.json", "*.jinja")
"""Files of --like to copy besides config.json."""


def export(checkpoint: Path, out: Path, net: Llama, like: Path | None, kind: str) -> int:
    """Write the weights of `net` from `checkpoint`; return the number of values.

    Raises:
        UsageError: the weights cannot be read, or belong to another network.
    """
    weights.begin_with(net, checkpoint)
    out.mkdir(parents=True, exist_ok=True)
    config = net.config()
    if like:
        weights.begin_with(net, like, weights=False)  # refuses what the network does not support
        config = json.loads((like / weights.CONFIG).read_text(encoding="utf-8"))
        for path in (path for pattern in BESIDE for path in like.glob(pattern)):
            shutil.copyfile(path, out / path.name)
    config |= {"architectures": ["LlamaForCausalLM"], "torch_dtype": kind, "dtype": kind}
    write_whole(out / weights.CONFIG, json.dumps(config, indent=1).encode())
    tensors = {
        name if name == weights.HEAD else weights.PREFIX + name: value.to(KINDS[kind])
        for name, value in net.state_dict().items()
    }
    aside = out / f".model{weights.ENDING}"
    save_file(tensors, aside, metadata={"format": "pt"})
    aside.rename(out / f"model{weights.ENDING}")
    return sum(value.numel() for value in tensors.values())


def main() -> None:
    """Read the command line and write the files."""
    parser = argparse.ArgumentParser(description="Write a trained Llama as Hugging Face's files.")
    add = parser.add_argument
    add("checkpoint", type=Path, help="a checkpoint of ddp or fsdp, or a folder of checkpoints")
    add("out", type=Path, help="folder to write to")
    llamas = [name for name in MODELS if name.startswith("llama")]
    add("--model", choices=llamas, required=True, help="model that was trained")
    add("--vocabulary", type=count, help="vocabulary size (default: the model's)")
    add("--like", type=Path, metavar="FOLDER", help="the model that training started from")
    add("--dtype", choices=KINDS, default="bfloat16", help="type of weights (default: bfloat16)")
    args = parser.parse_args()
    shape = MODELS[args.model].sample
    shape = Shape(shape.kind, shape.input, args.vocabulary or shape.classes)
    net = build(args.model, shape, 0)
    assert isinstance(net, Llama)
    numbers = export(args.checkpoint, args.out, net, args.like, args.dtype)
    print(f"{args.out} has {numbers:,} weights of {args.model} in {args.dtype}.")


if __name__ == "__main__":
    try:
        main()
    except (TrainingError, OSError) as error:
        print(f"export_weights.py: {error}", file=sys.stderr)
        sys.exit(error.code if isinstance(error, TrainingError) else 1)
