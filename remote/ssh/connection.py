"""A connection to a site over SSH, opened when it is first needed.

`channels` shares it among requests; `config` and `options` define where to log in, `trust` checks
the host's key, and `auth` logs in.
"""

import logging
import math
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import paramiko

from lumitui.remote.site.errors import AnswerNeeded, LinkError
from lumitui.remote.ssh import tcp
from lumitui.remote.ssh.channels import Requests
from lumitui.remote.ssh.config import HostConfig, Login, jump_login
from lumitui.remote.ssh.dialog import Kept
from lumitui.remote.ssh.link import BROKEN, Link, SshTransport
from lumitui.remote.ssh.prompts import Ask, LoginQuestion, answer_needed, is_attended
from lumitui.remote.ssh.trust.host_trust import contradictions
from lumitui.remote.ssh.trust.known_hosts import HostKey

# Without a handler, Python prints the library's warnings over the screen.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

_PAUSES = (1.0, 3.0)  # seconds before retries after a refusal by MaxStartups
_Route = list[tuple[HostConfig, dict[str, str]]]


def decline(_: LoginQuestion) -> None:
    """Decline every question: the `ask` of a caller without a user."""
    return None


class Ssh(Requests):
    """A transport over one SSH connection, opened by the first request. Safe for threads.

    The public counters (`requests`, `connections`, `bytes_up`, `bytes_down`) are the footprint.
    Each method raises LinkError if the configuration has an option that lumitui cannot honour.
    """

    def __init__(self, login: Login, ask: Ask = decline) -> None:
        """Open nothing until the first request; any thread may call `ask`."""
        super().__init__(self._open_link)
        self.login = login
        self.connections = 0
        self.bytes_up = 0
        self.bytes_down = 0
        self._ask = ask
        self._peer: str | None = None
        self.host_key: HostKey | None = None  # of the last connection
        self._hops: list[paramiko.Transport] = []
        self._wire: tcp.Metered | None = None
        self._kept = Kept()

    @property
    def user(self) -> str:
        """The user name, from the configuration alone."""
        return self._route(self.login)[-1][0].user

    @property
    def address(self) -> str:
        """Each host of the route as `user@host`, from the configuration alone."""
        return " ".join(host.address for host, _ in self._route(self.login))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user about the ssh configuration; usually none."""
        return _notes(self._route(self.login))

    @property
    def key_doubts(self) -> tuple[str, ...]:
        """Sentences on published fingerprints that differ from the known keys; usually none."""
        route = self._route(self.login)
        return tuple(one for host, published in route for one in contradictions(host, published))

    @property
    def node(self) -> str | None:
        """Address of the last login node; the next connection tries it first."""
        return self._peer

    def silence(self) -> float:
        """Return the seconds since the server last sent something; infinity if not connected."""
        link, wire = self._link, self._wire
        if link is None or wire is None or not link.alive():
            return math.inf
        return time.monotonic() - wire.heard

    def close(self) -> None:
        """End the connection, even while it is being opened; a later request opens a new one."""
        super().close()
        for transport in reversed(self._hops):
            transport.close()

    def _open_link(self, stopped: Callable[[], bool]) -> Link:
        """Connect; if the server has too many concurrent logins, retry after a pause.

        Raises:
            AnswerNeeded: the login needs a user, and none is waiting; nothing is sent.
        """
        from lumitui.remote.ssh.trust.handshake import TurnedAway

        if self._kept.needs and not is_attended():
            raise answer_needed(self._kept.needs)
        for pause in _PAUSES:
            try:
                return self._open_once(stopped)
            except TurnedAway:
                if self._kept.needs:
                    raise  # a jump host would ask the user again
                deadline = time.monotonic() + pause * random.uniform(0.5, 1.5)
                while time.monotonic() < deadline and not stopped():
                    time.sleep(0.1)
        return self._open_once(stopped)

    def _open_once(self, stopped: Callable[[], bool]) -> Link:
        """Connect, through the jump hosts of the configuration."""
        from lumitui.remote.ssh.auth import LogIn
        from lumitui.remote.ssh.trust.handshake import shake_hands

        hops: list[paramiko.Transport] = []
        self._hops = hops
        socks: list[tcp.Metered] = []
        needs: list[str] = []
        route = self._route(self.login)
        try:
            for host, published in route:
                if stopped():
                    raise LinkError("The connection was closed while it was being opened.")
                socks.append(self._through(hops[-1], host) if hops else self._dial(host, stopped))
                transport = SshTransport(socks[-1])
                hops.append(transport)
                self.host_key = shake_hands(transport, host, published, self._question)
                LogIn(host, self._ask, self._kept).authenticate(hops[-1])
                needs.append(self._kept.needs)
                hops[-1].set_keepalive(host.alive)
        except BaseException as error:
            for hop in reversed(hops):
                hop.close()
            if isinstance(error, LinkError) and not isinstance(error, AnswerNeeded):
                notes = _notes(route if hops else [])  # before a hop, options do not matter
                error.hint = " ".join(filter(None, (error.hint, *notes)))
            raise
        self._kept.needs = next(filter(None, needs), "")
        precious = bool(self._kept.needs)
        self._wire = socks[-1]
        if precious:
            socks[0].endure()
        return Link(hops, host, precious=precious)

    def _question(self, question: LoginQuestion) -> str | None:
        """Ask about a host's key, if a user is waiting."""
        self._kept.needs = "confirmation of its host key"
        if not is_attended():
            raise answer_needed(self._kept.needs)
        return self._ask(question)

    def _route(self, login: Login, depth: int = 0) -> _Route:
        """Return the hosts to log in to, in order, with their published fingerprints."""
        if depth > 4:
            words = f"ProxyJump of {login.host} forms a loop."
            raise LinkError(words, "Correct it in the ssh configuration.")
        host = _host(login)
        host = replace(host, trust=replace(host.trust, sure=login.sure))
        jumps = [jump_login(login, jump) for jump in host.jumps]
        route = self._route(jumps[0], depth + 1) if jumps else []
        route += [self._route(jump, depth + 1)[-1] for jump in jumps[1:]]
        return [*route, (host, dict(login.fingerprints))]

    def _dial(self, host: HostConfig, stopped: Callable[[], bool]) -> tcp.Metered:
        """Return the first hop's socket: to the last login node, else to any of that name."""
        self.connections += 1
        if host.proxy_command:
            return self._metered(tcp.Proxy(host.proxy_command))

        def reach(place: str, seconds: float) -> tcp.Metered:
            sock = tcp.dial(place, host.port, timeout=seconds, alive=host.alive, stopped=stopped,
                            source=host.bind_address, family=host.family)  # fmt: skip
            self._peer = str(sock.getpeername()[0])
            return self._metered(sock)

        if self._peer is not None:
            with suppress(LinkError):  # if it is down, use any other login node
                return reach(self._peer, min(5.0, host.connect_timeout))
        return reach(host.hostname, host.connect_timeout)

    def _metered(self, sock: tcp.Socket) -> tcp.Metered:
        def up(count: int) -> None:
            self.bytes_up += count

        def down(count: int) -> None:
            self.bytes_down += count

        return tcp.Metered(sock, up, down)

    def _through(self, hop: paramiko.Transport, host: HostConfig) -> tcp.Metered:
        """Return a channel of a jump host to the next host."""
        try:
            place = (host.hostname, host.port)
            channel = hop.open_channel("direct-tcpip", place, ("127.0.0.1", 0),
                                       timeout=host.connect_timeout)  # fmt: skip
            return tcp.Metered(channel)  # the first hop's socket counts its bytes
        except BROKEN as error:
            raise LinkError(
                f"The jump host cannot reach {host.hostname} on port {host.port}: {error}.",
                "Check HostName, Port and ProxyJump in the ssh configuration.",
            ) from error


def _host(login: Login) -> HostConfig:
    """Return the configuration of a host, or of an alias for it.

    An alias with the site's own name takes precedence, then one with the profile's port, then its
    user. Trust in host keys is that of the full name, or stricter: an alias affects only the login.
    """
    from lumitui.remote.ssh.options.openssh import aliases, openssh_table
    from lumitui.remote.ssh.options.resolve import resolve, stricter

    tables = {}
    for name in aliases(login) if login.site else ():
        table = openssh_table(replace(login, host=name))
        if table.one("hostname", name).lower() == login.host.lower():
            tables[name] = table
    if not tables:
        return resolve(login, openssh_table(login))

    def fits(name: str) -> tuple[bool, bool, bool]:
        own = openssh_table(replace(login, host=name, port=None, user=None)).one
        return name == login.site, own("port") == str(login.port), own("user") == login.user

    chosen = max(tables, key=fits) if len(tables) > 1 else next(iter(tables))
    host = resolve(replace(login, host=chosen), tables[chosen])
    full = replace(login, port=host.port, user=host.user)
    strict = stricter(resolve(full, openssh_table(full)).trust, host.trust)
    others = ", ".join(f"`{name}`" for name in tables if name != chosen)
    note = f"lumitui uses `Host {chosen}` of the ssh configuration, an alias for {login.host}."
    note += f" It ignores the other aliases: {others}." if others else ""
    return replace(host, trust=strict, notes=(note, *host.notes))


def _notes(route: _Route) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for host, _ in route for note in host.notes))
