"""The stop request: a signal, or the file `stop` in the run folder.

Import this module first: until it listens, a signal kills the process. So it begins with `_signal`,
which is built into the interpreter; importing `signal` and the rest took 30 to 100 ms more. A
launcher can close the remaining gap: `env --block-signal=USR1,TERM python3 ddp.py` holds back
signals from before Python runs until this module listens.
"""
# ruff: noqa: E402

from __future__ import annotations

import _signal  # type: ignore[import-not-found]

_early: list[int] = []
"""Signals that arrived before the class below existed."""
for _number in (_signal.SIGUSR1, _signal.SIGTERM):
    _signal.signal(_number, lambda number, frame: _early.append(number))
_signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGUSR1, _signal.SIGTERM))

# isort: split
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

STOPPED_EARLY = 85
"""Exit code of a trainer that saved its checkpoint after a stop request: not 0, because the
training is unfinished, and not 1, because nothing is lost."""
FAILED = 1
"""Exit code of a rank that Slurm ended because another one failed."""
FILE = "stop"
"""Creating this file in the run folder stops a training run, whatever started its ranks. A batch
script that receives the signal itself (sbatch's `--signal=B:USR1@60`) creates it in a trap, because
torchrun kills its ranks 30 s after it gets a signal, even during a save.
"""


class StopRequest:
    """Records SIGUSR1 (the time limit is near) and SIGTERM (the job is cancelled).

    The handler only records the signal; the training loop checks it at the end of each step, so
    that no step is interrupted.
    """

    def __init__(self) -> None:
        """Start to listen; only allowed in the main thread."""
        self.received: str = ""
        """Name of the first signal or of the file; empty without a request."""
        self._rank = 0
        self._folder: Path | None = None
        self._followed: Callable[[], bool] = bool
        self._looks_again = 0.0
        self._old_errors: dict[str, int] = {}
        self.listen()
        for number in _early:
            self._note(number, None)
        # Python runs a handler only when the main thread returns from C, which never happens while
        # it waits for another rank there. The signal's number is in this pipe immediately.
        self._numbers, write = os.pipe()
        for end in (self._numbers, write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def listen(self) -> None:
        """Listen again after a library has replaced the handlers."""
        for number in (signal.SIGUSR1, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = self.received or signal.Signals(number).name

    def watch(self, folder: Path, rank: int, followed: Callable[[], bool] = bool) -> None:
        """Also watch the run folder; only rank 0 checks for the file and informs the others.

        `followed` returns whether a later start of the training has taken over.
        """
        self._folder, self._rank, self._followed = folder, rank, followed
        self._old_errors = self._errors()

    def wanted(self) -> bool:
        """Return whether this rank got a request; checks the run folder at most once a second."""
        now = time.monotonic()
        if not self.received and self._folder and not self._rank and now >= self._looks_again:
            self._looks_again = now + 1
            if (self._folder / FILE).exists():
                self.received = "the file stop"
            elif self._followed():
                self.received = "a later start"
        return bool(self.received) and self.failed_rank() is None

    def failed_rank(self) -> int | None:
        """Return the failed rank that caused SIGTERM; None for a stop request.

        Slurm 26.05 sends SIGTERM to the other ranks when one has failed, and SIGKILL only after
        KillWait. A failed rank writes its error into `errors/` of the run folder before it ends.
        """
        with suppress(OSError):  # nothing came
            for number in os.read(self._numbers, 64):
                if number in (signal.SIGUSR1, signal.SIGTERM):
                    self._note(number, None)
        if self.received != "SIGTERM":
            return None
        new = (name for name, at in self._errors().items() if self._old_errors.get(name) != at)
        ranks = (int(name.removeprefix("rank-").removesuffix(".json")) for name in new)
        return min((rank for rank in ranks if rank != self._rank), default=None)

    def _errors(self) -> dict[str, int]:
        """Return the names of the ranks' error files, with their times."""
        found = {}
        with suppress(OSError):
            for path in (self._folder or Path()).glob("errors/rank-*.json"):
                found[path.name] = path.stat().st_mtime_ns
        return found

    def done(self) -> None:
        """Remove the file, so that the next attempt does not stop at its first step."""
        if self._folder and not self._rank:
            with suppress(OSError):
                (self._folder / FILE).unlink(missing_ok=True)


STOP = StopRequest()
