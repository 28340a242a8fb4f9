"""A trace of some steps: what ran when on the processor and the GPU, in PyTorch's profiler.

`--profile 10:15` writes $RUN_DIR/profile/rank-0-steps-10-15.json.gz, for chrome://tracing or
ui.perfetto.dev. Rank 0 alone is traced, at most to the end of the
epoch; tracing slows these steps down.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function


class Trace:
    """Traces the steps of a span; leaving it writes what was traced."""

    def __init__(self, steps: tuple[int, int], run_dir: Path) -> None:
        """Trace `steps`, the first and the last."""
        self._steps: tuple[int, int] | None = steps
        self._folder = run_dir / "profile"
        self._running: profile | None = None
        self._traced = (0, 0)

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Trace what is done inside, if this step is in the span."""
        if self._steps is None:
            yield
            return
        first, last = self._steps
        if not self._running and first <= number <= last:
            activities = [ProfilerActivity.CPU]
            if torch.cuda.is_available():
                activities.append(ProfilerActivity.CUDA)
            self._running, self._traced = profile(activities=activities), (number, number)
            self._running.start()
        with record_function(f"step {number}"):
            yield
        self._traced = (self._traced[0], number)
        if number >= last:
            self._write()

    def __enter__(self) -> Trace:
        """Trace from the span's first step on."""
        return self

    def __exit__(self, *_: object) -> None:
        """The epoch ended, or the training."""
        self._write()

    def _write(self) -> None:
        if not self._running:
            return
        running, self._running, self._steps = self._running, None, None
        first, last = self._traced
        path = self._folder / f"rank-0-steps-{first}-{last}.json.gz"
        try:
            running.stop()
            path.parent.mkdir(parents=True, exist_ok=True)
            running.export_chrome_trace(str(path))
        except (OSError, RuntimeError) as error:
            with suppress(OSError):
                print(
                    f"The trace can't be written ({error}). The training goes on.", file=sys.stderr
                )
