"""The wish to stop: a signal, or the file `stop` in the run folder.

Import this before PyTorch, whose import takes seconds in which a signal would kill the process.
Nothing but the standard library is imported here for that reason.
"""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

STOPPED_EARLY = 85
"""Exit code of a trainer that was asked to stop and has saved its checkpoint: the training is
unfinished, so it isn't 0, and nothing is lost, so it isn't 1."""

FILE = "stop"
"""Anybody who can write in the run folder stops a training by touching this file, whatever started
its ranks. A batch script that gets its signal itself (sbatch's `--signal=B:USR1@60`) touches it
in a trap: torchrun kills its ranks 30 s after a signal that it gets, in the middle of a save."""


class StopRequest:
    """Remembers SIGUSR1 (the time limit is near) and SIGTERM (the job is cancelled).

    The handler only notes the signal; the training loop checks it at the end of each step, so
    that no step is interrupted.
    """

    def __init__(self) -> None:
        """Listen from now on; only the main thread may."""
        self.received: str = ""
        """Name of the first signal, or of the file; empty while nobody asked."""
        self._folder: Path | None = None
        self._looks_again = 0.0
        self.listen()

    def listen(self) -> None:
        """Listen again, after a library has taken the signals for itself."""
        for number in (signal.SIGUSR1, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = self.received or signal.Signals(number).name

    def watch(self, folder: Path) -> None:
        """Look for the file too, on this rank: one rank is enough, it tells the others."""
        self._folder = folder

    def wanted(self) -> bool:
        """Whether this rank was asked; looks for the file once a second at most."""
        now = time.monotonic()
        if not self.received and self._folder and now >= self._looks_again:
            self._looks_again = now + 1
            if (self._folder / FILE).exists():
                self.received = "the file stop"
        return bool(self.received)

    def done(self) -> None:
        """Take the file away, so that the next attempt does not stop at its first step."""
        if self._folder:
            with suppress(OSError):
                (self._folder / FILE).unlink(missing_ok=True)


STOP = StopRequest()
