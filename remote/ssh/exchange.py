"""One framed request over an SSH channel: sends the script and reads both outputs."""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from lumitui.remote.site.answer_fields import last_words
from lumitui.remote.site.errors import LinkError, LinkLost
from lumitui.remote.ssh.link import Channel
from lumitui.remote.transport.answer_limits import Outputs
from lumitui.remote.transport.framing import Framing

_POLL = 0.3
_PACKET = 1 << 15  # the most OpenSSH takes in one packet of a session


class RequestExchange:
    """One running request: its channel, and what has arrived of its two outputs."""

    def __init__(self, channel: Channel, framing: Framing) -> None:
        """Use `channel`, which runs the command of `framing`."""
        channel.settimeout(_POLL)
        self.channel = channel
        self.outputs = Outputs(framing)
        self._over = [False, False]

    @property
    def ended(self) -> bool:
        """Whether both outputs are complete, or nothing more can arrive."""
        return all(self._finished(index) for index in (0, 1))

    @property
    def begun(self) -> bool:
        """Whether the script has started."""
        return self.outputs.readers[0].opened

    def _finished(self, index: int) -> bool:
        return self._over[index] or self.outputs.ended(index)

    def write(self, data: Iterable[bytes], check: Callable[[], None]) -> None:
        """Send `data` while reading the outputs; stop early if the script has ended.

        This calls `check`, which may raise, before each packet and while the server accepts none.
        """
        for piece in data:
            start = 0
            while start < len(piece):
                self._read_ready()
                if self._finished(0):
                    return
                check()
                try:
                    start += self.channel.send(piece[start : start + _PACKET])
                except TimeoutError:
                    continue
                except OSError:  # the server closed it; the output shows why
                    return

    def finish(self) -> None:
        """Close the script's standard input."""
        with suppress(OSError):  # already closed by the server
            self.channel.shutdown_write()

    def step(self) -> None:
        """Read what has arrived, or wait a moment for it."""
        if self._read_ready():
            return
        try:
            self._take(0 if not self._finished(0) else 1)
        except TimeoutError:
            return

    def _read_ready(self) -> bool:
        """Read what has arrived, without waiting; return whether there was any."""
        waiting = (self.channel.recv_ready(), self.channel.recv_stderr_ready())
        for index, ready in enumerate(waiting):
            if ready:
                self._take(index)
        return any(waiting)

    def _take(self, index: int) -> None:
        try:
            data = (self.channel.recv, self.channel.recv_stderr)[index](1 << 16)
        except TimeoutError:
            raise
        except OSError:  # the connection is lost, so `code` misses the closing mark
            data = b""
        self._over[index] = not data
        self.outputs.feed(index, data)

    def code(self, place: str) -> int:
        """Return the exit status of the ended script.

        Raises:
            LinkError: the login shell ended without starting it.
            LinkLost: the connection ended before the closing mark arrived.
        """
        reader, other = self.outputs.readers
        if reader.code is not None:
            return reader.code
        deadline = time.monotonic() + 2.0  # the status may follow the end of the output
        while not self.channel.exit_status_ready() and time.monotonic() < deadline:
            time.sleep(0.02)
        ended = self.channel.exit_status_ready() and self.channel.recv_exit_status() >= 0
        if ended and not reader.opened:
            words = last_words(other.noise, reader.noise, default="it printed nothing")
            raise LinkError(
                f"The login shell at {place} ran no command; its last line: {words}.",
                "Check that `ssh HOST true` works, and check your login files.",
            )
        raise LinkLost(
            f"The connection to {place} was lost during a request.",
            "It is unknown whether it was carried out; lumitui checks this when the site answers.",
        )
