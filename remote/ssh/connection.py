"""A connection to a site over SSH, opened when it is first needed.

How requests share it is in `channels` and `exchange`; where to log in is in `config`, which host
key to trust in `known_hosts`, how to log in in `auth`.
"""

import logging
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from lumitui.remote.errors import AnswerNeeded, LinkError
from lumitui.remote.ssh import known_hosts, tcp
from lumitui.remote.ssh.auth import LogIn
from lumitui.remote.ssh.channels import Requests
from lumitui.remote.ssh.config import (
    HostConfig,
    Login,
    Table,
    has_openssh,
    jump_login,
    openssh_table,
    resolve,
)
from lumitui.remote.ssh.dialog import Kept
from lumitui.remote.ssh.link import BROKEN, ParamikoLink, SshTransport
from lumitui.remote.ssh.prompts import Ask, Question, answer_needed, is_attended

# Without a handler Python prints the warnings of a library over the screen.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

_ANSWER = 300.0  # seconds for a person's answers; sshd's LoginGraceTime is 120
_PAUSES = (1.0, 3.0)  # seconds before the tries that follow a refusal of MaxStartups
_NO_OPENSSH = (
    "OpenSSH is not installed on this machine: Include and Match in the ssh configuration are "
    "not read."
)
_GCM = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")


def decline(_: Question) -> None:
    """Decline every question: the `ask` of a caller without a person."""
    return None


class _TurnedAway(LinkError):
    """The server has too many logins under way (MaxStartups); it accepts one in a moment."""


class Ssh(Requests):
    """A transport over one SSH connection, opened by the first request. Safe for threads.

    The public counters (`requests`, `connections`, `bytes_up`, `bytes_down`) are the footprint.
    """

    def __init__(self, login: Login, ask: Ask = decline) -> None:
        """Open nothing before the first request; `ask` may be called from any thread."""
        super().__init__(self._open_link)
        self.login = login
        self.connections = 0
        self.bytes_up = 0
        self.bytes_down = 0
        self._ask = ask
        self._peer: str | None = None
        self._hops: list[paramiko.Transport] = []
        self._kept = Kept()

    @property
    def user(self) -> str:
        """The name to log in with, from the configuration alone."""
        return self._route(self.login)[-1][0].user

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for a person about how the ssh configuration is read; usually none."""
        return () if has_openssh() else (_NO_OPENSSH,)

    @property
    def node(self) -> str | None:
        """Address of the login node that was reached; the next connection tries it first."""
        return self._peer

    def close(self) -> None:
        """End the connection, even while it is being made; a later request makes a new one."""
        super().close()
        for transport in reversed(self._hops):
            transport.close()

    def _open_link(self, stopped: Callable[[], bool]) -> ParamikoLink:
        """Connect; where the server has too many logins under way, try again after a pause.

        Raises:
            AnswerNeeded: only a person can log in, and none waits; nothing is sent.
        """
        if self._kept.needs and not is_attended():
            raise answer_needed(self._kept.needs)
        for pause in _PAUSES:
            try:
                return self._open_once(stopped)
            except _TurnedAway:
                if self._kept.needs:
                    raise  # a jump host would ask the person once more
                deadline = time.monotonic() + pause * random.uniform(0.5, 1.5)
                while time.monotonic() < deadline and not stopped():
                    time.sleep(0.1)
        return self._open_once(stopped)

    def _open_once(self, stopped: Callable[[], bool]) -> ParamikoLink:
        """Connect, through jump hosts where the configuration names them."""
        hops: list[paramiko.Transport] = []
        self._hops = hops
        socks: list[tcp.Metered] = []
        needs: list[str] = []
        try:
            for host, published in self._route(self.login):
                if stopped():
                    raise LinkError("The connection was closed while it was made.")
                socks.append(self._through(hops[-1], host) if hops else self._dial(host, stopped))
                hops.append(SshTransport(socks[-1]))
                self._handshake(hops[-1], host, published)
                LogIn(host, self._ask, self._kept).authenticate(hops[-1])
                needs.append(self._kept.needs)
                hops[-1].set_keepalive(host.alive)
        except BaseException as error:
            for transport in reversed(hops):
                transport.close()
            if isinstance(error, LinkError) and not isinstance(error, AnswerNeeded):
                error.hint = " ".join(filter(None, (error.hint, *self.notes)))
            raise
        self._kept.needs = next(filter(None, needs), "")
        precious = bool(self._kept.needs)
        if precious:
            socks[0].endure()
        return ParamikoLink(hops, host, precious=precious)

    def _question(self, question: Question) -> str | None:
        """Ask about a host's key, if a person waits."""
        self._kept.needs = "yes to its host key"
        if not is_attended():
            raise answer_needed(self._kept.needs)
        return self._ask(question)

    def _route(self, login: Login, depth: int = 0) -> list[tuple[HostConfig, dict[str, str]]]:
        """Return the hosts to log in to, in order, each with its published fingerprints."""
        if depth > 4:
            raise LinkError(
                f"ProxyJump of {login.host} goes in a circle.",
                "Correct it in the ssh configuration.",
            )
        host = resolve(login, openssh_table(login) if has_openssh() else _own_table(login))
        jumps = [jump_login(login, jump) for jump in host.jumps]
        route = self._route(jumps[0], depth + 1) if jumps else []
        for jump in jumps[1:]:
            route.append(self._route(jump, depth + 1)[-1])
        return [*route, (host, dict(login.fingerprints))]

    def _dial(self, host: HostConfig, stopped: Callable[[], bool]) -> tcp.Metered:
        """Return the first hop's socket: to the node reached before, else to any of the name's."""
        self.connections += 1
        if host.proxy_command:
            return self._metered(tcp.Proxy(host.proxy_command), host.hostname)

        def reach(place: str, seconds: float) -> tcp.Metered:
            sock = tcp.dial(place, host.port, timeout=seconds, alive=host.alive, stopped=stopped)
            self._peer = str(sock.getpeername()[0])
            return self._metered(sock, self._peer)

        if self._peer is not None:
            with suppress(LinkError):  # down: any other login node will do
                return reach(self._peer, min(5.0, host.connect_timeout))
        return reach(host.hostname, host.connect_timeout)

    def _metered(self, sock: tcp.Socket, peer: str) -> tcp.Metered:
        def up(count: int) -> None:
            self.bytes_up += count

        def down(count: int) -> None:
            self.bytes_down += count

        return tcp.Metered(sock, up, down, peer)

    def _through(self, hop: paramiko.Transport, host: HostConfig) -> tcp.Metered:
        """Return a channel of a jump host to the next host."""
        try:
            channel = hop.open_channel(
                "direct-tcpip",
                (host.hostname, host.port),
                ("127.0.0.1", 0),
                timeout=host.connect_timeout,
            )
            return tcp.Metered(channel)  # its bytes are counted on the first hop's socket
        except BROKEN as error:
            raise LinkError(
                f"The jump host cannot reach {host.hostname} on port {host.port}: {error}.",
                "Check HostName, Port and ProxyJump in the ssh configuration.",
            ) from error

    def _handshake(
        self, transport: paramiko.Transport, host: HostConfig, published: Mapping[str, str]
    ) -> None:
        """Negotiate and check the host's key, before anything secret is sent."""
        options = transport.get_security_options()
        # One AES-GCM call does the work of cipher and HMAC, which paramiko runs in Python.
        options.ciphers = [*_GCM, *(name for name in options.ciphers if name not in _GCM)]
        first = known_hosts.wanted_types(host, published)
        first += ["rsa-sha2-512", "rsa-sha2-256"] if "ssh-rsa" in first else []
        options.key_types = sorted(
            options.key_types, key=lambda kind: first.index(kind) if kind in first else len(first)
        )
        transport.banner_timeout = transport.handshake_timeout = host.connect_timeout
        transport.auth_timeout = _ANSWER
        try:
            transport.start_client()
            shown = transport.get_remote_server_key()
        except BROKEN as error:
            raise _no_handshake(error, host, transport.sock) from error
        key = known_hosts.HostKey(shown.get_name(), shown.asbytes())
        known_hosts.check(host, key, published, self._question)


def _no_handshake(error: Exception, host: HostConfig, sock: object) -> LinkError:
    """Return the error for a server that ended before it showed its host key."""
    place = f"{host.hostname} (port {host.port})"
    if isinstance(error, IncompatiblePeer):
        return LinkError(f"{place} and this program share no algorithm: {error}.", "Update both.")
    said = sock.said if isinstance(sock, tcp.Metered) else ""
    if "maxstartups" in said.lower():
        return _TurnedAway(
            f"{place} turns new connections away: {said}.",
            "Too many people are logging in; try again in a minute.",
        )
    silent = isinstance(error.__context__, TimeoutError)
    nothing = f"nothing came within {host.connect_timeout:g} s"
    if host.proxy_command:
        proxy = sock.complaint() if isinstance(sock, tcp.Metered) else ""
        return LinkError(
            f"The ProxyCommand to {host.hostname} failed: "
            f"{proxy or (nothing if silent else 'it ended')}.",
            f"Try it in a terminal: {host.proxy_command}",
        )
    if silent:
        return LinkError(
            f"{place} accepted the connection, but {nothing}.",
            "Check your network and the port; a login node may also be overloaded.",
        )
    if said:
        return LinkError(
            f"{place} answered, but not as an SSH server: it said {said!r}.",
            "Check the port; a busy login node may also be turning new connections away.",
        )
    return LinkError(
        f"{place} ended the connection before the login ({error or type(error).__name__}).",
        "It may be turning new connections away; try again in a minute.",
    )


def _own_table(login: Login) -> Table:
    """Return what paramiko reads of the ssh configuration, where there is no OpenSSH to ask."""
    path = login.config or Path("~/.ssh/config").expanduser()
    try:
        found = paramiko.SSHConfig.from_path(path) if path.is_file() else paramiko.SSHConfig()
        table = found.lookup(login.host)
    except (*BROKEN, ValueError) as error:
        raise LinkError(
            f"The ssh configuration {path} cannot be read: {error}.", "Correct it."
        ) from error
    home = Path("~/.ssh").expanduser()
    default = {
        "identityfile": [str(home / f"id_{kind}") for kind in ("ed25519", "ecdsa", "rsa")],
        "userknownhostsfile": [str(home / "known_hosts")],
        "globalknownhostsfile": ["/etc/ssh/ssh_known_hosts"],
    }
    given = {key: [item] if isinstance(item, str) else item for key, item in table.items()}
    return {**default, **given}
