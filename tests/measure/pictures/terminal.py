"""A program on a terminal of its own, as `make bench-tui` drives it."""

import fcntl
import os
import pty
import select
import statistics
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

ROWS, COLUMNS = 40, 120
CLOCK = 2
"""The kind of a process's clock for which each thread counts. source: CPUCLOCK_SCHED of Linux"""


class Terminal:
    """A program on a terminal of 120x40. All that it prints is read, and none of it drawn."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str]) -> None:
        """Start `argv`."""
        self._began = time.perf_counter()
        self.pid, self._screen = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], list(argv), dict(environ))
        fcntl.ioctl(self._screen, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def __enter__(self) -> Self:
        """Return the terminal."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """End the program."""
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self._screen)

    def _read(self, seconds: float) -> bytes:
        if not select.select([self._screen], [], [], seconds)[0]:
            return b""
        return os.read(self._screen, 1 << 20)

    def wait_for(self, text: str, seconds: float = 120) -> tuple[float, float]:
        """Return the seconds from the start until `text` is printed, and those of the processor."""
        seen, deadline = b"", time.perf_counter() + seconds
        while text.encode() not in seen:
            if time.perf_counter() > deadline:
                raise SystemExit(f"{text!r} was not printed: {seen[-500:]!r}")
            seen = seen[-len(text) * 4 :] + self._read(0.5)
        return time.perf_counter() - self._began, self.processor()

    def idle(self, seconds: float) -> None:
        """Read for `seconds` what it prints."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self._read(left)

    def settle(self, quiet: float = 0.3, most: float = 10) -> None:
        """Read until nothing is printed for `quiet` seconds."""
        end = time.perf_counter() + most
        while self._read(quiet) and time.perf_counter() < end:
            pass

    def send(self, keys: str) -> None:
        """Type `keys`."""
        os.write(self._screen, keys.encode())

    def key(self, key: str) -> tuple[float, float]:
        """Type a key; return the seconds until something is printed, and the processor's."""
        while self._read(0.0):
            pass
        began, before = time.perf_counter(), self.processor()
        self.send(key)
        self._read(30)
        return time.perf_counter() - began, self.processor() - before

    def p95(self, keys: str, times: int, every: float = 0.1) -> tuple[float, float]:
        """Type `keys` in turn, `times` in all; return the 95th percentiles of `key`."""
        took = []
        for number in range(times):
            took.append(self.key(keys[number % len(keys)]))
            self.idle(every)
        wall, processor = (
            statistics.quantiles(column, n=20)[-1] for column in zip(*took, strict=True)
        )
        return wall, processor

    def processor(self) -> float:
        """Return the processor's seconds so far (Linux; elsewhere 0).

        /proc counts in hundredths of a second: too coarse for a program that does nothing.
        """
        if sys.platform != "linux":
            return 0.0
        try:
            return time.clock_gettime(~self.pid << 3 | CLOCK)
        except OSError:
            return 0.0

    def memory(self) -> float:
        """Return the most megabytes that it had so far (Linux; elsewhere 0)."""
        try:
            with open(f"/proc/{self.pid}/status") as file:
                found = [line for line in file if line.startswith("VmHWM")]
        except OSError:
            return 0.0
        return int(found[0].split()[1]) / 1e3
