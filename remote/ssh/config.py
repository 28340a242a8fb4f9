"""Where to log in and as whom, as the user's ssh configuration says (`options` reads it)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Login:
    """How to reach a site; what is None comes from the user's ssh configuration."""

    host: str
    """A name, or an alias of the ssh configuration."""
    port: int | None = None
    user: str | None = None
    config: Path | None = None
    """An ssh_config file that replaces the user's (`ssh -F`)."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """Host keys as the site publishes them: key type (`ssh-ed25519`) -> `SHA256:...`."""
    identity: Path | None = None
    """A private key that is tried first."""
    renew: str = ""
    """What a user does when the credentials have expired, as a sentence."""
    site: str = ""
    """The site whose profile names the host: an alias that leads there counts. Empty: none does."""


@dataclass(frozen=True)
class Algorithms:
    """What a connection may use: what the configuration allows and paramiko has, in order."""

    ciphers: tuple[str, ...]
    macs: tuple[str, ...]
    """May be empty where a cipher needs none."""
    kex: tuple[str, ...]
    host_keys: tuple[str, ...]
    known_first: bool
    """Whether the types of the keys that are known of a host are requested first."""
    public_keys: tuple[str, ...]
    """Signatures that keys and certificates may log in with; not only those of paramiko."""
    rsa_bits: int
    """An RSA key with fewer bits is not used, be it the host's or the user's."""


@dataclass(frozen=True)
class Trust:
    """How a host's key is checked."""

    name: str
    """Name under which the host's key is in known_hosts."""
    bare_name: str
    """The name without its port, under which the key may stand, too; empty: not looked up."""
    files: tuple[Path, ...]
    """The user's known_hosts files; a new key is added to the first."""
    global_files: tuple[Path, ...]
    strict: Literal["yes", "ask", "accept-new"]
    hash_names: bool


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
    methods: tuple[str, ...]
    """Ways to log in, in the order they are tried: `publickey`, `password` ..."""
    prompts: int
    """How often a password or a passphrase may be asked for."""
    batch: bool
    """Whether no question may be asked."""
    jumps: tuple[str, ...]
    """Hosts to go through, in order: `[user@]host[:port]`."""
    proxy_command: str | None
    bind_address: str | None
    """Address of this machine to connect from."""
    family: str
    """The kind of address to connect to: `inet`, `inet6`; anything else: any."""
    alive: int
    """Seconds of silence after which the server is asked whether it is alive."""
    connect_timeout: float
    rekey_bytes: int
    """New keys are made after so many bytes; 0: the library decides."""
    algorithms: Algorithms
    trust: Trust
    renew: str
    """What a user does when the credentials have expired; empty: nobody said."""
    notes: tuple[str, ...]
    """Sentences about options that lumitui reads otherwise than OpenSSH; usually none."""

    @property
    def address(self) -> str:
        """`user@host`, with the port where it is not 22."""
        return f"{self.user}@{self.hostname}" + (f":{self.port}" if self.port != 22 else "")


def jump_login(login: Login, jump: str) -> Login:
    """Return the login of a jump host, which is written `[ssh://][user@]host[:port]`."""
    user, _, place = jump.removeprefix("ssh://").rpartition("@")
    match = re.fullmatch(r"(\[.+\]|[^:]+)(?::(\d+))?", place) or re.fullmatch("(.*)()", place)
    assert match is not None
    return Login(
        match[1].strip("[]"), int(match[2]) if match[2] else None, user or None, login.config
    )
