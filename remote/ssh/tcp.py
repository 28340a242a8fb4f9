"""The socket below an SSH connection, direct or through a ProxyCommand; counts its bytes."""

import errno
import os
import selectors
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import paramiko

from lumitui.remote.site.answer_fields import last_words
from lumitui.remote.site.errors import LinkError

_POLL = 0.3
_HEAD = 512  # first bytes of a server to keep: a refusal comes before the SSH banner
_VERSION = b"SSH-2.0-"
_SAID = 4096  # last bytes of a ProxyCommand's standard error to keep
_ENDURE = 300  # seconds of silence that a connection survives if a new one would cost a code
_FAMILIES = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}


class Metered:
    """A socket that reports its traffic to `up` and `down`."""

    def __init__(
        self,
        sock: "Socket",
        up: Callable[[int], None] = lambda count: None,
        down: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._sock, self._up, self._down = sock, up, down
        self._head = b""
        self.heard = time.monotonic()
        """The time of the last received bytes."""
        self._closed = False  # paramiko reads this before it waits for its reading thread

    def send(self, data: bytes) -> int:
        """Send and count."""
        sent = self._sock.send(data)
        self._up(sent)
        return sent

    def recv(self, size: int) -> bytes:
        """Receive and count."""
        data = self._sock.recv(size)
        self._down(len(data))
        self.heard = time.monotonic()
        if len(self._head) < _HEAD:
            self._head += data[:_HEAD]
        return data

    def settimeout(self, seconds: float | None) -> None:
        """Limit how long a call may wait."""
        self._sock.settimeout(seconds)

    def close(self) -> None:
        """End the connection; the channel of a closed jump host may raise here."""
        self._closed = True
        with suppress(OSError, EOFError):
            self._sock.close()

    @property
    def greeted(self) -> bool:
        """Whether an SSH server's version line arrived, perhaps damaged."""
        return any(_is_version(line) for line in self._head.split(b"\n"))

    @property
    def said(self) -> str:
        """The last line of a server that sent other text than a version line."""
        if self.greeted:
            return ""
        lines = self._head.decode("utf-8", "replace").strip().splitlines() or [""]
        return "".join(char for char in lines[-1] if char.isprintable())[:200]

    def endure(self) -> None:
        """Let the connection survive a longer outage of the network."""
        if isinstance(self._sock, socket.socket):
            _keep_alive(self._sock, _ENDURE // 2)

    def complaint(self) -> str:
        """Return a ProxyCommand's last error message."""
        return self._sock.complaint() if isinstance(self._sock, Proxy) else ""


def _is_version(line: bytes) -> bool:
    """Return whether a line is a server's version (RFC 4253, 4.2), with at most two wrong bytes."""
    wrong = sum(one != other for one, other in zip(line, _VERSION, strict=False))
    return line.startswith(_VERSION[:4]) or (len(line) >= len(_VERSION) and wrong <= 2)


def dial(
    host: str,
    port: int,
    *,
    timeout: float,
    alive: int,
    stopped: Callable[[], bool],
    source: str | None = None,
    family: str = "",
) -> socket.socket:
    """Return a TCP connection to `host`, a name or an address; each address gets `timeout` seconds.

    After `alive` seconds of silence, the kernel probes the peer. `stopped`, called every 0.3 s,
    ends the attempt. `source` is the local address or name to connect from; None: the system
    chooses.

    Raises:
        LinkError: the name is unknown, or no address answered.
    """
    number = _FAMILIES.get(family, 0)
    try:
        places = socket.getaddrinfo(host, port, number, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "it is not a host name"
        only = f" with AddressFamily {family}" if number else ""
        raise LinkError(
            f"The host name {host} is unknown{only} ({why}).",
            "Check the name, your network, and whether you need a VPN.",
        ) from error
    reason = "no address"
    for address_family, kind, protocol, _, address in places:
        sock = socket.socket(address_family, kind, protocol)
        try:
            if source is not None:
                _bind(sock, source)
            _connect(sock, address, timeout, stopped)
            _keep_alive(sock, alive)
            return sock
        except OSError as error:
            sock.close()
            reason = error.strerror or str(error)
    raise LinkError(
        f"{host} did not answer on port {port}: {reason}.",
        "Check the port (`hosts: port:`), your network, and whether the site has announced "
        "maintenance.",
    )


def _bind(sock: socket.socket, name: str) -> None:
    try:
        *_, address = socket.getaddrinfo(name, 0, sock.family, socket.SOCK_STREAM)[0]
        sock.bind(address)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise OSError(errno.EADDRNOTAVAIL, f"cannot use BindAddress {name} ({why})") from error


def _connect(
    sock: socket.socket, address: object, timeout: float, stopped: Callable[[], bool]
) -> None:
    """Connect as connect(2) does, but check `stopped` while waiting."""
    sock.setblocking(False)
    deadline = time.monotonic() + timeout
    code = sock.connect_ex(address)  # type: ignore[arg-type]  # as getaddrinfo gave it
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_WRITE)
        while code == errno.EINPROGRESS:
            if time.monotonic() > deadline or stopped():
                raise TimeoutError(errno.ETIMEDOUT, f"no answer within {timeout:g} s")
            if selector.select(_POLL):
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                break
    if code:
        raise OSError(code, os.strerror(code))
    sock.setblocking(True)


def _keep_alive(sock: socket.socket, seconds: int) -> None:
    """Have the kernel detect a dead peer: after `seconds` of silence and three probes."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {
        "TCP_KEEPIDLE": seconds,  # Linux
        "TCP_KEEPALIVE": seconds,  # macOS
        "TCP_KEEPINTVL": max(seconds // 3, 1),
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": seconds * 2000,  # Linux, ms: also for unacknowledged data
    }
    for name, value in options.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class Proxy:
    """The socket to a ProxyCommand; closing it ends the command."""

    def __init__(self, command: str) -> None:
        """Start `command` as OpenSSH does: in a shell, with `exec`."""
        self.sock, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {command}"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        # The command is often ssh, which passes on another machine's output without limit.
        self._said = b""
        self._over = False
        self._listener = threading.Thread(target=self._listen, name="ProxyCommand", daemon=True)
        self._listener.start()
        self.send, self.recv = self.sock.send, self.sock.recv
        self.settimeout = self.sock.settimeout

    def complaint(self) -> str:
        """Return the command's last line on standard error."""
        self._listener.join(0.5)  # it may just have ended
        return last_words(self._said, default="")

    def _listen(self) -> None:
        """Keep the end of standard error until the command ends or this end is closed.

        Processes that the command started may outlive it; their writes then fail.
        """
        assert self._process.stderr is not None
        with self._process.stderr as errors:
            while not self._over and (data := errors.read(_SAID)):
                self._said = (self._said + data)[-_SAID:]

    def close(self) -> None:
        """Close the socket and end the command."""
        self._over = True
        self.sock.close()
        if self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


Socket = socket.socket | Proxy | paramiko.Channel
"""The transports of an SSH connection."""
