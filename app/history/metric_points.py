"""The points of metrics.jsonl, one a line. Pure."""

import json
import math
from dataclasses import dataclass, field, fields

_LINE_BYTES = 65536
_LONGEST_TEXT = 2000


@dataclass(frozen=True)
class MetricPoint:
    """One line of metrics.jsonl (trainers/reporting.py writes them)."""

    event: str = "step"
    """`start`, `step`, `eval`, `checkpoint`, `stop`, `end`; a line without one is a step."""
    step: int | None = None
    epoch: int | None = None
    loss: float | None = None
    lr: float | None = None
    samples_per_s: float | None = None
    seconds: float | None = None
    """Since this attempt began."""
    test_accuracy: float | None = None
    world_size: int | None = None
    global_batch: int | None = None
    extra: dict[str, float | str] = field(default_factory=dict)
    """Whatever else the line says."""


_WHOLE = frozenset({"step", "epoch", "world_size", "global_batch"})
_KNOWN = frozenset(item.name for item in fields(MetricPoint)) - {"event", "extra"}


def parse_line(line: bytes) -> MetricPoint | None:
    """Return the point of one line; None for anything that is not a JSON object. Never raises."""
    if len(line) > _LINE_BYTES:
        return None
    try:
        data = json.loads(line)
    # RecursionError: a line of thousands of opening brackets.
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not data:
        return None
    event = data.pop("event", "step")
    numbers: dict[str, float] = {}
    extra: dict[str, float | str] = {}
    for name, value in data.items():
        number = _number(value)
        if name in _KNOWN:
            if number is not None:
                numbers[name] = number
        elif number is not None:
            extra[name] = number
        elif isinstance(value, str):
            extra[name] = value[:_LONGEST_TEXT]
    whole = {name: int(number) for name, number in numbers.items() if name in _WHOLE}
    return MetricPoint(
        event=event[:40] if isinstance(event, str) else "step",
        loss=numbers.get("loss"),
        lr=numbers.get("lr"),
        samples_per_s=numbers.get("samples_per_s"),
        seconds=numbers.get("seconds"),
        test_accuracy=numbers.get("test_accuracy"),
        step=whole.get("step"),
        epoch=whole.get("epoch"),
        world_size=whole.get("world_size"),
        global_batch=whole.get("global_batch"),
        extra=extra,
    )


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
