"""The configuration of one host, from its options and what the site's profile says."""

import getpass
import hashlib
import os
import re
import shlex
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.config import HostConfig, Login, Trust
from lumitui.remote.ssh.options.algorithms import algorithms
from lumitui.remote.ssh.options.option_table import Table, judge
from lumitui.remote.ssh.options.percent_tokens import (
    check_names,
    expand,
    from_home,
    home,
    local_path,
)

_METHODS = {
    "publickey": "PubkeyAuthentication",
    "keyboard-interactive": "KbdInteractiveAuthentication",
    "password": "PasswordAuthentication",
}
_OFF = ("no", "false")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
REKEY_FLOOR = 1 << 20
"""Fewest bytes between new keys. OpenSSH takes 16 and lets one packet pass in between (packet.c);
paramiko begins at most ten times a second, so tiny limits take up the connection."""


@dataclass(frozen=True)
class _Options:
    """The options of one host, with the tokens that their values may have."""

    table: Table
    tokens: Mapping[str, str]

    def on(self, name: str, default: bool = False) -> bool:
        """Return whether a switch is on."""
        # Under its older name an option may be printed a second time.
        values = [value.lower() for value in self.table.values.get(name, ())]
        return not any(value in _OFF for value in values) if any(values) else default

    def paths(self, keyword: str, words: Sequence[str]) -> tuple[Path, ...]:
        """Return `words` as paths; `none` is no path."""
        chosen = [word.strip('"') for word in words if word.lower() not in ("none", "")]
        if keyword.lower() in self.table.expanded:
            return tuple(Path(from_home(keyword, word)) for word in chosen)
        return tuple(local_path(keyword, word, self.tokens) for word in chosen)

    def files(self, keyword: str) -> tuple[Path, ...]:
        """Split a value of several files; `ssh -G` drops the quotes around a name with a space.

        A path begins with `/`, `~`, a token or a variable; any other word belongs to the name
        before it.
        """
        value = self.table.one(keyword.lower())
        words = re.split(r" +(?=[/~%\"]|\$\{)", value)
        return self.paths(keyword, [word for word in words if word])

    def agent(self) -> str | None:
        """Return the socket of the agent; None: the one in SSH_AUTH_SOCK."""
        place = (self.table.values.get("identityagent") or [""])[0].strip('"')
        if place in ("", "SSH_AUTH_SOCK"):
            return None
        if place == "none":
            return place
        if re.fullmatch(r"\$\w+", place):
            return os.environ.get(place[1:], "none")
        (path,) = self.paths("IdentityAgent", [place])
        return str(path)

    def command(self, keyword: str) -> tuple[str, ...]:
        """Return a command that no shell reads, as words."""
        value = self.table.one(keyword.lower())
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise LinkError(
                f"The option {keyword} of the ssh configuration has quotes that do not end: "
                f"{value}.",
                "Correct it.",
            ) from error

    def seconds(self, name: str, default: float) -> float:
        """Return a time, which may be `none`."""
        match = re.fullmatch(r"(\d+)([smhd]?)", self.table.one(name).lower())
        return (
            float(match[1]) * {"m": 60, "h": 3600, "d": 86400}.get(match[2], 1)
            if match
            else (default)
        )

    def rekey_bytes(self) -> int:
        """Return the first part of RekeyLimit, at least REKEY_FLOOR; 0: not set."""
        given = self._rekey_limit()
        return max(given, REKEY_FLOOR) if given else 0

    def _rekey_limit(self) -> int:
        match = re.match(r"(\d+)([kmg]?)(?: |$)", self.table.one("rekeylimit").lower())
        return int(match[1]) * _UNITS[match[2]] if match else 0

    def rekey_notes(self) -> tuple[str, ...]:
        """Return a sentence for a person whose RekeyLimit is below what lumitui keeps to."""
        given = self._rekey_limit()
        if not 0 < given < REKEY_FLOOR:
            return ()
        return (f"RekeyLimit {given}: lumitui makes new keys after {REKEY_FLOOR} bytes at least.",)

    def methods(self, host: str) -> tuple[str, ...]:
        """Return the ways to log in, in order.

        Raises:
            LinkError: the configuration leaves none.
        """
        given = self.table.written("preferredauthentications")
        preferred = list(_METHODS) if given is None else given.split(",")
        batch = self.on("batchmode")
        left = []
        for name in preferred:
            possible = name in _METHODS and not (batch and name != "publickey")
            if possible and self.on(_METHODS[name].lower(), default=True):
                left.append(name)
        if not left:
            raise LinkError(
                f"The ssh configuration leaves lumitui no way to log in to {host}.",
                "It can use keys, keyboard-interactive and passwords: check "
                f"PreferredAuthentications, BatchMode, {', '.join(_METHODS.values())}.",
            )
        return tuple(left)


def resolve(login: Login, table: Table) -> HostConfig:
    """Return the configuration in `table`, overridden by what `login` itself says.

    Raises:
        LinkError: an option that cannot be honoured, a name that a shell would interpret.
    """
    hostname = table.one("hostname", login.host)
    port = login.port or _port(table)
    user = login.user or table.one("user") or getpass.getuser()
    check_names(hostname, user)
    check_names(login.host)
    options = _Options(table, _tokens(login.host, hostname, port, user, table))
    notes = (*judge(login.host, table), *options.rekey_notes())
    own = (login.identity.expanduser(),) if login.identity else ()
    prompts = table.one("numberofpasswordprompts")
    return HostConfig(
        hostname=hostname,
        port=port,
        user=user,
        identities=own + options.paths("IdentityFile", table.values.get("identityfile", ())),
        identities_only=options.on("identitiesonly"),
        certificates=options.paths("CertificateFile", table.values.get("certificatefile", ())),
        agent=options.agent(),
        methods=options.methods(login.host),
        prompts=int(prompts) if prompts.isdecimal() else 3,
        batch=options.on("batchmode"),
        interactive_devices=table.one("kbdinteractivedevices"),
        jumps=tuple(filter(None, table.one("proxyjump").split(","))),
        proxy_command=_proxy_command(options) or None,
        proxy_passes_socket=options.on("proxyusefdpass"),
        bind_address=table.one("bindaddress") or None,
        family=_family(table),
        alive=int(options.seconds("serveraliveinterval", 0)) or 30,
        connect_timeout=options.seconds("connecttimeout", 0) or 15.0,
        rekey_bytes=options.rekey_bytes(),
        algorithms=algorithms(login.host, table),
        trust=_trust(options, hostname, port),
        renew=login.renew,
        notes=notes,
    )


def _trust(options: _Options, hostname: str, port: int) -> Trust:
    alias = options.table.written("hostkeyalias") or ""  # `none` is a name
    return Trust(
        name=alias or (hostname if port == 22 else f"[{hostname}]:{port}"),
        bare_name=hostname if port != 22 and not alias else "",
        files=options.files("UserKnownHostsFile"),
        global_files=options.files("GlobalKnownHostsFile"),
        command=options.command("KnownHostsCommand"),
        tokens=options.tokens,
        revoked=options.files("RevokedHostKeys"),
        strict=_strict(options.table),
        hash_names=options.on("hashknownhosts"),
        check_address=options.on("checkhostip") and not options.table.one("proxycommand"),
    )


def stricter(trust: Trust, other: Trust) -> Trust:
    """Return `trust`, with what `other` refuses beside it."""
    order: tuple[Literal["accept-new", "ask", "yes"], ...] = ("accept-new", "ask", "yes")
    return replace(
        trust,
        strict=max(trust.strict, other.strict, key=order.index),
        revoked=tuple(dict.fromkeys((*trust.revoked, *other.revoked))),
        check_address=trust.check_address or other.check_address,
    )


def _port(table: Table) -> int:
    value = table.one("port", "22")
    if not value.isdecimal() or not 0 < int(value) < 65536:
        raise LinkError(
            f"The ssh configuration sets Port to {value}, which is no port.", "Correct it."
        )
    return int(value)


def _strict(table: Table) -> Literal["yes", "ask", "accept-new"]:
    value = table.one("stricthostkeychecking", "ask").lower()
    if value in ("yes", "true"):
        return "yes"
    return "accept-new" if value == "accept-new" else "ask"  # also for `no` and `off`: a note


def _family(table: Table) -> Literal["any", "inet", "inet6"]:
    value = table.one("addressfamily").lower()
    if value == "inet":
        return "inet"
    return "inet6" if value == "inet6" else "any"


def _proxy_command(options: _Options) -> str:
    few = {letter: options.tokens[letter] for letter in "hnpr"}
    return expand("ProxyCommand", options.table.one("proxycommand"), few, variables=False)


def _tokens(alias: str, hostname: str, port: int, user: str, table: Table) -> Mapping[str, str]:
    local, jumps = socket.gethostname(), table.one("proxyjump")
    text = f"{local}{hostname}{port}{user}{jumps}"
    digest = hashlib.sha1(text.encode("utf-8", "surrogateescape"), usedforsecurity=False)
    found = {
        "C": table.hash or digest.hexdigest(),
        "d": home(),
        "h": hostname,
        "i": str(os.getuid()),
        "j": jumps,
        "k": table.written("hostkeyalias") or alias,
        "L": local.partition(".")[0],
        "l": local,
        "n": alias,
        "p": str(port),
        "r": user,
        "u": getpass.getuser(),
    }
    return {letter: value for letter, value in found.items() if letter not in table.lacking}
