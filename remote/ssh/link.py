"""A logged-in connection: opens channels, and notices a silent server."""

import socket
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import cast

import paramiko
from paramiko.packet import Packetizer

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.config import HostConfig

BROKEN = (paramiko.SSHException, EOFError, OSError)
"""Exceptions of paramiko when a connection or a request fails."""

MOST_PACKET = 1 << 18
"""Maximum bytes of one packet: OpenSSH accepts no larger ones (packet.c), and sends at most 32 KiB
of data in one. A packet's length is read before its checksum, so it may be damaged."""
MOST_BANNER = 1 << 16
"""Maximum bytes that a server may send before its version; OpenSSH reads 8 KiB and 1,024 lines."""

_ENDURE = 300.0
"""Seconds of silence after which lumitui closes even a connection that cost a code."""
_BANNER_SECONDS = 60.0
"""Seconds within which a server must send its version."""


class ChannelRefused(Exception):
    """The server opens no more channels now (MaxSessions)."""


class CommandRefused(Exception):
    """The server opened a channel, but refused to run a command in it."""


class SshTransport(paramiko.Transport):
    """A paramiko transport that turns all errors about received data into an SSHException.

    paramiko reads packets in a thread, and raises that thread's errors in a caller unchanged. After
    flipped bits, these are cryptography's InvalidTag, struct.error, IndexError and others.
    """

    def __init__(self, sock: object) -> None:
        """Use `sock`; send nothing yet."""
        super().__init__(cast(paramiko.Channel, sock), packetizer_class=_Packetizer)
        self.offered: Mapping[str, Sequence[str]] = {}
        """The server's last lists of algorithms, by paramiko's names."""

    def _parse_kex_init(self, m: paramiko.Message) -> None:
        """Keep the server's lists, and agree on algorithms; no checksum protects them yet."""
        lists = self._really_parse_kex_init(paramiko.Message(m.asbytes()))  # type: ignore[attr-defined]
        self.offered = {name: value for name, value in lists.items() if isinstance(value, list)}
        super()._parse_kex_init(m)  # type: ignore[misc]  # not in its stubs

    def get_exception(self) -> Exception | None:
        """Return the error that ended the connection, once; None if it is unknown."""
        error = super().get_exception()
        if error is None or isinstance(error, BROKEN) or _asked(error):
            return error
        lost = paramiko.SSHException(f"a packet was damaged in transit: {type(error).__name__}")
        lost.__cause__ = error
        return lost


def _asked(error: Exception) -> bool:
    """Return whether `error` comes from a question to the user, asked in paramiko's thread."""
    frames = traceback.walk_tb(error.__traceback__)
    names = (str(frame.f_globals.get("__name__")) for frame, _ in frames)
    return any(name.endswith(".ssh.auth") for name in names)


class _Packetizer(Packetizer):
    """A paramiko packet reader that limits the size of packets and of the banner."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._banner, self._began = 0, 0.0

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:
        if not 0 <= n <= MOST_PACKET:
            raise paramiko.SSHException(f"a packet was damaged in transit: {n} bytes long")
        return super().read_all(n, check_rekey)

    def _read_timeout(self, timeout: float) -> bytes:
        """Return some bytes of the banner."""
        self._began = self._began or time.monotonic()
        data: bytes = super()._read_timeout(timeout)  # type: ignore[misc]  # not in its stubs
        self._banner += len(data)
        if self._banner > MOST_BANNER or time.monotonic() - self._began > _BANNER_SECONDS:
            raise paramiko.SSHException("the server did not send its version")
        return data


class Channel:
    """A channel that turns all of paramiko's errors into an OSError.

    If the socket is closed and no thread has noticed, paramiko raises EOFError on sending, and on
    receiving, which sends a window size. click treats an EOFError as Ctrl-D.
    """

    def __init__(self, channel: paramiko.Channel) -> None:
        """Wrap the open `channel`."""
        self.inner = channel
        self._room = 0
        self.recv_ready, self.recv_stderr_ready = channel.recv_ready, channel.recv_stderr_ready
        self.settimeout = channel.settimeout
        self.exit_status_ready = channel.exit_status_ready
        self.recv_exit_status = channel.recv_exit_status

    @property
    def closed(self) -> bool:
        """Whether the channel has ended."""
        return bool(self.inner.closed)

    def recv(self, nbytes: int, /) -> bytes:
        """Return some received bytes; b"" at the end."""
        with _as_oserror():
            return self.inner.recv(nbytes)

    def recv_stderr(self, nbytes: int, /) -> bytes:
        """Return some received bytes of stderr; b"" at the end."""
        with _as_oserror():
            return self.inner.recv_stderr(nbytes)

    def send(self, s: bytes, /) -> int:
        """Send some of `s`; wait for more than a small window, as TCP does (RFC 9293, 3.8.6.2.1).

        sshd enlarges its window after each 96 KiB that it has read (channels.c). Filling it at once
        woke both sides over 70 times in a transfer of 12 MB; waiting for three eighths of the
        largest window so far takes some 25. Then 1.25 MiB stay in flight: enough for 100 Mbit/s at
        100 ms. On a link for which sshd's 2 MiB are too few, this takes 8 % longer (12 MB at 200
        ms: 1.71 s instead of 1.56).
        """
        channel = self.inner
        with channel.lock:
            self._room = max(self._room, channel.out_window_size)
            if channel.out_window_size < len(s):
                channel.out_buffer_cv.wait_for(
                    lambda: channel.closed or channel.out_window_size >= self._room * 3 // 8,
                    channel.gettimeout(),
                )
        with _as_oserror():
            return channel.send(s)

    def shutdown_write(self) -> None:
        """Signal the end of the input."""
        with _as_oserror():
            self.inner.shutdown_write()

    def shutdown(self, how: int, /) -> None:
        """End one direction, or both; see `socket.shutdown`."""
        with _as_oserror():
            self.inner.shutdown(how)

    def close(self) -> None:
        """End the channel."""
        with _as_oserror():
            self.inner.close()


@contextmanager
def _as_oserror() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise
    except BROKEN as error:
        raise OSError(str(error) or "the connection ended") from error


class Link:
    """The connected hops, the last of which is the site's.

    A `precious` link needed a user's answer, like a one-time code. A stalled network does not close
    it, since a new link would prompt again; meanwhile requests fail.
    """

    def __init__(
        self, hops: list[paramiko.Transport], host: HostConfig, *, precious: bool = False
    ) -> None:
        """Use the logged-in `hops`; `host` is the last."""
        self._hops, self.address, self.timeout = hops, host.address, host.connect_timeout
        self.alive_seconds = host.alive
        self._precious = precious
        self._silent: float | None = None
        self._given_up = 0.0
        self._opening, self._checking = threading.Lock(), threading.Lock()

    def alive(self) -> bool:
        """Return whether the link can send requests."""
        return self._hops[-1].is_active()

    def close(self) -> None:
        """End the connection and all channels."""
        for transport in reversed(self._hops):
            transport.close()

    def open(self, seconds: float, *, ahead: bool = False) -> Channel:
        """Open a channel; raise ChannelRefused, or LinkError if the server is silent.

        Opening a channel `ahead` never closes the link, which has a running request.
        """
        began = time.monotonic()
        with self._opening:  # paramiko keeps one refusal for all threads
            # The server may still open an abandoned channel, and count it. A thread that waited
            # here while another gave up has waited long enough.
            if self._silent is not None and (self._given_up > began or not self._answers(seconds)):
                raise self._unanswered(TimeoutError("still silent"))
            try:
                channel = Channel(self._hops[-1].open_session(timeout=seconds))
            except paramiko.ChannelException as error:
                self._silent = None
                raise ChannelRefused from error
            except BROKEN as error:
                raise self._unanswered(error, keep=ahead) from error
            self._silent = None
            return channel

    def tunnel(self, host: str, port: int) -> Channel:
        """Open a channel through the server to a port of `host`; `begin` does not apply to it.

        Raises:
            ConnectionRefusedError: nothing listens there, or the server forbids forwarding.
            LinkError: the server is silent.
        """
        try:
            return Channel(
                self._hops[-1].open_channel(
                    "direct-tcpip", (host, port), ("127.0.0.1", 0), timeout=self.timeout
                )
            )
        except paramiko.ChannelException as error:
            raise ConnectionRefusedError(error.code, error.text) from error
        except BROKEN as error:
            raise self._unanswered(error, keep=True) from error

    def begin(self, channel: Channel, command: str, seconds: float) -> None:
        """Start `command`; raise CommandRefused, or LinkError if the server is silent."""
        late = threading.Event()

        def give_up() -> None:
            late.set()
            with suppress(OSError):  # the channel has just ended
                channel.close()

        guard = threading.Timer(seconds, give_up)  # exec_command itself waits without a limit
        guard.daemon = True
        guard.start()
        try:
            channel.inner.exec_command(command)
            self._silent = None
        except BROKEN as error:
            refused = isinstance(error, paramiko.SSHException)  # otherwise the socket is closed
            if refused and self.alive() and not late.is_set():
                raise CommandRefused from error
            raise self._unanswered(error) from error
        finally:
            guard.cancel()

    def check(self) -> None:
        """Check in another thread whether the server answers; if not, close the link."""

        def ask() -> None:
            with self._checking:
                if self._answers(self.timeout):
                    self._silent = None
                else:
                    self._unanswered(TimeoutError("no answer to a keepalive"))

        if not self._checking.locked():
            threading.Thread(target=ask, name="keepalive check", daemon=True).start()

    def _answers(self, seconds: float) -> bool:
        """Return whether the server answers a keepalive request within `seconds`."""
        transport, answered = self._hops[-1], threading.Event()

        def ask() -> None:
            try:
                transport.global_request("keepalive@openssh.com", wait=True)
            except BROKEN:
                return  # the connection ended without an answer
            answered.set()

        # The request waits without a limit, until the answer or the end of the connection.
        threading.Thread(target=ask, name="keepalive", daemon=True).start()
        return answered.wait(seconds) and transport.is_active()

    def _unanswered(self, error: Exception, *, keep: bool = False) -> LinkError:
        """Close the link unless it is precious; return the error to raise."""
        now = time.monotonic()
        self._silent, self._given_up = self._silent or now, now
        if (self._precious or keep) and self.alive() and now - self._silent < _ENDURE:
            return LinkError(
                f"{self.address} does not answer at the moment.",
                "lumitui keeps the connection, because a new one needs your login; try again soon.",
            )
        self.close()
        return LinkError(
            f"The connection to {self.address} was lost ({error or 'it ended'}).",
            "Check your network and try again; nothing was sent.",
        )
