"""One connection for each site, opened on first use and kept."""

from __future__ import annotations

import getpass
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lumitui.remote.transport.request_log import (
    Footprint,
    Logged,
    RequestLog,
    SiteRequest,
    footprint,
)

if TYPE_CHECKING:
    from lumitui.remote.scheduler.scheduler_protocol import Scheduler
    from lumitui.remote.site.profile import Hosts, Site
    from lumitui.remote.ssh.prompts import Ask
    from lumitui.remote.transport.sessions import Sessions
    from lumitui.remote.transport.transport import Transport


@dataclass(frozen=True)
class Connection:
    """How a site is reached, and its scheduler."""

    transport: Transport
    scheduler: Scheduler
    user: Callable[[], str]
    """Returns the user's name at the site; called only when needed."""
    home: str
    footprint: Callable[[], Footprint] = Footprint
    """Returns its cost for the site so far."""
    address: Callable[[], str] = str
    """Returns user and host of the login, after its jump hosts; "": this machine."""
    silence: Callable[[], float] = lambda: 0.0
    """Returns the seconds since the site was heard last, infinity without a connection. 0.0
    always: it cannot be lost."""
    notes: Callable[[], Sequence[str]] = tuple
    """Returns sentences for the user about the connection's configuration; usually none."""
    key_doubts: Callable[[], Sequence[str]] = tuple
    """Returns sentences on published fingerprints that differ from the known keys."""
    host_keys: Callable[[], Mapping[str, str]] = dict
    """Returns the key of the last login as a profile has it: its type and fingerprint."""
    log: RequestLog = field(default_factory=RequestLog)
    """Latest requests to the site."""
    sessions: Sessions | None = None
    """The connection of shells and forwarded ports; None: a transport of a test."""
    transfer: Callable[[], Transport] | None = None
    """Returns a new connection to the host for files; None: files use `transport`."""

    @contextmanager
    def files(self) -> Iterator[Transport]:
        """Yield the transport for files; its own connection closes at the end."""
        if self.transfer is None:
            yield self.transport
            return
        transport = self.transfer()
        try:
            yield transport
        finally:
            transport.close()

    def root(self, site: Site, account: str, project: str) -> str:
        """Return the folder in a project on the site."""
        return f"{self.work_root(site, account)}/{project}"

    def work_root(self, site: Site, account: str, user: str = "") -> str:
        """Return the folder on the site with all projects of an account.

        `user`: whose; "" for one's own.
        """
        return self.filled(site.work_root, site, account, user).rstrip("/")

    def filled(self, template: str, site: Site, account: str, user: str = "") -> str:
        """Return a template of the profile with the account, the user and the home filled in."""
        user = user or (self.user() if "{user}" in template else "")
        return template.format(account=site.account.in_path(account), user=user, home=self.home)


# As sites publish them, and as the protocol names them (RFC 4253, 5656, 8709).
_KEY_TYPES = {"ed25519": "ssh-ed25519", "rsa": "ssh-rsa", "ecdsa": "ecdsa-sha2-nistp256"}

Connect = Callable[["Site", "Ask"], Connection]


@cache
def real_host(host: str, config: str = "") -> str:
    """Return the host that an ssh configuration sets for `host`; `host` if it sets none."""
    from lumitui.remote.site.errors import LinkError
    from lumitui.remote.ssh.config import Login
    from lumitui.remote.ssh.options.openssh import openssh_table

    try:
        path = Path(os.path.expanduser(config)) if config else None
        return openssh_table(Login(host, config=path)).one("hostname", host)
    except LinkError:  # the connection reports it
        return host


def connect(site: Site, ask: Ask) -> Connection:
    """Return a connection to `site`; nothing is opened before the first request."""
    if site.scheduler == "process":
        from lumitui.remote.laptop.scheduler import Process
        from lumitui.remote.transport.local import Local

        local, log = Local(), RequestLog()
        logged = Logged(local, log)
        processes = Process(logged)
        home = str(Path.home())

        def cost() -> Footprint:
            return footprint((local,), processes)

        return Connection(logged, processes, getpass.getuser, home, cost, log=log, sessions=local)
    from lumitui.remote.scheduler.slurm import Slurm
    from lumitui.remote.ssh.config import Login
    from lumitui.remote.ssh.connection import Ssh

    hosts = site.hosts
    login = Login(
        host=hosts.login,
        port=hosts.port,
        user=hosts.user,
        config=Path(os.path.expanduser(hosts.ssh_config)) if hosts.ssh_config else None,
        renew=hosts.renew,
        identity=Path(os.path.expanduser(hosts.identity)) if hosts.identity else None,
        fingerprints={
            _KEY_TYPES.get(kind, kind): text for kind, text in hosts.fingerprints.items()
        },
        sure=not any(key.startswith("hosts.fingerprints") for key in site.unverified),
        site=site.name,
    )
    ssh, log = Ssh(login, ask), RequestLog()
    link = Logged(ssh, log)
    slurm = Slurm(link)
    # Its host key is its own: what the site publishes for the login nodes does not count there.
    other = replace(login, host=hosts.transfer or "", port=None, fingerprints={})
    lines = [ssh]
    """To the login node, then those for files, of which the last may be open."""

    def host_keys() -> dict[str, str]:
        key, short = ssh.host_key, {text: kind for kind, text in _KEY_TYPES.items()}
        return {short.get(key.type, key.type): key.fingerprint} if key else {}

    def for_files() -> Transport:
        lines.append(Ssh(other, ask))
        return Logged(lines[-1], log)

    return Connection(
        link,
        slurm,
        lambda: ssh.user,
        "~",
        lambda: footprint(lines, slurm),
        address=lambda: ssh.address,
        silence=lambda: min(line.silence() for line in (lines[0], lines[-1])),
        notes=lambda: ssh.notes,
        key_doubts=lambda: ssh.key_doubts,
        host_keys=host_keys,
        log=log,
        sessions=ssh,
        transfer=for_files if hosts.transfer else None,
    )


def submit_command(site: Site) -> str:
    """Return the submit command as the preview shows it and the site runs it."""
    if site.scheduler == "process":
        from lumitui.remote.laptop.scheduler import SUBMIT

        return SUBMIT
    from lumitui.remote.scheduler.scheduler_protocol import SBATCH

    return SBATCH


class Connections:
    """The open connections by site; threads share them."""

    def __init__(self, ask: Ask, connect: Connect = connect) -> None:
        """Open connections with `connect`; pass their questions to `ask`."""
        self._ask = ask
        self._connect = connect
        self._open: dict[str, Connection] = {}
        self._hosts: dict[str, Hosts] = {}
        """Where each of them leads."""
        self._lock = threading.Lock()

    def get(self, site: Site) -> Connection:
        """Return the connection to `site`, the same one for every caller.

        A profile that names another host, person or key since then is connected to anew.
        """
        with self._lock:
            if site.name in self._open and self._hosts.get(site.name) != site.hosts:
                self._open.pop(site.name).transport.close()
            if site.name not in self._open:
                self._open[site.name] = self._connect(
                    site, lambda question: self._ask(replace(question, site=site.name))
                )
                self._hosts[site.name] = site.hosts
            return self._open[site.name]

    def footprint(self, site: str) -> Footprint:
        """Return the requests to `site` so far, without opening a connection."""
        connection = self._open.get(site)
        return connection.footprint() if connection else Footprint()

    def silence(self, site: str) -> float:
        """Return the seconds since `site` was heard; infinity unless connected. Opens nothing."""
        connection = self._open.get(site)
        return connection.silence() if connection else math.inf

    def requests(self) -> dict[str, list[SiteRequest]]:
        """Return the latest requests to each open site, newest first; opens no connection."""
        with self._lock:
            return {name: found.log.latest() for name, found in self._open.items()}

    def close(self) -> None:
        """End all connections."""
        with self._lock:
            for connection in self._open.values():
                connection.transport.close()
            self._open.clear()
