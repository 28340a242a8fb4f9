"""Sends many requests over one connection, which threads share, with one channel opened ahead.

A request costs two round trips: starting the command, and sending the script and reading its
answer. sshd accepts no input before the command runs, so these cannot be combined. Opening the next
channel while an answer is on its way saves a third round trip.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain

from lumitui.remote.site.answer_fields import last_words
from lumitui.remote.site.errors import LinkError, LinkLost
from lumitui.remote.site.shell_text import quote
from lumitui.remote.ssh.link import Channel, ChannelRefused, CommandRefused, Link
from lumitui.remote.ssh.prompts import is_attended
from lumitui.remote.transport.framing import Framing, Outputs, check_stream, pieces
from lumitui.remote.transport.transport import Result

_POLL = 0.3
_PACKET = 1 << 15  # the maximum that OpenSSH accepts in one packet of a session


class RequestExchange:
    """One running request: its channel, and the received parts of its two outputs."""

    def __init__(self, channel: Channel, framing: Framing) -> None:
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
        """Read received data, or wait a moment for it."""
        if self._read_ready():
            return
        try:
            self._take(0 if not self._finished(0) else 1)
        except TimeoutError:
            return

    def _read_ready(self) -> bool:
        """Read received data without waiting; return whether there was any."""
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
            words = last_words(other.noise, reader.noise, default="")
            said = f"; its last line: {words}" if words else " and printed nothing"
            raise LinkError(
                f"The login shell at {place} ran no command{said}{'.' * (said[-1] not in '.?!')}",
                "Check that `ssh HOST true` works, and check your shell startup files.",
            )
        raise LinkLost(
            f"The connection to {place} was lost during a request.",
            "If it was meant to change something, lumitui checks the result once the site answers.",
        )


_SETTLE = 3.0  # sshd frees a session a moment after its channel is closed
_STARTING = 120.0
"""Seconds within which a streamed script must begin: shell startup files may mount a home
folder."""
_SIGN_OF_LIFE = 5.0
"""Seconds of silence after which lumitui checks a streamed script's server, whatever the
configuration sets: a user is reading the stream."""
_FREEING = 0.05  # seconds of that moment; an earlier request costs a round trip and 0.1 s more


class Requests:
    """`Transport.run`, `stream` and `close` over a link that is opened when needed."""

    def __init__(self, connect: Callable[[Callable[[], bool]], Link]) -> None:
        """Open links with `connect`, which gets a function that returns true when it must stop."""
        self._connect = connect
        self.requests = 0
        """Requests sent; part of the footprint."""
        self._link: Link | None = None
        self._connecting = threading.Lock()
        self._failure: LinkError | None = None
        self._failures = self._closings = 0
        self._failed_attended = False
        self._pool = threading.Condition()
        self._spare: tuple[Link, Channel] | None = None
        """The spare channel with its link: using a lost link's channel would close the next
        link."""
        self._spares = True
        self._busy = 0
        self._released = 0.0

    def run(
        self, script: str, *, stdin: bytes | Iterable[bytes] = b"", timeout: float = 60.0
    ) -> Result:
        """Run `script` with `stdin`; see `Transport.run`."""
        framing = Framing()
        payload = framing.payload(script)
        link, channel = self._start(framing.command(), timeout)
        talk = RequestExchange(channel, framing)
        deadline = time.monotonic() + timeout

        def check() -> None:
            if time.monotonic() > deadline:
                self._given_up(link, timeout)

        try:
            talk.write(chain([payload], pieces(stdin)), check)
            talk.finish()
            self._open_spare(link)
            while not talk.ended:
                check()
                talk.step()
            return Result(talk.code(link.address), talk.outputs.take(), talk.outputs.errors)
        finally:
            self._release(channel)

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        """Yield the output of `script` as it arrives; see `Transport.stream`.

        Raises:
            RefusedError: the script ended with a status other than 0; carries its last line.
        """
        framing = Framing()
        payload = framing.payload(script)
        link, channel = self._start(framing.command(watched=True), 60.0)
        talk = RequestExchange(channel, framing)
        heard = began = time.monotonic()

        def check() -> None:
            if not talk.begun and time.monotonic() - began > _STARTING:
                self._given_up(link, _STARTING)

        try:
            talk.write([payload], check)
            while not stop():
                check()
                talk.step()
                chunk = talk.outputs.take()
                if chunk:
                    heard = time.monotonic()
                elif time.monotonic() - heard > min(link.alive_seconds, _SIGN_OF_LIFE):
                    heard = time.monotonic()
                    link.check()
                if not talk.ended:
                    yield chunk
                    continue
                if chunk:
                    yield chunk
                check_stream(talk.code(link.address), talk.outputs.errors)
                return
        finally:
            self._release(channel)

    def attach(self, path: str, *, terminal: bool) -> int:
        """Run the script at `path` on the server, connected to this process's standard streams.

        Returns:
            Its exit status.

        Raises:
            LinkError: no connection could be opened.
            LinkLost: the connection ended first.
        """
        from lumitui.remote.ssh.terminal_relay import relay, request_terminal

        link = self._connected()
        channel, _ = self._take(link, 60.0)
        try:
            if terminal:
                request_terminal(channel)
            link.begin(channel, f"exec /bin/sh {quote(path)}", link.timeout)
            self.requests += 1
            return relay(channel, terminal=terminal)
        except CommandRefused as error:
            raise _refuses_commands(link) from error
        finally:
            self._release(channel)

    def tunnel(self, host: str, port: int) -> Channel:
        """Return a channel through the server to a port of another host.

        Raises:
            ConnectionRefusedError: nothing listens there, or the server forbids forwarding.
            LinkError: no connection could be opened.
        """
        return self._connected().tunnel(host, port)

    def close(self) -> None:
        """End the connection, even while it is being opened; a later request opens a new one."""
        self._closings += 1
        link, self._link, self._spare = self._link, None, None
        if link is not None:
            link.close()

    def _connected(self) -> Link:
        """Return the link; open it if there is none.

        Threads that wait for a failing attempt share its failure, so that the user is asked once.
        If the attempt had no user, a waiting thread with a user tries again.
        """
        failures, attended = self._failures, is_attended()
        with self._connecting:
            link = self._link
            if link is not None and link.alive():
                return link
            failed = self._failure if self._failures != failures else None
            if failed is not None and (self._failed_attended or not attended):
                raise type(failed)(failed.message, failed.hint)
            if link is not None:
                link.close()  # a dead link may still have a jump host's connection
            self._link, self._spare, self._spares = None, None, True
            closings = self._closings
            try:
                link = self._connect(lambda: self._closings != closings)
            except LinkError as error:
                self._failure, self._failures = error, self._failures + 1
                self._failed_attended = attended
                raise
            if self._closings != closings:
                link.close()
                raise LinkError("The connection was closed while it was being opened.")
            self._link = link
            return link

    def _start(self, command: str, timeout: float) -> tuple[Link, Channel]:
        """Start `command` in a channel. Nothing has run until this returns, so it may retry."""
        lost = False
        for _ in range(3):
            link = self._connected()
            channel: Channel | None = None
            try:
                channel, spare = self._take(link, timeout)
                link.begin(channel, command, link.timeout)
                self.requests += 1
                return link, channel
            except CommandRefused as error:
                self._release(channel)
                if not spare:
                    raise _refuses_commands(link) from error
            except LinkError:
                self._release(channel)
                if lost or link.alive():
                    raise
                lost = True
        raise LinkError(
            f"{link.address} closes every channel before a command starts.",
            "Try again in a minute; otherwise ask the site whether it limits sessions.",
        )

    def _take(self, link: Link, timeout: float) -> tuple[Channel, bool]:
        """Return a channel, and whether it was the spare. If all are in use, wait for one."""
        with self._pool:
            spare, self._spare = self._spare, None
            self._busy += 1
            if spare is not None and spare[0] is link and not spare[1].closed:
                return spare[1], True
        if not self._spares:  # the server allows few sessions: the last one may not be free yet
            time.sleep(max(0.0, self._released + _FREEING - time.monotonic()))
        began, pause = time.monotonic(), 0.1
        while True:
            try:
                return link.open(link.timeout), False
            except ChannelRefused as error:
                with self._pool:
                    self._spares = False
                    others = self._busy > 1
                    if time.monotonic() - began < (timeout if others else _SETTLE):
                        self._pool.wait(pause)
                        pause = min(pause * 1.5, 2.0)
                        continue
                    self._busy -= 1
                raise LinkError(
                    f"{link.address} does not allow more sessions on this connection.",
                    "Close the open log, which uses a session, and try again.",
                ) from error
            except LinkError:
                with self._pool:
                    self._busy -= 1
                raise

    def _open_spare(self, link: Link) -> None:
        with self._pool:
            if self._spare is not None or not self._spares:
                return
        try:
            spare = link.open(link.timeout, ahead=True)
        except ChannelRefused:
            self._spares = False
        except LinkError:
            return  # the current request notices it too, and raises
        else:
            with self._pool:
                kept = self._spare is None and self._link is link
                if kept:
                    self._spare = (link, spare)
            if not kept:
                with suppress(OSError):
                    spare.close()

    def _release(self, channel: Channel | None) -> None:
        if channel is None:
            return
        with suppress(OSError):
            channel.close()
        with self._pool:
            self._busy -= 1
            self._released = time.monotonic()
            self._pool.notify_all()

    def _given_up(self, link: Link, timeout: float) -> None:
        """Raise LinkLost; `Link.open` also closes a link that does not open a channel."""
        # A refusal is an answer; the other errors have closed the link.
        with suppress(ChannelRefused, LinkError, OSError):
            link.open(min(link.timeout, _SETTLE)).close()
        raise LinkLost(
            f"{link.address} did not answer within {timeout:g} s.",
            "If the request was meant to change something, lumitui checks later whether it did.",
        )


def _refuses_commands(link: Link) -> LinkError:
    return LinkError(
        f"The server refuses to run commands for {link.address}.",
        "Ask the site whether this login is for file transfer only.",
    )
