"""metrics.jsonl: one JSON object per line, complete at any moment. Standard library only."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

Value = str | int | float | None
METRICS = "metrics.jsonl"


class Metrics:
    """Appends lines to metrics.jsonl; only rank 0 has one.

    Each line is one write(), so that a reader who follows the file never sees half a line. Every
    attempt appends; a step repeated after a crash has a second line, and the later line counts.
    """

    def __init__(self, run_dir: Path) -> None:
        """Open the file at a new line: a killed attempt may have left half a line."""
        run_dir.mkdir(parents=True, exist_ok=True)
        self._file = os.open(run_dir / METRICS, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        size = os.fstat(self._file).st_size
        self._torn = bool(size) and os.pread(self._file, 1, size - 1) != b"\n"
        self._lost = False

    def write(self, **values: Value) -> dict[str, Value]:
        """Write one line and return it as a dict. A full disk loses lines, not the training."""
        told = {name: _finite(value) for name, value in values.items()}
        line = b"\n" * self._torn + json.dumps(told).encode() + b"\n"
        try:
            self._torn = os.write(self._file, line) < len(line)
        except OSError as error:
            if not self._lost:
                with suppress(OSError):
                    print(
                        f"metrics.jsonl can't be written ({error.strerror}). Training continues "
                        "without it.",
                        file=sys.stderr,
                    )
            self._lost = True
        return told


def _finite(value: Value) -> Value:
    """Return a JSON value: null for NaN and infinity; ten digits exceed float32."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.10g}") if math.isfinite(value) else None


def attempt(environ: Mapping[str, str] = os.environ) -> int:
    """Return the attempt of this run, from 1: RUN_ATTEMPT, else from Slurm's requeue count."""
    given = environ.get("RUN_ATTEMPT", "")
    if given.isdecimal():
        return int(given)
    restarts = environ.get("SLURM_RESTART_COUNT", "")
    return int(restarts) + 1 if restarts.isdecimal() else 1
