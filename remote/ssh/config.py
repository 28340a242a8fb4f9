"""The login at a host, from the user's ssh configuration (`options` reads it)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Login:
    """How to reach a site; the user's ssh configuration replaces values that are None."""

    host: str
    """A name, or an alias of the ssh configuration."""
    port: int | None = None
    user: str | None = None
    config: Path | None = None
    """An ssh_config file that replaces the user's (`ssh -F`)."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """The host keys that the site publishes: key type (`ssh-ed25519`) -> `SHA256:...`."""
    sure: bool = True
    """Whether these need no yes of the user; another key is refused in any case."""
    identity: Path | None = None
    """A private key to try first."""
    renew: str = ""
    """How a user renews expired credentials, as a sentence."""
    site: str = ""
    """The site whose profile has the host; its aliases then also apply. "": no site."""


@dataclass(frozen=True)
class Algorithms:
    """The algorithms that the configuration allows and paramiko has, in order."""

    ciphers: tuple[str, ...]
    macs: tuple[str, ...]
    """May be empty if a cipher needs none."""
    kex: tuple[str, ...]
    host_keys: tuple[str, ...]
    known_first: bool
    """Whether to request the types of a host's known keys first."""
    public_keys: tuple[str, ...]
    """The allowed signatures for keys and certificates, not only those of paramiko."""
    rsa_bits: int
    """Minimum number of bits of RSA keys, the host's and the user's."""


@dataclass(frozen=True)
class Trust:
    """How to check a host's key."""

    name: str
    bare_name: str
    """The name without its port, which known_hosts may also have; "": do not look it up."""
    files: tuple[Path, ...]
    """The user's known_hosts files; new keys are added to the first."""
    global_files: tuple[Path, ...]
    strict: Literal["yes", "ask", "accept-new"]
    hash_names: bool
    sure: bool = True  # as in Login


@dataclass(frozen=True)
class HostConfig:
    """One host, with its settings in the ssh configuration."""

    hostname: str
    port: int
    user: str
    identities: tuple[Path, ...]
    """Private keys in the order of attempts; some may not exist."""
    identities_only: bool
    certificates: tuple[Path, ...]
    agent: str | None
    """Socket of the agent; `none`: use no agent; None: the one in SSH_AUTH_SOCK."""
    methods: tuple[str, ...]
    """Ways to log in, in the order of attempts: `publickey`, `password` ..."""
    prompts: int
    """Maximum number of prompts for a password or a passphrase."""
    batch: bool
    """Whether questions are forbidden."""
    jumps: tuple[str, ...]
    """Jump hosts, in order: `[user@]host[:port]`."""
    proxy_command: str | None
    bind_address: str | None
    """The local address to connect from."""
    family: str
    """The address family: `inet`, `inet6`; anything else: any."""
    alive: int
    """Seconds of silence after which lumitui checks whether the server is alive."""
    connect_timeout: float
    rekey_bytes: int
    """Bytes after which to renew the session keys; 0: the library decides."""
    algorithms: Algorithms
    trust: Trust
    renew: str
    """How a user renews expired credentials; "": unknown."""
    notes: tuple[str, ...]
    """Sentences about options that lumitui treats differently from OpenSSH; usually none."""

    @property
    def address(self) -> str:
        """`user@host`, with the port unless it is 22."""
        return f"{self.user}@{self.hostname}" + (f":{self.port}" if self.port != 22 else "")


def jump_login(login: Login, jump: str) -> Login:
    """Return the login of a jump host, which is written `[ssh://][user@]host[:port]`."""
    user, _, place = jump.removeprefix("ssh://").rpartition("@")
    match = re.fullmatch(r"(\[.+\]|[^:]+)(?::(\d+))?", place) or re.fullmatch("(.*)()", place)
    assert match is not None
    return Login(
        match[1].strip("[]"), int(match[2]) if match[2] else None, user or None, login.config
    )
