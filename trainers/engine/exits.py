"""How a trainer ends: errors in two sentences, exit codes, and error files of ranks."""

from __future__ import annotations

import os
import shutil
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import get_error_handler


class TrainingError(Exception):
    """An error in two sentences (what happened, what to try) instead of a traceback."""

    code = 1
    by_every_rank = False
    """Whether each rank prints it; otherwise the first of each node does, as all have the same
    error."""


class UsageError(TrainingError):
    """Wrong arguments, data, configuration or launch, which a user can fix."""

    code = 2


def run(main: Callable[[], None]) -> NoReturn:
    """Run a trainer's `main` and end the process with its exit code.

    0: trained to the end. A TrainingError has its own code and is printed as a sentence, by the
    first rank of each node or by each rank that has it. SystemExit keeps its code, and Ctrl-C is
    130. Any other exception is 1: its traceback is printed, and stored with message and time in
    $RUN_DIR/errors/rank-N.json, in the format of PyTorch's `record`.
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
        # Every rank must have left the last collective before the first one closes its sockets.
        time.sleep(0.2)
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    # No interpreter teardown. It takes 0.1 to 0.5 s per rank, in which a launcher that has seen a
    # nonzero exit code kills the other ranks and reports their 137. Also, a thread of gloo may
    # still hold the last collective's tensor: releasing it during teardown aborts the process
    # (PyTorch 2.13: exit code 134 in 10 of 14 short trainings that had succeeded).
    os._exit(code)


def _recorded(main: Callable[[], None]) -> None:
    """Run `main`; write an exception to the error file and raise it again."""
    rank = os.environ.get("RANK") or "0"
    mine = Path(os.environ.get("RUN_DIR", ".")) / "errors" / f"rank-{rank}.json"
    try:
        mine.parent.mkdir(parents=True, exist_ok=True)
        mine.unlink(missing_ok=True)  # an earlier attempt's error is not this one's
    except OSError as error:
        raise UsageError(
            f"The run folder can't be written: {error}. Set RUN_DIR to one of your own folders."
        ) from error
    # torchrun sets its own file in a temporary folder and reads it; then ours is a copy.
    file = Path(os.environ.setdefault("TORCHELASTIC_ERROR_FILE", str(mine)))
    handler = get_error_handler()
    handler.initialize()
    try:
        main()
    except Exception as error:
        if isinstance(error, torch.cuda.OutOfMemoryError):
            _keep_memory(mine.parents[1] / "memory" / f"rank-{rank}.pickle")
        with suppress(OSError):  # on a full disk, the training's error counts
            handler.record_exception(error)
            if file != mine:
                shutil.copyfile(file, mine)
        raise


def _keep_memory(path: Path) -> None:
    """Write a snapshot of GPU memory for pytorch.org/memory_viz."""
    with suppress(OSError, RuntimeError):
        path.parent.mkdir(exist_ok=True)
        torch.cuda.memory._dump_snapshot(str(path))  # type: ignore[no-untyped-call]
        print(
            f"{path} lists the contents of the GPU's memory: open it at pytorch.org/memory_viz.",
            file=sys.stderr,
        )
