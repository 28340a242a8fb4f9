"""Where to log in and as whom, as the person's ssh configuration says."""

import getpass
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lumitui.remote.errors import LinkError

Table = Mapping[str, Sequence[str]]
"""What `ssh -G` prints: lower-case option -> its values in order."""


@dataclass(frozen=True)
class Login:
    """How to reach a site; what is None comes from the person's ssh configuration."""

    host: str
    """A name, or an alias of the ssh configuration."""
    port: int | None = None
    user: str | None = None
    config: Path | None = None
    """An ssh_config file that replaces the person's (`ssh -F`)."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """Host keys as the site publishes them: key type (`ssh-ed25519`) -> `SHA256:...`."""
    identity: Path | None = None
    """A private key that is tried first."""


@dataclass(frozen=True)
class HostConfig:
    """One host, with everything that the ssh configuration says of it."""

    hostname: str
    port: int
    user: str
    identities: tuple[Path, ...]
    """Private keys in the order they are tried; some may not exist."""
    identities_only: bool
    certificates: tuple[Path, ...]
    agent: str | None
    """Socket of the agent; `none`: use no agent; None: the one in SSH_AUTH_SOCK."""
    jumps: tuple[str, ...]
    """Hosts to go through, in order: `[user@]host[:port]`."""
    proxy_command: str | None
    known_hosts: tuple[Path, ...]
    """The person's known_hosts files; a new key is added to the first."""
    global_known_hosts: tuple[Path, ...]
    key_name: str
    """Name under which the host's key is in known_hosts."""
    hash_names: bool
    alive: int
    """Seconds of silence after which the server is asked whether it is alive."""
    connect_timeout: float

    @property
    def address(self) -> str:
        """`user@host`, with the port where it is not 22."""
        return f"{self.user}@{self.hostname}" + (f":{self.port}" if self.port != 22 else "")


def has_openssh() -> bool:
    """Whether OpenSSH is installed, so that `ssh -G` works."""
    return shutil.which("ssh") is not None


def openssh_table(login: Login) -> Table:
    """Return how OpenSSH reads the configuration, Include and Match included (`ssh -G`).

    Raises:
        LinkError: the configuration has an error; the message is OpenSSH's.
    """
    command = ["ssh", "-G"]
    for flag, value in (("-F", login.config), ("-p", login.port), ("-l", login.user)):
        command += [flag, str(value)] if value is not None else []
    try:
        done = subprocess.run(
            [*command, "--", login.host],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=20,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        words = error.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        raise LinkError(
            f"OpenSSH cannot use the configuration for {login.host}: {words[-1]}.",
            f"Check it with: ssh -G {shlex.quote(login.host)}",
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LinkError(
            f"OpenSSH did not say how to reach {login.host} (`ssh -G` failed or took 20 s).",
            f"Check it with: ssh -G {shlex.quote(login.host)}",
        ) from error
    table: dict[str, list[str]] = {}
    for line in done.stdout.decode("utf-8", "surrogateescape").splitlines():
        name, _, value = line.partition(" ")
        table.setdefault(name.lower(), []).append(value)
    return table


@dataclass(frozen=True)
class _Options:
    """The options of one host, with the tokens that their values may have (ssh_config(5))."""

    table: Table
    tokens: Mapping[str, str]

    def one(self, name: str, default: str = "") -> str:
        """Return the value of an option that counts once."""
        value = (self.table.get(name) or [default])[0]
        return default if value.lower() in ("none", "") else value

    def expand(self, text: str) -> str:
        """Return `text` with its tokens (`%h` …) filled in."""
        return re.sub(r"%(.)", lambda match: self.tokens.get(match[1], match[0]), text)

    def paths(self, words: Sequence[str]) -> tuple[Path, ...]:
        """Return `words` as paths; `none` is no path."""
        chosen = [self.expand(word.strip('"')) for word in words if word.lower() != "none"]
        return tuple(Path(word).expanduser() for word in chosen)

    def files(self, name: str) -> tuple[Path, ...]:
        """Split a value of several files; `ssh -G` drops the quotes around a name with a space.

        A path begins with `/`, `~` or a token; any other word belongs to the name before it.
        """
        return self.paths([word for word in re.split(r" +(?=[/~%\"])", self.one(name)) if word])

    def agent(self) -> str | None:
        """Return the socket of the agent; None: the one in SSH_AUTH_SOCK."""
        place = (self.table.get("identityagent") or [""])[0].strip('"')
        if place in ("", "SSH_AUTH_SOCK"):
            return None
        if place == "none":
            return place
        return str(Path(os.path.expandvars(self.expand(place))).expanduser())


def resolve(login: Login, table: Table) -> HostConfig:
    """Return the configuration in `table`, overridden by what `login` itself says."""
    plain = _Options(table, {})
    hostname = plain.one("hostname", login.host)
    port = login.port or int(plain.one("port", "22"))
    user = login.user or plain.one("user") or getpass.getuser()
    tokens = {"h": hostname, "n": login.host, "p": str(port), "r": user, "%": "%"}
    tokens |= {"d": str(Path.home()), "u": getpass.getuser()}
    options = _Options(table, tokens)
    alias, timeout = options.one("hostkeyalias"), options.one("connecttimeout", "15")
    own = (login.identity.expanduser(),) if login.identity else ()
    return HostConfig(
        hostname=hostname,
        port=port,
        user=user,
        identities=own + options.paths(table.get("identityfile", ())),
        identities_only=options.one("identitiesonly") == "yes",
        certificates=options.paths(table.get("certificatefile", ())),
        agent=options.agent(),
        jumps=tuple(filter(None, options.one("proxyjump").split(","))),
        proxy_command=options.expand(options.one("proxycommand")) or None,
        known_hosts=options.files("userknownhostsfile"),
        global_known_hosts=options.files("globalknownhostsfile"),
        key_name=alias or (hostname if port == 22 else f"[{hostname}]:{port}"),
        hash_names=options.one("hashknownhosts") == "yes",
        alive=int(options.one("serveraliveinterval", "0")) or 30,
        connect_timeout=float(timeout) if timeout.isdecimal() else 15.0,
    )


def jump_login(login: Login, jump: str) -> Login:
    """Return the login of a jump host, which is written `[ssh://][user@]host[:port]`."""
    user, _, place = jump.removeprefix("ssh://").rpartition("@")
    match = re.fullmatch(r"(\[.+\]|[^:]+)(?::(\d+))?", place) or re.fullmatch("(.*)()", place)
    assert match is not None
    return Login(
        match[1].strip("[]"), int(match[2]) if match[2] else None, user or None, login.config
    )
