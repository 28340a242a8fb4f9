"""The socket below an SSH connection: direct or through a ProxyCommand, with its bytes counted."""

import errno
import os
import selectors
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Protocol

from lumitui.remote.errors import LinkError

_POLL = 0.3
_HEAD = 512  # of what a server says first: a refusal stands before the SSH banner
_ENDURE = 300  # seconds that a connection outlives a silent network when a new one costs a code


class Wire(Protocol):
    """What an SSH connection needs of a socket."""

    def send(self, data: bytes, /) -> int:
        """Send some of `data`; return how much."""
        ...

    def recv(self, size: int, /) -> bytes:
        """Return at most `size` bytes; empty at the end."""
        ...

    def settimeout(self, seconds: float | None, /) -> None:
        """Seconds a call may wait."""
        ...

    def close(self) -> object:
        """Let go."""
        ...


class Metered:
    """A wire whose traffic is counted by `up` and `down`."""

    def __init__(
        self,
        wire: Wire,
        up: Callable[[int], None] = lambda count: None,
        down: Callable[[int], None] = lambda count: None,
        peer: str = "",
    ) -> None:
        """Count what crosses `wire`; `peer` is the address it reached."""
        self._wire, self._up, self._down, self.peer = wire, up, down, peer
        self._head = b""
        self._closed = False  # paramiko asks by this name before it waits for its reading thread

    def send(self, data: bytes) -> int:
        """Send and count."""
        sent = self._wire.send(data)
        self._up(sent)
        return sent

    def recv(self, size: int) -> bytes:
        """Receive and count."""
        data = self._wire.recv(size)
        self._down(len(data))
        if len(self._head) < _HEAD:
            self._head += data[:_HEAD]
        return data

    def settimeout(self, seconds: float | None) -> None:
        """Pass on."""
        self._wire.settimeout(seconds)

    def close(self) -> None:
        """Pass on. A jump host that has gone cannot be told: its channel would say so in vain."""
        self._closed = True
        with suppress(OSError, EOFError):
            self._wire.close()

    @property
    def said(self) -> str:
        """The server's last line before its banner, where it does not come as far as that."""
        lines = self._head.decode("utf-8", "replace").strip().splitlines() or [""]
        plain = "".join(char for char in lines[-1] if char.isprintable())
        return "" if plain.startswith("SSH-") else plain[:200]

    def endure(self) -> None:
        """Let the connection outlive a longer silence of the network."""
        if isinstance(self._wire, socket.socket):
            _keep_alive(self._wire, _ENDURE // 2)

    def complaint(self) -> str:
        """What a ProxyCommand said of its failure."""
        return self._wire.complaint() if isinstance(self._wire, Proxy) else ""


def dial(
    host: str, port: int, *, timeout: float, alive: int, stopped: Callable[[], bool]
) -> socket.socket:
    """A TCP connection to `host`, trying each of its addresses.

    Args:
        host: a name or an address.
        port: TCP port.
        timeout: seconds for each address.
        alive: seconds of silence after which the kernel asks whether the peer is there.
        stopped: asked every 0.3 s; true gives up.

    Raises:
        LinkError: the name is unknown, or no address answered.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "it is no host name"
        raise LinkError(
            f"The host name {host} is not known ({why}).",
            "Check the name, your network and whether a VPN is needed.",
        ) from error
    reason = "no address"
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        try:
            _connect(sock, address, timeout, stopped)
            _keep_alive(sock, alive)
            return sock
        except OSError as error:
            sock.close()
            reason = error.strerror or str(error)
    raise LinkError(
        f"{host} did not answer on port {port}: {reason}.",
        "Check your network, and whether the site has announced a break.",
    )


def _connect(
    sock: socket.socket, address: object, timeout: float, stopped: Callable[[], bool]
) -> None:
    """As connect(2), but asking `stopped` while it waits."""
    sock.setblocking(False)
    deadline = time.monotonic() + timeout
    code = sock.connect_ex(address)  # type: ignore[arg-type]  # as getaddrinfo gave it
    with selectors.DefaultSelector() as room:
        room.register(sock, selectors.EVENT_WRITE)
        while code == errno.EINPROGRESS:
            if time.monotonic() > deadline or stopped():
                raise TimeoutError(errno.ETIMEDOUT, f"no answer within {timeout:g} s")
            if room.select(_POLL):
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                break
    if code:
        raise OSError(code, os.strerror(code))
    sock.setblocking(True)


def _keep_alive(sock: socket.socket, seconds: int) -> None:
    """Let the kernel find a dead peer: after `seconds` of silence and three tries."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {
        "TCP_KEEPIDLE": seconds,  # Linux
        "TCP_KEEPALIVE": seconds,  # macOS
        "TCP_KEEPINTVL": max(seconds // 3, 1),
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": seconds * 2000,  # Linux, ms: also for data that is never confirmed
    }
    for name, value in options.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class Proxy:
    """The socket to a ProxyCommand, which it ends when it is closed."""

    def __init__(self, command: str) -> None:
        """Start `command` as OpenSSH does: by the shell, with `exec`."""
        self._sock, theirs = socket.socketpair()
        self._words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as this
        with theirs:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {command}"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._words,
                start_new_session=True,
            )
        self.send, self.recv = self._sock.send, self._sock.recv
        self.settimeout = self._sock.settimeout

    def complaint(self) -> str:
        """The last line the command wrote to its standard error."""
        if self._words.closed:
            return ""
        self._words.seek(0)
        lines = self._words.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """Close the socket and end the command."""
        self._sock.close()
        if self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
