"""A training run's reports: metrics.jsonl, and lines on stdout."""

from __future__ import annotations

import platform
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from monitor.metrics import Metrics, Value, attempt

if TYPE_CHECKING:
    from saving.saver import Ended

NOTHING: Mapping[str, float] = {}


@dataclass(frozen=True)
class Step:
    """One optimizer step over the samples of all ranks."""

    step: int
    epoch: int
    lr: float
    loss: float
    """Mean loss over all ranks."""
    grad_norm: float
    """Gradient norm before clipping."""
    seconds: float
    """Seconds from choosing the samples to the new weights."""
    ended: float
    """When, by time.monotonic()."""


class Reporter:
    """Appends to metrics.jsonl and prints on rank 0; does nothing on other ranks."""

    def __init__(
        self,
        run_dir: Path,
        rank: int,
        log_every: int,
        figure: str = "test_accuracy",
        takers: Sequence[Callable[[Mapping[str, Value]], None]] = (),
    ) -> None:
        """Open metrics.jsonl in the run folder; print every `log_every`-th step.

        `figure` is the name of a test's result. `takers` also get each line; they must not raise
        errors.
        """
        self._figure = figure
        self._log_every = log_every
        self._began = self._trains_since = time.monotonic()
        self._samples = 0
        self._speeds: deque[float] = deque(maxlen=10_000)
        self._spent = {"step_s": 0.0, "save_s": 0.0, "test_s": 0.0}
        self._takers = takers
        self._metrics = Metrics(run_dir) if rank == 0 else None

    def start(self, device: torch.device, **facts: Value) -> None:
        """Report the settings of the run, as needed to compare the speeds of two runs."""
        gpu = device.type == "cuda"
        name = torch.cuda.get_device_name(device) if gpu else platform.machine()
        self._metric(
            event="start",
            time=round(time.time(), 3),
            attempt=attempt(),
            host=platform.node(),
            device=device.type,
            device_name=name,
            torch=torch.__version__,
            **facts,
        )
        self._trains_since = time.monotonic()
        facts.pop("changed", None)  # has its own line
        said = (f"{key} {_short(value)}" for key, value in facts.items() if value is not None)
        self.say(", ".join(said) + f", on {name}")

    def step(
        self, step: Step, *, samples: int, skipped: int = 0, split: Mapping[str, float] = NOTHING
    ) -> None:
        """Report one step of `samples` of all ranks.

        `skipped` counts the steps of this attempt that changed no weight. `split` has the parts of
        the step's time, and further figures of its speed; see engine/speed.py. `seconds` in the
        file is the time since this attempt began.
        """
        self._samples += samples
        self._spent["step_s"] += step.seconds
        speed = samples / step.seconds
        self._speeds.append(speed)
        self._metric(
            step=step.step, epoch=step.epoch, loss=step.loss, grad_norm=step.grad_norm, lr=step.lr,
            skipped=skipped, samples_per_s=speed, seconds=self._seconds(step.ended), **split,
        )  # fmt: skip
        if step.step % self._log_every == 0:
            self.say(
                f"step {step.step} | epoch {step.epoch} | loss {step.loss:.4f} | "
                f"lr {step.lr:.4g} | {speed:.0f} samples/s"
                + (f" | MFU {split['mfu']:.1%}" if "mfu" in split else "")
                + (f" | {skipped} skipped" if skipped else "")
            )

    def test(self, *, step: int, epoch: int, figure: float) -> None:
        """Report a test result."""
        self._metric(
            event="eval", step=step, epoch=epoch, seconds=self._seconds(), **{self._figure: figure}
        )
        self.say(f"epoch {epoch} | {self._words} {figure:.4f}")

    def saved(self, save: Ended) -> None:
        """Report that a checkpoint is on disk."""
        self._metric(
            event="checkpoint", step=save.step, path=save.path, save_s=round(save.seconds, 4),
            blocked_s=round(save.blocked, 4), save_bytes=save.size, seconds=self._seconds(),
        )  # fmt: skip

    def not_saved(self, *, step: int, error: Exception) -> None:
        """Report that a checkpoint failed; training continues."""
        self._metric(event="not-saved", step=step, error=str(error), seconds=self._seconds())
        self.say(f"step {step} | {error}")

    def stop(self, *, step: int, signal: str | None, path: str) -> None:
        """Report an early stop with everything saved; without `signal`, another rank got it."""
        self._metric(
            event="stop",
            step=step,
            signal=signal,
            checkpoint=path,
            seconds=self._seconds(),
        )
        why = signal or "a signal to another rank"
        kept = f"{path} is saved, --resume continues" if path else "there is no checkpoint yet"
        self.say(f"stopped by {why} after step {step}; {kept}")

    @property
    def _words(self) -> str:
        return self._figure.replace("_", " ")

    def end(self, *, step: int, figure: float | None) -> None:
        """Report the result.

        samples_per_s counts all time since the start line, so that it shows a slow disk or loader;
        the median of the last 10,000 steps is reported beside it. step_s, save_s and test_s are
        parts of that time, and other_s is the rest.
        """
        wall = time.monotonic() - self._trains_since
        rest = {"other_s": max(0.0, wall - sum(self._spent.values()))}
        self._metric(
            event="end",
            step=step,
            seconds=self._seconds(),
            samples_per_s=self._samples / wall if self._samples else None,
            median_samples_per_s=statistics.median(self._speeds) if self._speeds else None,
            **{self._figure: figure},
            **{name: round(spent, 4) for name, spent in (self._spent | rest).items()},
        )
        self.say("not tested" if figure is None else f"{self._words} {figure:.4f}")

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Count the time inside as `save_s` or `test_s`."""
        began = time.monotonic()
        yield
        self._spent[what] += time.monotonic() - began

    def say(self, text: str) -> None:
        """Print one line on rank 0."""
        if self._metrics:
            with suppress(OSError):  # a full disk must not end a training run
                print(text, flush=True)

    def _seconds(self, now: float | None = None) -> float:
        return round((time.monotonic() if now is None else now) - self._began, 4)

    def _metric(self, **values: Value) -> None:
        if self._metrics:
            told = self._metrics.write(**values)
            for take in self._takers:
                take(told)


def _short(value: Value) -> str:
    """Return a value for reading: fractions with four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
