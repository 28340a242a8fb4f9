"""Live views of a training run: TensorBoard, MLflow and Weights & Biases.

`--watch tensorboard,mlflow,wandb` writes what metrics.jsonl gets for them too, on rank 0:
    $RUN_DIR/watch/tensorboard/   event files: tensorboard --logdir FOLDER
    $RUN_DIR/watch/mlflow/        a file store: mlflow ui --backend-store-uri FOLDER
    $RUN_DIR/watch/wandb/         of its offline mode: wandb sync FOLDER/wandb/offline-run-…
Nothing is sent over a network. A watcher that fails is left out; the training goes on.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from engine.exits import UsageError

Line = Mapping[str, object]
"""A line of metrics.jsonl."""


class Watcher(Protocol):
    """One live view."""

    def add(self, step: int, numbers: Mapping[str, float]) -> None:
        """Log some numbers of a step; any exception removes the watcher."""

    def close(self) -> None:
        """Write buffered values and close."""


class TensorBoard:
    """A TensorBoard event file."""

    def __init__(self, folder: Path, facts: Line) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(folder))

    def add(self, step: int, numbers: Mapping[str, float]) -> None:
        """Log the numbers."""
        for name, number in numbers.items():
            self._writer.add_scalar(name, number, step)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


class MLflow:
    """A run in a file store."""

    def __init__(self, folder: Path, facts: Line) -> None:
        """Start a run; the values of the start line are its parameters."""
        # MLflow 3 warns of file stores and requires this; a database does not suit Lustre.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        self._mlflow: Any = importlib.import_module("mlflow")
        self._mlflow.set_tracking_uri(folder.resolve().as_uri())
        self._mlflow.set_experiment("lumitui")
        self._mlflow.start_run(run_name=folder.resolve().parents[1].name)
        self._mlflow.log_params(dict(facts))

    def add(self, step: int, numbers: Mapping[str, float]) -> None:
        """Log the numbers."""
        self._mlflow.log_metrics(dict(numbers), step=step)

    def close(self) -> None:
        """End the run."""
        self._mlflow.end_run()


class WandB:
    """A run of Weights & Biases' offline mode."""

    def __init__(self, folder: Path, facts: Line) -> None:
        """Start a run; the values of the start line are its configuration."""
        folder.mkdir(parents=True, exist_ok=True)
        wandb: Any = importlib.import_module("wandb")
        self._run = wandb.init(
            mode="offline",
            dir=folder,
            name=folder.resolve().parents[1].name,
            config=dict(facts),
            settings=wandb.Settings(silent=True, symlink=False, console="off"),
        )

    def add(self, step: int, numbers: Mapping[str, float]) -> None:
        """Log the numbers."""
        self._run.log(dict(numbers), step=step)

    def close(self) -> None:
        """Finish the run."""
        self._run.finish()


WATCHERS: dict[str, Callable[[Path, Line], Watcher]] = {
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": WandB,
}
"""Watchers by the name of the required package."""


class Watchers:
    """The requested watchers."""

    def __init__(self, asked: str, run_dir: Path) -> None:
        """Import their packages on every rank; UsageError at the start if one is missing."""
        self._asked = list(dict.fromkeys(name.strip() for name in asked.split(",")))
        for name in self._asked:
            if name not in WATCHERS:
                known = ", ".join(WATCHERS)
                raise UsageError(f"--watch does not support {name!r}. It supports {known}.")
            try:
                importlib.import_module(name)
            except Exception as error:
                raise UsageError(
                    f"--watch {name} needs the Python package {name}, which can't be imported "
                    f"({error}). Install it where the job runs, or omit {name}."
                ) from error
        self._folder = run_dir / "watch"
        self._running: dict[str, Watcher] = {}

    def take(self, line: Line) -> None:
        """Pass a line of metrics.jsonl to the watchers."""
        event, step = line.get("event"), line.get("step")
        if event == "start":
            for name in self._asked:
                self._try(name, partial(self._begin, name, line))
        numbers = _numbers(line)
        for name, watcher in list(self._running.items()):
            if isinstance(step, int) and numbers:
                self._try(name, partial(watcher.add, step, numbers))
            if event in ("stop", "end"):
                self._try(name, watcher.close)

    def _begin(self, name: str, facts: Line) -> None:
        self._running[name] = WATCHERS[name](self._folder / name, facts)

    def _try(self, name: str, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception as error:
            self._running.pop(name, None)
            with suppress(OSError):
                print(f"{name} failed ({error}). Training continues without it.", file=sys.stderr)


def _numbers(line: Line) -> dict[str, float]:
    """Return the numbers of a line, without its step."""
    return {
        name: value
        for name, value in line.items()
        if name not in ("step", "time")
        and isinstance(value, int | float)
        and not isinstance(value, bool)
    }
