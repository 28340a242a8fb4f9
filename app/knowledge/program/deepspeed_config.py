"""Reader of DeepSpeed configurations, parsed as DeepSpeed does: HJSON.

Source: microsoft/DeepSpeed, deepspeed/runtime/config.py (`hjson.load`).
"""

import json
import re
from dataclasses import dataclass
from typing import Literal

import hjson

from lumitui.app.knowledge.program.program_facts import Fault
from lumitui.remote.site.source_position import Position

Number = int | Literal["auto"] | None
"""A whole number, `auto` (transformers fills it in), or None if not given."""
Switch = bool | Literal["auto"] | None
"""On, off, `auto`, or None if not given."""
TRAIN = "train_batch_size"
MICRO = "train_micro_batch_size_per_gpu"
ACCUMULATION = "gradient_accumulation_steps"
_MARKS = {TRAIN, MICRO, "zero_optimization", "fp16", "bf16", "zero_allow_untested_optimizer"}


@dataclass(frozen=True)
class Offload:
    """Target of ZeRO's offload from GPU memory."""

    device: str
    nvme_path: str | None


@dataclass(frozen=True)
class Config:
    """A DeepSpeed configuration."""

    file: str
    text: str
    first: Position
    """Position at which the configuration begins in that file."""
    fault: Fault | None = None
    train: Number = None
    """Samples per step, over all ranks."""
    micro: Number = None
    """Samples per rank and micro step."""
    accumulation: Number = None
    """Micro steps per step."""
    fp16: Switch = None
    bf16: Switch = None
    offload_optimizer: Offload | None = None
    offload_param: Offload | None = None

    def at(self, *keys: str) -> Position:
        """Return the position of nested `keys`; if not found, that of the configuration."""
        place = 0
        for key in keys:
            found = re.compile(rf"[\"']?\b{re.escape(key)}\b[\"']?\s*:").search(self.text, place)
            if found is None:
                return self.first
            place = found.start()
        if "\n" not in self.text and self.first.line > 1:
            return self.first  # a dictionary in a program, rewritten as JSON
        line = self.text.count("\n", 0, place) + 1
        column = place - (self.text.rfind("\n", 0, place) + 1) + 1
        end = len(self.text.splitlines()[line - 1]) + 1
        return Position(line, column, line, end, self.file)


def is_config(text: str) -> bool:
    """Return whether a text contains keys of a DeepSpeed configuration."""
    return any(f'"{mark}"' in text or f"{mark}:" in text for mark in _MARKS)


def read_config(text: str, file: str, first: Position | None = None) -> Config:
    """Return the parsed configuration; if it is invalid, only `fault` is set."""
    begin = first or Position(1, 1, file=file)
    try:
        # The round trip through JSON leaves plain dicts and JSON values only.
        data = json.loads(json.dumps(hjson.loads(text)))
    except (ValueError, OverflowError, RecursionError) as error:
        return Config(file, text, begin, Fault(str(error), _place(error, begin)))
    if not isinstance(data, dict):
        return Config(file, text, begin, Fault("it is not { … }", begin))
    zero, fp16, bf16 = (_inner(data, key) for key in ("zero_optimization", "fp16", "bf16"))
    return Config(
        file,
        text,
        begin,
        train=_number(data.get(TRAIN)),
        micro=_number(data.get(MICRO)),
        accumulation=_number(data.get(ACCUMULATION)),
        fp16=_switch(fp16.get("enabled")),
        bf16=_switch(bf16.get("enabled", _inner(data, "bfloat16").get("enabled"))),
        offload_optimizer=_offload(zero.get("offload_optimizer")),
        offload_param=_offload(zero.get("offload_param")),
    )


def _inner(data: dict[str, object], key: str) -> dict[str, object]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _number(value: object) -> Number:
    if value == "auto":
        return "auto"
    return value if type(value) is int else None


def _switch(value: object) -> Switch:
    if value == "auto":
        return "auto"
    return value if isinstance(value, bool) else None


def _offload(value: object) -> Offload | None:
    if not isinstance(value, dict) or value.get("device") in (None, "none"):
        return None
    path = value.get("nvme_path")
    return Offload(str(value["device"]), str(path) if path else None)


def _place(error: BaseException, begin: Position) -> Position:
    line, column = getattr(error, "lineno", None), getattr(error, "colno", None)
    if type(line) is not int or begin.line > 1:
        return begin
    column = column if type(column) is int else 1
    return Position(line, column, line, column + 1, begin.file)
