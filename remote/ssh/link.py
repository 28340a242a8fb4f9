"""A connection that is logged in: opens channels, and notices when the server is silent."""

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
"""What paramiko raises when a connection or a request over it fails."""

MOST_PACKET = 1 << 18
"""Most bytes of one packet: OpenSSH takes none larger (packet.c), and sends at most 32 KiB of data
in one. The length of a packet is read before its check sum: it may be anything."""
MOST_BANNER = 1 << 16
"""Most bytes that a server may send before its version; OpenSSH reads 8 KiB and 1,024 lines."""

_ENDURE = 300.0
"""Seconds of silence after which even a connection that cost a code is given up."""
_BANNER_SECONDS = 60.0
"""Seconds in which a server must have sent its version, however it is spread."""


class ChannelRefused(Exception):
    """The server opens no further channel now (MaxSessions)."""


class CommandRefused(Exception):
    """The server opened a channel and then refused to run a command in it."""


class SshTransport(paramiko.Transport):
    """paramiko's transport; whatever goes wrong in what the server sends is an SSHException.

    paramiko reads packets in a thread and raises in a caller what it met there, as it met it. With
    flipped bits on the way that is cryptography's InvalidTag, struct.error, IndexError and others.
    """

    def __init__(self, sock: object) -> None:
        """Talk over `sock`; nothing is sent yet."""
        super().__init__(cast(paramiko.Channel, sock), packetizer_class=_Packetizer)
        self.offered: Mapping[str, Sequence[str]] = {}
        """The lists of algorithms that the server sent last, by paramiko's names for them."""

    def _parse_kex_init(self, m: paramiko.Message) -> None:
        """Keep the server's lists, and agree on algorithms; no check sum protects them yet."""
        lists = self._really_parse_kex_init(paramiko.Message(m.asbytes()))  # type: ignore[attr-defined]
        self.offered = {name: found for name, found in lists.items() if isinstance(found, list)}
        super()._parse_kex_init(m)  # type: ignore[misc]  # not in its stubs

    def get_exception(self) -> Exception | None:
        """Return what ended the connection, once; None when it is not known."""
        error = super().get_exception()
        if error is None or isinstance(error, BROKEN) or _asked(error):
            return error
        lost = paramiko.SSHException(f"a packet was damaged on the way: {type(error).__name__}")
        lost.__cause__ = error
        return lost


def _asked(error: Exception) -> bool:
    """Whether `error` comes from a question to the user, which paramiko's thread asks too."""
    frames = traceback.walk_tb(error.__traceback__)
    names = (str(frame.f_globals.get("__name__")) for frame, _ in frames)
    return any(name.endswith(".ssh.auth") for name in names)


class _Packetizer(Packetizer):
    """paramiko's reader of packets, with a limit for what a server claims or never ends."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._banner, self._began = 0, 0.0

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:
        """Return `n` bytes."""
        if not 0 <= n <= MOST_PACKET:
            raise paramiko.SSHException(f"a packet was damaged on the way: {n} bytes long")
        return super().read_all(n, check_rekey)

    def _read_timeout(self, timeout: float) -> bytes:
        """Return some bytes of what comes before the packets."""
        self._began = self._began or time.monotonic()
        data: bytes = super()._read_timeout(timeout)  # type: ignore[misc]  # not in its stubs
        self._banner += len(data)
        if self._banner > MOST_BANNER or time.monotonic() - self._began > _BANNER_SECONDS:
            raise paramiko.SSHException("its version does not come")
        return data


class Channel:
    """A channel that fails with an OSError, whatever paramiko raises.

    When the socket is gone and no thread has noticed yet, sending raises EOFError in paramiko;
    so does receiving, which makes room for more. click takes an EOFError for Ctrl-D.
    """

    def __init__(self, channel: paramiko.Channel) -> None:
        """Wrap `channel`, which is open."""
        self.inner = channel
        self._room = 0
        self.recv_ready, self.recv_stderr_ready = channel.recv_ready, channel.recv_stderr_ready
        self.settimeout = channel.settimeout
        self.exit_status_ready = channel.exit_status_ready
        self.recv_exit_status = channel.recv_exit_status

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return bool(self.inner.closed)

    def recv(self, nbytes: int, /) -> bytes:
        """Return some of what came; b"" at its end."""
        with _as_oserror():
            return self.inner.recv(nbytes)

    def recv_stderr(self, nbytes: int, /) -> bytes:
        """Return some of what came on stderr; b"" at its end."""
        with _as_oserror():
            return self.inner.recv_stderr(nbytes)

    def send(self, s: bytes, /) -> int:
        """Send some of `s`; wait for more room than a little, as TCP does (RFC 9293, 3.8.6.2.1).

        sshd makes room anew for each 96 KiB that it has read (channels.c). Sending these at once
        wakes both sides, and turns the link round, over 70 times in a transfer of 12 MB; now some
        25 times. With three eighths of the most room that was ever there, 1.25 MiB stay on their
        way: enough for 100 Mbit/s at 100 ms. A link for which sshd's 2 MiB are too few takes 8 %
        longer (12 MB at 200 ms: 1.71 s instead of 1.56).
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
        """Signal to the server that no more input comes."""
        with _as_oserror():
            self.inner.shutdown_write()

    def shutdown(self, how: int, /) -> None:
        """End one direction, or both; see `socket.shutdown`."""
        with _as_oserror():
            self.inner.shutdown(how)

    def close(self) -> None:
        """End it."""
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
    """The connected hops, of which the last is the site's.

    A `precious` one cost something that only a user can give, like a one-time code. A stalled
    network does not end it, since the next one would ask again; requests fail meanwhile.
    """

    def __init__(
        self, hops: list[paramiko.Transport], host: HostConfig, *, precious: bool = False
    ) -> None:
        """Use `hops`, which are logged in; `host` is the last."""
        self._hops, self.address, self.timeout = hops, host.address, host.connect_timeout
        self.alive_seconds = host.alive
        self._precious = precious
        self._silent: float | None = None
        self._given_up = 0.0
        self._opening, self._checking = threading.Lock(), threading.Lock()

    def alive(self) -> bool:
        """Whether requests can be sent."""
        return self._hops[-1].is_active()

    def close(self) -> None:
        """End the connection and all channels."""
        for transport in reversed(self._hops):
            transport.close()

    def open(self, seconds: float, *, ahead: bool = False) -> Channel:
        """Open a channel; ChannelRefused, or LinkError when the server is silent.

        A channel opened `ahead` of its need never ends the link: a request is under way on it.
        """
        began = time.monotonic()
        with self._opening:  # paramiko keeps one refusal for all who are opening
            # The server may still open a channel that was given up, and count it. A thread that
            # waited here while another gave up has waited long enough.
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
        """Open a channel to a port of `host`, as the server reaches it; `begin` is not for it.

        Raises:
            ConnectionRefusedError: nobody listens there, or the server forwards nothing.
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
        """Start `command`; CommandRefused, or LinkError when the server is silent."""
        late = threading.Event()

        def give_up() -> None:
            late.set()
            with suppress(OSError):  # ended at this very moment
                channel.close()

        guard = threading.Timer(seconds, give_up)  # exec_command itself waits without a limit
        guard.daemon = True
        guard.start()
        try:
            channel.inner.exec_command(command)
            self._silent = None
        except BROKEN as error:
            refused = isinstance(error, paramiko.SSHException)  # else the socket is gone
            if refused and self.alive() and not late.is_set():
                raise CommandRefused from error
            raise self._unanswered(error) from error
        finally:
            guard.cancel()

    def check(self) -> None:
        """Ask in another thread whether the server is alive; without an answer close the link."""

        def ask() -> None:
            with self._checking:
                if self._answers(self.timeout):
                    self._silent = None
                else:
                    self._unanswered(TimeoutError("no answer to a keepalive"))

        if not self._checking.locked():
            threading.Thread(target=ask, name="keepalive check", daemon=True).start()

    def _answers(self, seconds: float) -> bool:
        """Whether the server answers a keepalive request within `seconds`."""
        transport, answered = self._hops[-1], threading.Event()

        def ask() -> None:
            try:
                transport.global_request("keepalive@openssh.com", wait=True)
            except BROKEN:
                return  # it ended: no answer
            answered.set()

        # The request waits without a limit; it ends with the answer or with the connection.
        threading.Thread(target=ask, name="keepalive", daemon=True).start()
        return answered.wait(seconds) and transport.is_active()

    def _unanswered(self, error: Exception, *, keep: bool = False) -> LinkError:
        """Close the link unless it is worth keeping; return the error to raise."""
        now = time.monotonic()
        self._silent, self._given_up = self._silent or now, now
        if (self._precious or keep) and self.alive() and now - self._silent < _ENDURE:
            return LinkError(
                f"{self.address} does not answer at the moment.",
                "The connection is kept, since a new one would need you to log in; try again soon.",
            )
        self.close()
        return LinkError(
            f"The connection to {self.address} no longer answers ({error or 'it ended'}).",
            "Check your network and try again; nothing was sent.",
        )
