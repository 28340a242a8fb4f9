"""Initial weights, for fine-tuning from another training run's result.

From a checkpoint of these trainers, whole or in parts, or from `*.safetensors`, as on Hugging Face.
Only weights are loaded; optimizer, steps and data start fresh.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from engine.exits import UsageError
from saving import files

ENDING = ".safetensors"
PREFIX = "model."
"""transformers' prefix for the names of a model without its head."""
HEAD, ANGLES = "lm_head.weight", "rotary_emb.inv_freq"
"""Entries to ignore: a head tied to the token embeddings, and rotary angles in older files."""
CONFIG = "config.json"
"""The file beside a model's weights on Hugging Face that describes its training."""


def begin_with(net: nn.Module, place: Path, *, weights: bool = True) -> None:
    """Load the weights in `place`, a folder or a file, into a network on the CPU.

    On the device "meta", whose weights come from another rank, only the shapes in safetensors files
    are checked. Without `weights`, only the network's settings in the folder are taken: a training
    run that resumes has its own weights.

    Raises:
        UsageError: there are no weights, or they are unreadable or of another network.
    """
    try:
        if (place / CONFIG).is_file() and hasattr(net, "suit"):
            _suit(net, place)
        if weights:
            with torch.device("cpu"):
                _take(net, _weights(net, place), place)
    except OSError as error:
        raise UsageError(
            f"The weights {error.filename or place} can't be read ({error.strerror}). Check "
            "--init, and that the path exists on the compute node, in the container."
        ) from error


def _suit(net: nn.Module, place: Path) -> None:
    try:
        config = json.loads((place / CONFIG).read_text(encoding="utf-8"))
        net.suit(config if isinstance(config, dict) else {})  # type: ignore[operator]
    except ValueError as error:
        raise UsageError(
            f"The weights in {place} do not match this --model: {error}. Choose other weights."
        ) from error


def _weights(net: nn.Module, place: Path) -> Iterator[tuple[str, Tensor]]:
    if place.is_file():
        if place.suffix == ENDING:
            return _safetensors([place], net)
        return iter(net.state_dict().items()) if _elsewhere(net) else _whole(place)
    if not place.is_dir():
        raise UsageError(
            f"There are no weights {place}. Give --init a folder or a file that exists on the "
            "compute node, in the container."
        )
    inside = sorted(place.glob(f"*{ENDING}"))
    if inside:
        return _safetensors(inside, net)
    if _elsewhere(net):
        return iter(net.state_dict().items())
    if (place / files.METADATA).is_file():
        return _parts(net, place)
    for path in sorted(place.glob("*.pt")):
        return _whole(path)
    newest = max(place.glob(f"start-*/{files.MANIFEST}"), default=None)
    if newest is None:
        raise UsageError(
            f"{place} contains no weights. It may be a checkpoint of these trainers, or contain "
            f"*{ENDING} files."
        )
    return _weights(net, newest.parent)


def _elsewhere(net: nn.Module) -> bool:
    return any(weight.is_meta for weight in net.parameters())


def _whole(path: Path) -> Iterator[tuple[str, Tensor]]:
    model = files.load(path, torch.device("cpu")).get("model", {})
    return iter((name, value) for name, value in model.items() if isinstance(value, Tensor))


def _parts(net: nn.Module, folder: Path) -> Iterator[tuple[str, Tensor]]:
    from torch.distributed.checkpoint import state_dict_loader
    from torch.distributed.checkpoint.api import CheckpointException

    state = {"model": net.state_dict()}
    try:
        state_dict_loader.load(state, checkpoint_id=str(folder), no_dist=True)
    except (CheckpointException, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise UsageError(
            f"The checkpoint {folder} is not for this --model ({reason}). Choose the model that "
            "saved it."
        ) from error
    return iter(state["model"].items())


KINDS = ("F64", "F32", "F16", "BF16")
"""The types of weights, by their names in safetensors."""


def _safetensors(paths: list[Path], net: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Read one tensor at a time; only its shape if another rank has the weights."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise UsageError(
            f"{paths[0]} needs safetensors, which is not installed here. Install it in the job's "
            "environment."
        ) from error
    for path in paths:
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118  # it has no iterator
                    about = file.get_slice(name)
                    if about.get_dtype() not in KINDS:
                        continue  # counters and similar, which are not weights
                    if _elsewhere(net):
                        value = torch.empty(about.get_shape(), device="meta")
                    else:
                        value = file.get_tensor(name)
                    yield name.removeprefix(PREFIX), value
        except SafetensorError as error:
            raise UsageError(
                f"{path} can't be read as safetensors ({error}). Download it again."
            ) from error


@torch.no_grad()
def _take(net: nn.Module, found: Iterator[tuple[str, Tensor]], place: Path) -> None:
    own = dict(net.named_parameters()) | dict(net.named_buffers())
    left = set(net.state_dict())
    for name, value in found:
        if name not in own:
            if name == HEAD or name.endswith(ANGLES):
                continue
            raise UsageError(
                f"{place} has weights that this --model lacks, like {name}. Choose the --model of "
                "these weights."
            )
        if own[name].shape != value.shape:
            raise UsageError(
                f"{name} of {place} is {tuple(value.shape)}, and this --model has "
                f"{tuple(own[name].shape)}. Choose the --model of these weights, and data with "
                "its vocabulary or classes."
            )
        if not own[name].is_meta:
            own[name].copy_(value)
        left.discard(name)
    if left:
        raise UsageError(
            f"{place} lacks {len(left)} of the weights of this --model, like {min(left)}. Choose "
            "the --model of these weights."
        )
