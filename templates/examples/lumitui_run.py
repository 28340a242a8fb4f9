"""Lets a training script stop in time, save and report for lumitui. Copy it beside your script.

It needs only Python 3.9. All ranks make the same calls:

    run.start(global_batch=256)
    for step in range(first, steps + 1):
        ...
        run.log(step=step, loss=loss)
        stop = run.stop_requested()
        if stop or step % 100 == 0:
            with run.saving(f"step-{step:08}") as folder:  # run.newest() finds it again
                torch.save(..., folder / "state.pt")
        if stop:
            break
    run.finish()
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

RANK, WORLD_SIZE = int(os.environ.get("RANK") or 0), int(os.environ.get("WORLD_SIZE") or 1)
LOCAL_WORLD_SIZE = int(os.environ.get("LOCAL_WORLD_SIZE") or WORLD_SIZE)
RUN_DIR = Path(os.environ.get("RUN_DIR") or ".").resolve()

_began, _utc = time.monotonic(), time.time()
_signal = _stopping = False
_done: bool | None = None
_exchange: Callable[[list[float]], list[float]] | None = None
_calls, _every, _asked = 0, 1, time.monotonic()
_batch, _last = 0, (0, 0.0)  # the last step that was reported, and when


def _note(number: int, frame: object) -> None:
    global _signal
    _signal = True


def listen() -> None:
    """Note USR1 and TERM instead of being killed; call it again if a library replaced this."""
    with contextlib.suppress(ValueError):  # only the main thread may
        for number in (signal.SIGUSR1, signal.SIGTERM):
            signal.signal(number, _note)


listen()


def stop_requested(exchange: Callable[[list[float]], list[float]] | None = None) -> bool:
    """Return whether to save and stop now, the same on every rank.

    Call it after each step. About every two seconds the ranks exchange it, by torch.distributed
    or by `exchange`, which returns the maximum over all ranks of each number.
    """
    global _calls, _every, _asked, _stopping, _exchange
    _calls += 1
    _exchange = exchange or _exchange
    if _stopping or _calls < _every:
        return _stopping
    wanted = _signal or (RANK == 0 and (RUN_DIR / "stop").exists())
    now = time.monotonic()
    wishes, seconds = _greatest([float(wanted), (now - _asked) / _calls])
    # All ranks have the same numbers now, so that they meet again after the same step.
    _calls, _asked, _every = 0, now, max(1, min(1000, int(2.0 / max(seconds, 1e-6))))
    _stopping = wishes > 0
    return _stopping


def _greatest(values: list[float]) -> list[float]:
    if _exchange:
        return _exchange(values)
    torch: Any = sys.modules.get("torch")  # only if your script has imported it
    group = getattr(torch, "distributed", None)
    if not (group and group.is_available() and group.is_initialized()):
        return values
    gpu = torch.cuda.is_available() and group.get_backend() != "gloo"
    told = torch.tensor(values, dtype=torch.float64, device="cuda" if gpu else "cpu")
    group.all_reduce(told, group.ReduceOp.MAX)
    return list(told.tolist())


def checkpoint_dir() -> Path:
    """Return the checkpoint folder, which `resume:`, `chain:` and `relaunch:` use."""
    folder = RUN_DIR / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def newest(pattern: str = "*", *, last_file: str = "") -> Path | None:
    """Return the checkpoint with the highest number in its name, or None.

    `last_file` is the file that another program writes last: without it, a checkpoint is not
    complete. Hugging Face's Trainer: newest("checkpoint-*", last_file="trainer_state.json").
    """
    found = (path for path in checkpoint_dir().glob(pattern) if not path.name.startswith("."))
    return max((path for path in found if (path / last_file).exists()), key=_number, default=None)


def _number(path: Path) -> int:
    return int((re.findall(r"\d+", path.name) or ["-1"])[-1])


@contextlib.contextmanager
def saving(name: str, *, keep: int = 2) -> Iterator[Path]:
    """Open a folder to save in, which counts once every rank has left it; keep the newest.

    `name` ends in the step's number. All ranks may write into it, on a shared file system, if they
    can meet: by torch.distributed, or by the `exchange` that stop_requested() got.
    """
    aside, folder = checkpoint_dir() / f".{name}", checkpoint_dir() / name
    if RANK == 0:
        shutil.rmtree(aside, ignore_errors=True)  # left by an interrupted save
        aside.mkdir()
    _greatest([0.0])  # wait for all ranks
    yield aside
    _greatest([0.0])  # wait for all ranks
    if RANK == 0:
        if folder.exists():
            folder.rename(checkpoint_dir() / f".old-{name}")
        aside.rename(folder)
        shutil.rmtree(checkpoint_dir() / f".old-{name}", ignore_errors=True)
        like = re.sub(r"\d+", "*", name)
        for old in sorted(checkpoint_dir().glob(like), key=_number)[:-keep]:
            shutil.rmtree(old, ignore_errors=True)
    _greatest([0.0])  # wait for all ranks


def start(*, global_batch: int = 0, **facts: object) -> None:
    """Report that the steps begin. With `global_batch`, samples per step, also report speeds."""
    global _batch, _last
    _batch, _last = global_batch, (0, 0.0)
    log(event="start", time=_utc, world_size=WORLD_SIZE, global_batch=global_batch or None, **facts)


def log(**values: object) -> None:
    """Append numbers, like `step` and `loss`, to metrics.jsonl; `seconds` count from the import."""
    global _last
    if RANK:
        return
    now, step = time.monotonic(), values.get("step")
    if "event" not in values and isinstance(step, int):
        if _batch and 0 < _last[0] < step:
            values.setdefault("samples_per_s", _batch * (step - _last[0]) / (now - _last[1]))
        _last = (step, now)
    values.setdefault("seconds", now - _began)
    line = json.dumps({name: _plain(value) for name, value in values.items()}) + "\n"
    # One write, so that a reader never sees half a line; a full disk costs lines only.
    path = RUN_DIR / "metrics.jsonl"
    with contextlib.suppress(OSError), path.open("a+b", buffering=0) as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            torn = file.read(1) != b"\n"  # an attempt was killed within a line
            line = "\n" * torn + line
        file.write(line.encode())


def _plain(value: Any) -> object:
    value = value.item() if hasattr(value, "item") else value  # a tensor's number
    if isinstance(value, float):
        return value if math.isfinite(value) else None  # JSON has no NaN
    return value if isinstance(value, (str, int, type(None))) else str(value)


def finish(done: bool | None = None) -> NoReturn:
    """End the process: with 0 if the training is `done` (by default: if not stopped), else with 85.

    It does what an interpreter does at its end, except for destructors: on CPUs a gloo thread may
    hold the last tensor, and the process would abort or hang (PyTorch 2.13).
    """
    done = next(one for one in (done, _done, not _stopping) if one is not None)
    log(event="end" if done else "stop", step=_last[0] or None)
    _greatest([0.0])  # wait for all ranks
    if RANK == 0 and _stopping:
        with contextlib.suppress(OSError):
            (RUN_DIR / "stop").unlink()  # otherwise, the next start would stop at once
    for thread in set(threading.enumerate()) - {threading.current_thread()}:
        if not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(0.2)  # a launcher kills the others as soon as one has ended with 85
    os._exit(0 if done else 85)  # saved, not done: `chain:` and `resubmit` continue from it


def hf_callback() -> Any:
    """Return a callback for the Trainer of transformers or TRL, for `callbacks=[...]`."""
    from transformers import TrainerCallback  # type: ignore[import-not-found]

    class RunCallback(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            listen()
            batch = args.train_batch_size * args.gradient_accumulation_steps * WORLD_SIZE
            start(global_batch=batch, first_step=state.global_step + 1)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if stop_requested():
                control.should_save = control.should_training_stop = True

        def on_log(self, args: Any, state: Any, control: Any, **known: Any) -> None:
            told = {name: it for name, it in known["logs"].items() if isinstance(it, (int, float))}
            if "learning_rate" in told:
                told["lr"] = told.pop("learning_rate")
            event = {"event": "eval"} if any(name.startswith("eval_") for name in told) else {}
            if "train_runtime" not in told:  # the sums at the end
                log(step=state.global_step, **event, **told)

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            global _done
            _done = not _stopping or state.global_step >= state.max_steps

    return RunCallback()


def lightning_callback(*, log_every: int = 10) -> Any:
    """Return a callback for Lightning's Trainer, which saves and ends when the run must stop."""
    from lightning.pytorch.callbacks import Callback

    class RunCallback(Callback):
        def on_train_start(self, trainer: Any, module: Any) -> None:
            listen()
            loader, parts = trainer.train_dataloader, trainer.accumulate_grad_batches
            batch = (getattr(loader, "batch_size", None) or 0) * parts * WORLD_SIZE
            start(global_batch=batch, first_step=trainer.global_step + 1)

        def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
            step = trainer.global_step
            if step % log_every == 0 and step > _last[0]:
                log(step=step, epoch=trainer.current_epoch + 1, **trainer.callback_metrics)
            if stop_requested():
                trainer.save_checkpoint(checkpoint_dir() / f"step-{step:08}.ckpt")
                for logger in trainer.loggers:
                    logger.finalize("success")
                # At an early end, Lightning would save once more, as if the epoch were over.
                finish(done=0 < trainer.max_steps <= step)

    return RunCallback()
