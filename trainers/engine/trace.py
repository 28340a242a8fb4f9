"""A trace of some steps on CPU and GPU, from PyTorch's profiler.

`--profile 10:15` writes $RUN_DIR/profile/rank-0-steps-10-15.json.gz, for chrome://tracing or
ui.perfetto.dev. Only rank 0 is traced, at most to the end of the epoch; tracing slows these steps
down.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from torch.profiler import profile, record_function


class Trace:
    """Traces the steps in a range."""

    def __init__(self, steps: tuple[int, int], run_dir: Path) -> None:
        """Trace the range `steps` (first, last)."""
        self._first, self._last = steps
        self._folder = run_dir / "profile"
        self._running: profile | None = None
        self._traced: list[int] = []

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Trace the enclosed work, if this step is in the range."""
        if not self._first <= number <= self._last:
            yield
            return
        if not self._running:
            self._running = profile()
            self._running.start()
        self._traced.append(number)
        with record_function(f"step {number}"):
            yield
        if number == self._last:
            self.end()

    def end(self) -> None:
        """Write the trace, if any, and end tracing."""
        running, self._running = self._running, None
        if not running:
            return
        path = self._folder / f"rank-0-steps-{self._traced[0]}-{self._traced[-1]}.json.gz"
        self._last = 0
        try:
            running.stop()
            path.parent.mkdir(parents=True, exist_ok=True)
            running.export_chrome_trace(str(path))
        except (OSError, RuntimeError) as error:
            with suppress(OSError):
                print(f"The trace can't be written ({error}). Training continues.", file=sys.stderr)
