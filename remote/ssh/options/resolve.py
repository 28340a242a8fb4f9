"""The configuration of one host, from its options and the site's profile."""

import getpass
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.config import HostConfig, Login, Trust
from lumitui.remote.ssh.options.algorithms import algorithms
from lumitui.remote.ssh.options.openssh import (
    Table,
    check_names,
    defaults,
    from_home,
    local_path,
)
from lumitui.remote.ssh.options.rows import judge

_METHODS = {
    "publickey": "PubkeyAuthentication",
    "keyboard-interactive": "KbdInteractiveAuthentication",
    "password": "PasswordAuthentication",
}
REKEY_FLOOR = 1 << 20
"""Minimum number of bytes between new session keys. OpenSSH allows 16, and one packet in between
(packet.c); paramiko renews keys at most ten times a second, so tiny limits would block the
connection."""


def resolve(login: Login, table: Table) -> HostConfig:
    """Return the configuration in `table`, overridden by `login`.

    Raises:
        LinkError: lumitui cannot honour an option, or a shell would interpret a name.
    """
    hostname = table.one("hostname", login.host)
    port = login.port or table.number("port", 22)
    user = login.user or table.one("user") or getpass.getuser()
    check_names(hostname, user)
    check_names(login.host)
    notes = judge(login.host, table.values, defaults())
    own = (Path(os.path.expanduser(login.identity)),) if login.identity else ()
    prompts, rekeying = table.one("numberofpasswordprompts"), table.one("rekeylimit", "0")
    rekey_bytes = int(rekeying.split()[0]) if rekeying.split()[0].isdecimal() else 0
    return HostConfig(
        hostname=hostname,
        port=port,
        user=user,
        identities=own + _paths(login, table.values.get("identityfile", ())),
        identities_only=table.on("identitiesonly"),
        certificates=_paths(login, table.values.get("certificatefile", ())),
        agent=_agent(table),
        methods=_methods(login.host, table),
        prompts=int(prompts) if prompts.isdecimal() else 3,
        batch=table.on("batchmode"),
        jumps=tuple(filter(None, table.one("proxyjump").split(","))),
        proxy_command=_proxy_command(
            table, {"%": "%", "h": hostname, "n": login.host, "p": str(port), "r": user}
        ),
        bind_address=table.one("bindaddress") or None,
        family=table.one("addressfamily").lower(),
        alive=table.number("serveraliveinterval", 30),
        connect_timeout=table.number("connecttimeout", 15),
        rekey_bytes=max(rekey_bytes, REKEY_FLOOR) if rekey_bytes else 0,
        algorithms=algorithms(login.host, table),
        trust=_trust(table, hostname, port),
        renew=login.renew,
        notes=notes,
    )


def _paths(login: Login, words: Sequence[str]) -> tuple[Path, ...]:
    chosen = (word.strip('"') for word in words if word.lower() not in ("none", ""))
    return tuple(local_path(login, word) for word in chosen)


def _files(table: Table, name: str) -> tuple[Path, ...]:
    """Split a value with several files; `ssh -G` drops the quotes around names with spaces.

    A path begins with `/` or `~`; any other word belongs to the path before it.
    """
    words = (word.strip('"') for word in re.split(r" +(?=[/~\"])", table.one(name)))
    return tuple(Path(from_home(word)) for word in words if word.lower() not in ("none", ""))


def _agent(table: Table) -> str | None:
    """Return the socket of the agent; None: the one in SSH_AUTH_SOCK."""
    place = (table.written("identityagent") or "").strip('"')
    if place in ("", "SSH_AUTH_SOCK"):
        return None
    if re.fullmatch(r"\$\w+", place):
        return os.environ.get(place[1:], "none")
    return from_home(place)


def _methods(host: str, table: Table) -> tuple[str, ...]:
    """Return the ways to log in, in order; LinkError if the configuration allows none."""
    preferred = table.written("preferredauthentications")
    methods = tuple(
        name
        for name in (list(_METHODS) if preferred is None else preferred.split(","))
        if name in _METHODS
        and table.on(_METHODS[name].lower(), default=True)
        and (name == "publickey" or not table.on("batchmode"))
    )
    if not methods:
        raise LinkError(
            f"The ssh configuration allows no login to {host} that lumitui supports.",
            "lumitui supports keys, keyboard-interactive and passwords: check "
            f"PreferredAuthentications, BatchMode, {', '.join(_METHODS.values())}.",
        )
    return methods


def _proxy_command(table: Table, tokens: dict[str, str]) -> str | None:
    """Return the command with its tokens expanded; its shell expands variables."""

    def fill(match: re.Match[str]) -> str:
        if match[1] not in tokens:
            raise LinkError(
                f"ProxyCommand does not support the token {match[0]}: {match.string}.",
                "Correct it in the ssh configuration.",
            )
        return tokens[match[1]]

    return re.sub(r"%(.?)", fill, table.one("proxycommand"), flags=re.DOTALL) or None


def _trust(table: Table, hostname: str, port: int) -> Trust:
    alias = table.written("hostkeyalias") or ""  # `none` is a name
    return Trust(
        name=alias or (hostname if port == 22 else f"[{hostname}]:{port}"),
        bare_name=hostname if port != 22 and not alias else "",
        files=_files(table, "userknownhostsfile"),
        global_files=_files(table, "globalknownhostsfile"),
        strict=_strict(table),
        hash_names=table.on("hashknownhosts"),
    )


def stricter(trust: Trust, other: Trust) -> Trust:
    """Return `trust`, but as strict as `other` if that is stricter."""
    order: tuple[Literal["accept-new", "ask", "yes"], ...] = ("accept-new", "ask", "yes")
    return replace(trust, strict=max(trust.strict, other.strict, key=order.index))


def _strict(table: Table) -> Literal["yes", "ask", "accept-new"]:
    value = table.one("stricthostkeychecking", "ask").lower()
    if value in ("yes", "true"):
        return "yes"
    return "accept-new" if value == "accept-new" else "ask"  # also for `no` and `off`, with a note
