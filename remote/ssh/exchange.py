"""One framed request over one SSH channel: send the script, read both outputs, block on neither."""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

from lumitui.remote.errors import LinkError, LinkLost
from lumitui.remote.transport.framing import Framing

_POLL = 0.3
_PACKET = 1 << 15  # the most OpenSSH takes in one packet of a session


class Channel(Protocol):
    """What is used of a channel; its reads and writes wait at most the time set."""

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        ...

    def recv_ready(self) -> bool:
        """Whether output waits."""
        ...

    def recv(self, nbytes: int, /) -> bytes:
        """Output; empty at the end; TimeoutError when none came."""
        ...

    def recv_stderr_ready(self) -> bool:
        """Whether errors wait."""
        ...

    def recv_stderr(self, nbytes: int, /) -> bytes:
        """As `recv`, for standard error."""
        ...

    def send(self, s: bytes, /) -> int:
        """Send some of `s`; TimeoutError while the far side takes nothing."""
        ...

    def settimeout(self, timeout: float | None, /) -> None:
        """Seconds a call may wait."""
        ...

    def shutdown_write(self) -> None:
        """Tell the far side that no more input comes."""
        ...

    def close(self) -> None:
        """End the channel."""
        ...

    def exit_status_ready(self) -> bool:
        """Whether the channel has ended."""
        ...

    def recv_exit_status(self) -> int:
        """Exit status, -1 when none was told."""
        ...


class Exchange:
    """The two outputs of one request as far as they have come."""

    def __init__(self, channel: Channel, framing: Framing) -> None:
        """Talk over `channel`, whose command is `framing`'s."""
        channel.settimeout(_POLL)
        self.channel = channel
        self.out: list[bytes] = []
        self.err: list[bytes] = []
        self.readers = (framing.reader(), framing.reader())
        self._over = [False, False]

    @property
    def ended(self) -> bool:
        """Both outputs are complete, or nothing more can come."""
        return all(self._finished(index) for index in (0, 1))

    def _finished(self, index: int) -> bool:
        return self._over[index] or self.readers[index].code is not None

    def write(self, data: Iterable[bytes], check: Callable[[], None]) -> None:
        """Send all of `data`, reading meanwhile; stop early when the script needs no more.

        `check` is called while the far side takes nothing; it raises to give up.
        """
        for piece in data:
            start = 0
            while start < len(piece):
                self._read_ready()
                if self._finished(0):
                    return
                try:
                    start += self.channel.send(piece[start : start + _PACKET])
                except TimeoutError:
                    check()
                except OSError:  # closed from the far side; what it said tells why
                    return

    def finish(self) -> None:
        """No more input comes."""
        with suppress(OSError):  # closed from the far side already
            self.channel.shutdown_write()

    def step(self) -> None:
        """Take what has come, waiting a moment when nothing has."""
        if self._read_ready():
            return
        try:
            self._take(0 if not self._finished(0) else 1)
        except TimeoutError:
            return

    def _read_ready(self) -> bool:
        """Take what waits without waiting; return whether there was any."""
        waiting = (self.channel.recv_ready(), self.channel.recv_stderr_ready())
        for index, ready in enumerate(waiting):
            if ready:
                self._take(index)
        return any(waiting)

    def _take(self, index: int) -> None:
        data = (self.channel.recv, self.channel.recv_stderr)[index](1 << 16)
        self._over[index] = not data
        own = self.readers[index].feed(data)
        if own:
            (self.out, self.err)[index].append(own)

    def code(self, place: str) -> int:
        """Exit status of the script that ended.

        Raises:
            LinkError: the login shell ended without starting it.
            LinkLost: the connection ended before the closing mark came.
        """
        reader = self.readers[0]
        if reader.code is not None:
            return reader.code
        deadline = time.monotonic() + 2.0  # the status may follow the end of the output
        while not self.channel.exit_status_ready() and time.monotonic() < deadline:
            time.sleep(0.02)
        told = self.channel.exit_status_ready() and self.channel.recv_exit_status() >= 0
        if told and not reader.opened:
            words = self.readers[1].noise or reader.noise or "it said nothing"
            raise LinkError(
                f"The login shell at {place} ran no command; its last words: "
                f"{words.splitlines()[-1]}",
                "Check that `ssh HOST true` works, and what your login files do.",
            )
        raise LinkLost(
            f"The connection to {place} was lost during a request.",
            "Whether it was carried out is not known; it will be looked up when the site answers.",
        )
