"""What a training reports: metrics.jsonl, lines on stdout, and an error file of each rank."""

from __future__ import annotations

import json
import math
import os
import platform
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

Value = str | int | float | None


class UsageError(Exception):
    """An error that a person can fix: what happened and what to try, in two sentences."""


class Reporter:
    """Appends to metrics.jsonl and prints, on rank 0; does nothing on every other rank.

    Each line is one JSON object and one write(), so that a reader following the file never sees
    half of one. Every attempt appends; a step that is trained again after a crash has a second
    line, and the later one counts.
    """

    def __init__(self, run_dir: Path, rank: int, log_every: int) -> None:
        """Open metrics.jsonl in the run folder; every `log_every`-th step is printed."""
        self._reports = rank == 0
        self._log_every = log_every
        self._began = time.monotonic()
        self._samples = 0
        self._step_seconds = 0.0
        if self._reports:
            run_dir.mkdir(parents=True, exist_ok=True)
            self._file = _open_for_lines(run_dir / "metrics.jsonl")

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
        said = (f"{key} {_short(value)}" for key, value in facts.items())
        self.say(", ".join(said) + f", on {name}")

    def step(
        self, *, step: int, epoch: int, loss: float, lr: float, samples: int, seconds: float
    ) -> None:
        """Report one optimizer step over `samples` images of all ranks.

        `seconds` in the file is the time since this attempt began, samples_per_s is of this
        step alone.
        """
        self._samples += samples
        self._step_seconds += seconds
        speed = samples / seconds
        self._metric(
            step=step, epoch=epoch, loss=loss, lr=lr, samples_per_s=speed, seconds=self._seconds()
        )
        if step % self._log_every == 0:
            self.say(
                f"step {step} | epoch {epoch} | loss {loss:.4f} | lr {lr:.4g} | "
                f"{speed:.0f} samples/s"
            )

    def test(self, *, step: int, epoch: int, accuracy: float) -> None:
        """Report a test result."""
        self._metric(
            event="eval", step=step, epoch=epoch, test_accuracy=accuracy, seconds=self._seconds()
        )
        self.say(f"epoch {epoch} | test accuracy {accuracy:.4f}")

    def saved(self, *, step: int, path: str) -> None:
        """Report that a checkpoint is on disk."""
        self._metric(event="checkpoint", step=step, path=path, seconds=self._seconds())

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
        self.say(f"stopped by {why} after step {step}; {path} is saved, --resume continues")

    def end(self, *, step: int, accuracy: float | None) -> None:
        """Report the result; samples_per_s is over all of this attempt's steps."""
        self._metric(
            event="end",
            step=step,
            test_accuracy=accuracy,
            seconds=self._seconds(),
            samples_per_s=self._samples / self._step_seconds if self._samples else None,
        )
        self.say("not tested" if accuracy is None else f"test accuracy {accuracy:.4f}")

    def say(self, text: str) -> None:
        """Print one line on rank 0."""
        if self._reports:
            print(text, flush=True)

    def _seconds(self) -> float:
        return round(time.monotonic() - self._began, 4)

    def _metric(self, **values: Value) -> None:
        if self._reports:
            line = {name: _finite(value) for name, value in values.items()}
            os.write(self._file, json.dumps(line).encode() + b"\n")


def _open_for_lines(path: Path) -> int:
    """Open for appending, on a new line: a killed attempt may have left half a line."""
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
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

    0: trained to the end. 2: a UsageError, which the first rank of each node prints as a
    sentence. A SystemExit keeps its own code, and Ctrl-C is 130. Any other exception is 1: its
    traceback is printed, and $RUN_DIR/errors/rank-N.json keeps message, traceback and time in
    the form of PyTorch's `record`.
    """
    code = 1
    try:
        _recorded(main)
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except UsageError as error:
        code = 2
        if (os.environ.get("LOCAL_RANK") or "0") == "0":
            print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
    if dist.is_initialized() and code != 1:
        # Every rank has left the last collective before the first one closes its sockets.
        time.sleep(0.2)
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
    try:
        record(main)()
    except Exception:
        if file != mine and file.exists():
            shutil.copyfile(file, mine)
        raise
