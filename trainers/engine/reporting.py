"""What a training reports: metrics.jsonl, lines on stdout, and an error file of each rank."""

from __future__ import annotations

import json
import math
import os
import platform
import shutil
import statistics
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

Value = str | int | float | None


class TrainingError(Exception):
    """An error said in two sentences, what happened and what to try, instead of a traceback."""

    code = 1
    """The process's exit code."""
    by_every_rank = False
    """Whether each rank says it. Else the first rank of each node does: all have the same error."""


class UsageError(TrainingError):
    """Wrong arguments, data, configuration or launch: a person can fix it."""

    code = 2


@dataclass(frozen=True)
class Step:
    """One optimizer step over the images of all ranks."""

    step: int
    epoch: int
    loss: float
    """The mean over all ranks."""
    grad_norm: float | None
    """The length of the gradient before clipping; None where it isn't known."""
    lr: float
    skipped: int
    """Steps of this attempt whose loss or gradient was not finite: they changed no weight."""
    samples: int
    """In it, of all ranks."""
    seconds: float
    """From the choice of the samples to the new weights."""
    ended: float | None = None
    """When, by time.monotonic(); None: now."""
    split: Mapping[str, float] = field(default_factory=dict)
    """Where the seconds went, and what the speed comes to; see engine/throughput/."""


@dataclass(frozen=True)
class SaveTime:
    """What a checkpoint took."""

    seconds: float
    """From its begin until it counted."""
    blocked: float
    """Seconds that the training waited."""
    size: int
    """Bytes, of all ranks."""


class Reporter:
    """Appends to metrics.jsonl and prints, on rank 0; does nothing on every other rank.

    Each line is one JSON object and one write(), so that a reader following the file never sees
    half of one. Every attempt appends; a step that is trained again after a crash has a second
    line, and the later one counts.
    """

    def __init__(
        self, run_dir: Path, rank: int, log_every: int, figure: str = "test_accuracy"
    ) -> None:
        """Open metrics.jsonl in the run folder; every `log_every`-th step is printed.

        `figure` is the name of what a test gives.
        """
        self._reports = rank == 0
        self._figure = figure
        self._log_every = log_every
        self._began = self._trains_since = time.monotonic()
        self._samples = 0
        self._speeds: deque[float] = deque(maxlen=10_000)
        self._spent = {"step_s": 0.0, "save_s": 0.0, "test_s": 0.0}
        self._torn = False
        self._lost = 0
        self._takers: list[Callable[[Mapping[str, Value]], None]] = []
        if self._reports:
            run_dir.mkdir(parents=True, exist_ok=True)
            self._file = _open_for_lines(run_dir / "metrics.jsonl")

    def also(self, take: Callable[[Mapping[str, Value]], None]) -> None:
        """Give every line of metrics.jsonl to `take` too, on rank 0; it raises nothing."""
        self._takers.append(take)

    def start(self, device: torch.device, **facts: Value) -> None:
        """Report what is about to run: enough to compare the speeds of two runs."""
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
        facts.pop("changed", None)  # has a line of its own
        said = (f"{key} {_short(value)}" for key, value in facts.items() if value is not None)
        self.say(", ".join(said) + f", on {name}")

    def step(self, taken: Step) -> None:
        """Report one step. `seconds` in the file is the time since this attempt began."""
        self._samples += taken.samples
        self._spent["step_s"] += taken.seconds
        speed = taken.samples / taken.seconds
        self._speeds.append(speed)
        self._metric(
            step=taken.step,
            epoch=taken.epoch,
            loss=taken.loss,
            grad_norm=taken.grad_norm,
            lr=taken.lr,
            skipped=taken.skipped,
            samples_per_s=speed,
            seconds=self._seconds(taken.ended),
            **taken.split,
        )
        if taken.step % self._log_every == 0:
            self.say(
                f"step {taken.step} | epoch {taken.epoch} | loss {taken.loss:.4f} | "
                f"lr {taken.lr:.4g} | {speed:.0f} samples/s"
                + (f" | MFU {taken.split['mfu']:.1%}" if "mfu" in taken.split else "")
                + (f" | {taken.skipped} skipped" if taken.skipped else "")
            )

    def test(self, *, step: int, epoch: int, figure: float) -> None:
        """Report a test result."""
        self._metric(
            event="eval", step=step, epoch=epoch, seconds=self._seconds(), **{self._figure: figure}
        )
        self.say(f"epoch {epoch} | {self._words} {figure:.4f}")

    def saved(self, *, step: int, path: str, took: SaveTime) -> None:
        """Report that a checkpoint is on disk."""
        self._metric(
            event="checkpoint",
            step=step,
            path=path,
            save_s=round(took.seconds, 4),
            blocked_s=round(took.blocked, 4),
            save_bytes=took.size,
            seconds=self._seconds(),
        )

    def not_saved(self, *, step: int, error: Exception) -> None:
        """Report that a checkpoint could not be made; the training goes on."""
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

        samples_per_s is over all the time since the start line, so that a slow disk or a slow
        loader shows; the median of the last 10,000 steps is beside it. step_s, save_s and test_s
        say where that time went, and other_s is the rest.
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
        if self._reports:
            with suppress(OSError):  # a full disk is no reason to end a training
                print(text, flush=True)

    def _seconds(self, now: float | None = None) -> float:
        return round((time.monotonic() if now is None else now) - self._began, 4)

    def _metric(self, **values: Value) -> None:
        """Write one line. A full disk costs lines, not the training."""
        if not self._reports:
            return
        told = {name: _finite(value) for name, value in values.items()}
        line = b"\n" * self._torn + json.dumps(told).encode() + b"\n"
        try:
            self._torn = os.write(self._file, line) < len(line)
        except OSError as error:
            if not self._lost:
                with suppress(OSError):
                    print(
                        f"metrics.jsonl can't be written ({error.strerror}). The training goes "
                        "on without it.",
                        file=sys.stderr,
                    )
            self._lost += 1
        for take in self._takers:
            take(told)


def _open_for_lines(path: Path) -> int:
    """Open for appending, on a new line: a killed attempt may have left half a line."""
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        with suppress(OSError):
            os.write(file, b"\n")
    return file


def _short(value: Value) -> str:
    """Return a fact as a person reads it: a fraction in four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _finite(value: Value) -> Value:
    """JSON has no NaN and no infinity: null. Ten digits are more than float32 has."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.10g}") if math.isfinite(value) else None


def attempt(environ: Mapping[str, str] = os.environ) -> int:
    """The attempt of this run, counted from 1: RUN_ATTEMPT, else Slurm's requeue count."""
    given = environ.get("RUN_ATTEMPT", "")
    if given.isdecimal():
        return int(given)
    restarts = environ.get("SLURM_RESTART_COUNT", "")
    return int(restarts) + 1 if restarts.isdecimal() else 1


def run(main: Callable[[], None]) -> NoReturn:
    """Run a trainer's main and end the process with its exit code.

    0: trained to the end. A TrainingError has its own code, and is printed as a sentence: by
    the first rank of each node, or by each that has it. A SystemExit keeps its own code, and
    Ctrl-C is 130. Any other exception is 1: its traceback is printed, and kept with message and
    time in $RUN_DIR/errors/rank-N.json, in the form of PyTorch's `record`.
    """
    code = 1
    says = (os.environ.get("LOCAL_RANK") or "0") == "0"
    try:
        _recorded(main)
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except TrainingError as error:
        code = error.code
        if says or error.by_every_rank:
            print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
    if dist.is_initialized() and code != 1:
        # Every rank has left the last collective before the first one closes its sockets.
        time.sleep(0.2)
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    # No interpreter teardown. It takes 0.1 to 0.5 s a rank, in which a launcher that has seen the
    # first exit code other than 0 kills the rest and reports their 137. And one of gloo's threads
    # may still hold the last collective's tensor: releasing it in a dying interpreter aborts the
    # process (PyTorch 2.13: exit code 134 in 10 of 14 short trainings that had succeeded).
    os._exit(code)


def _recorded(main: Callable[[], None]) -> None:
    """Run main; an exception is written to its error file and raised again."""
    rank = os.environ.get("RANK") or "0"
    mine = Path(os.environ.get("RUN_DIR", ".")) / "errors" / f"rank-{rank}.json"
    try:
        mine.parent.mkdir(parents=True, exist_ok=True)
        mine.unlink(missing_ok=True)  # an earlier attempt's error isn't ours
    except OSError as error:
        raise UsageError(
            f"The run folder can't be written: {error}. Set RUN_DIR to a folder of yours."
        ) from error
    # torchrun names a file of its own in a temporary folder and reads it; ours is a copy then.
    file = Path(os.environ.setdefault("TORCHELASTIC_ERROR_FILE", str(mine)))
    raised: list[BaseException] = []

    def noted() -> None:
        try:
            main()
        except BaseException as error:
            raised.append(error)
            raise

    try:
        record(noted)()
    except Exception as error:
        raised.append(error)
        with suppress(OSError):
            if file != mine and file.exists():
                shutil.copyfile(file, mine)
    if raised:  # and not what `record` raises when the disk is too full for the error's file
        raise raised[0]
