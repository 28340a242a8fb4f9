"""The examples of own scripts, as ranks on this machine or with a Python of their own."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from lumitui.app.job.examples import examples
from tests.support.servers.sshd import free_port
from tests.support.trainers.ranks import clean_environ, ranks, started

TRANSFORMERS = ("transformers==5.23.0",)
TRL = (*TRANSFORMERS, "trl==1.16.0", "peft==0.21.2", "datasets==5.2.0")
TINY = """
import json, sys, torch
from pathlib import Path
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
folder = Path(sys.argv[1])
lines = [f"the number after {number} is {number + 1}" for number in range(192)]
words = Tokenizer(models.BPE())
words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
words.decoder = decoders.ByteLevel()
letters = pre_tokenizers.ByteLevel.alphabet()
words.train_from_iterator(lines, trainers.BpeTrainer(
    vocab_size=300, special_tokens=["<s>", "</s>", "<pad>"], initial_alphabet=letters))
PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<s>", eos_token="</s>",
    pad_token="<pad>").save_pretrained(folder / "model")
torch.manual_seed(0)
LlamaForCausalLM(LlamaConfig(vocab_size=300, hidden_size=32, intermediate_size=64,
    num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
    max_position_embeddings=64)).save_pretrained(folder / "model")
(folder / "train.jsonl").write_text("".join(json.dumps({"text": line}) + "\\n" for line in lines))
"""
"""Writes a model of Hugging Face with its words, and lines to learn."""
JAX = ("jax==0.10.2",)
"""141 MB to download with all that it needs: not a package of every checkout."""
HOROVOD = ("setuptools<70", "wheel", "packaging", "cloudpickle", "psutil", "pyyaml")
SOURCE = "horovod==0.28.1"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lumitui-tests"
STEPS = 12


def environment(name: str, packages: Sequence[str], *, sees_ours: bool = False) -> Path:
    """Return the Python of an environment with these packages, made where it is missing.

    With `sees_ours` it has this Python's packages, too. The test is skipped where they cannot be
    downloaded.
    """
    known = hashlib.sha256("\n".join(packages).encode()).hexdigest()[:8]
    folder = CACHE / f"{name}-{known}"
    python = folder / "bin" / "python"
    if (folder / "ready").exists():
        return python
    commands = [
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(python), "-m", "pip", "install", "-q", *packages],
    ]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        if done.returncode:
            pytest.skip(f"{name} cannot be installed here: {done.stderr.strip()[-300:]}")
    if sees_ours:
        inside = next((folder / "lib").glob("python3*/site-packages"))
        ours = [path for path in sys.path if path.endswith("site-packages")]
        (inside / "ours.pth").write_text("\n".join(ours) + "\n")
    (folder / "ready").touch()
    return python


def horovod_python() -> Path:
    """Return the Python of an environment with Horovod, built with Gloo for the PyTorch here.

    Its last release says C++14 where PyTorch wants 17: two lines of CMake are changed. It takes six
    minutes of a core, once.
    """
    python = environment("horovod", HOROVOD, sees_ours=True)
    folder = python.parents[1]
    if (folder / "built").exists():
        return python
    pip = [str(python), "-m", "pip"]
    fetch = [*pip, "download", "-q", "--no-deps", "--no-build-isolation", "--no-binary", ":all:",
             "-d", str(folder), SOURCE]  # fmt: skip
    done = subprocess.run(fetch, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"Horovod cannot be downloaded here: {done.stderr.strip()[-300:]}")
    shutil.unpack_archive(next(folder.glob("horovod-*.tar.gz")), folder)
    source = next(path for path in folder.glob("horovod-*") if path.is_dir())
    for name in ("CMakeLists.txt", "horovod/torch/CMakeLists.txt"):
        text = (source / name).read_text()
        assert "set(CMAKE_CXX_STANDARD 14)" in text
        (source / name).write_text(text.replace("CMAKE_CXX_STANDARD 14", "CMAKE_CXX_STANDARD 17"))
    wanted = {"WITH_PYTORCH", "WITH_GLOO", "WITHOUT_MPI", "WITHOUT_TENSORFLOW", "WITHOUT_MXNET"}
    build = [*pip, "install", "-q", "--no-deps", "--no-build-isolation", str(source)]
    done = subprocess.run(
        build,
        env=os.environ | {f"HOROVOD_{name}": "1" for name in wanted},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (folder / "built").touch()
    return python


def project(folder: Path, example: str) -> Path:
    """Write an example's files into `folder`; return its program."""
    folder.mkdir()
    for name, text in examples()[example].files:
        (folder / name).write_text(text)
    script = examples()[example].spec.script
    assert script
    return folder / script


def run_script(
    run_dir: Path, world_size: int, python: Path | None, script: Path, *words: str
) -> list[int]:
    """Run a script as that many ranks with lumitui's variables; return their exit codes.

    Without a `python` of its own it is forked from a process that has imported PyTorch.
    """
    if python is None:
        with ranks(run_dir, world_size, str(script), *words) as job:
            codes = job.wait()
            assert set(codes) <= {0, 85}, job.output()
        return codes
    command = [str(python), str(script), *words]
    shared = clean_environ(run_dir) | {
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(world_size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }
    environs = [shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(world_size)]
    with started([command] * world_size, environs) as job:
        codes = job.wait()
        assert set(codes) <= {0, 85}, job.output()
    return codes


def events(run_dir: Path) -> list[str]:
    """Return the events in metrics.jsonl that are no steps."""
    lines = map(json.loads, (run_dir / "metrics.jsonl").read_text().splitlines())
    return [line["event"] for line in lines if "event" in line]
