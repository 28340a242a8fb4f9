"""Where the options of a host are read: OpenSSH's `ssh -G`, or paramiko where there is none."""

import getpass
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import paramiko

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.config import Login
from lumitui.remote.ssh.options.option_table import Table, rows_by_name
from lumitui.remote.ssh.options.percent_tokens import check_names, home
from lumitui.remote.ssh.options.rows import ALGORITHMS, ROWS

# `ssh -G` fills the tokens of these in; those of other options come as they were written.
_EXPANDED = frozenset(
    {"userknownhostsfile", "globalknownhostsfile", "identityagent", "revokedhostkeys", "hostname"}
)

_NEWER = ("j",)
"""Tokens that came with newer versions: 9.4."""


def has_openssh() -> bool:
    """Whether OpenSSH is installed, so that `ssh -G` works."""
    return shutil.which("ssh") is not None


def openssh_table(login: Login) -> Table:
    """Return how OpenSSH reads the configuration, Include and Match included (`ssh -G`).

    Raises:
        LinkError: the configuration has an error; the message is OpenSSH's.
    """
    check_names(login.host, login.user or "")
    values = _ask(login)
    digest = None
    if any("%C" in value for found in values.values() for value in found):
        # Its formula differs between versions, and the path of a master is filled in by `-G`.
        digest = _ask(login, "-o", "ControlPath=/%C").get("controlpath", ["/"])[0][1:]
    lacking = {letter for letter in _NEWER if not _knows(login, letter, values)}
    return Table(values, _EXPANDED, _defaults, digest, frozenset(lacking))


def _knows(login: Login, letter: str, values: Mapping[str, Sequence[str]]) -> bool:
    """Whether this OpenSSH has a token; it is asked only where a value has that."""
    if not any(f"%{letter}" in value for found in values.values() for value in found):
        return True
    try:
        _ask(login, "-o", f"ControlPath=/%{letter}")
    except LinkError:
        return False
    return True


def _ask(login: Login, *more: str) -> dict[str, list[str]]:
    command = ["ssh", *more, "-G"]
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
        words = error.stderr.decode("utf-8", "replace").strip().splitlines()
        words = [line for line in words if ": terminating, " not in line] or ["no reason given"]
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
    for line in filter(None, done.stdout.decode("utf-8", "surrogateescape").split("\n")):
        name, _, value = line.partition(" ")
        keyword, _ = rows_by_name().get(name.lower(), (name, None))  # versions before 8.7
        table.setdefault(keyword.lower(), []).append(value)
    for keyword in ALGORITHMS:
        if keyword.lower() not in table:  # it ends well, but has left out what it cannot use
            words = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it has none"]
            raise LinkError(
                f"OpenSSH cannot use {keyword} as the configuration for {login.host} has it: "
                f"{words[-1]}.",
                f"Check it with: ssh -G {shlex.quote(login.host)}",
            )
    return table


@cache
def _defaults() -> dict[str, list[str]]:
    """Return what OpenSSH prints without any configuration."""
    return _ask(Login("localhost", config=Path("none")))


class _Config(paramiko.SSHConfig):
    """paramiko's reader; the tokens that it knows are fewer than OpenSSH's."""

    TOKENS_BY_CONFIG_KEY = {  # noqa: RUF012  # as the class above declares it
        key: tokens
        for key, tokens in paramiko.SSHConfig.TOKENS_BY_CONFIG_KEY.items()
        if key in ("hostname", "proxyjump")
    }

    def _tokenize(self, config: object, target_hostname: str, key: str, value: str) -> str:
        """Fill in tokens; a command is refused, which would get them unchecked and our input."""
        if key == "match-exec":
            raise paramiko.ConfigParseError("Match exec needs OpenSSH, which is not installed")
        return str(super()._tokenize(config, target_hostname, key, value))  # type: ignore[misc]


def paramiko_table(login: Login) -> Table:
    """Return what paramiko reads of the ssh configuration, where there is no OpenSSH to ask.

    Raises:
        LinkError: the configuration has an error.
    """
    user = login.user or getpass.getuser()
    check_names(login.host, user)
    path = login.config or Path(home(), ".ssh/config")
    if login.config is None:
        _check_owner(path)
    try:
        found = _Config.from_text(_text(path)) if path.is_file() else _Config()
        table = found.lookup(login.host)
    except (paramiko.SSHException, ImportError, KeyError, OSError, ValueError) as error:
        raise LinkError(
            f"The ssh configuration {path} cannot be read: {error}.", "Correct it."
        ) from error
    default = {name.lower(): [row.default] for name, row in ROWS.items() if row.default}
    default |= {
        "identityfile": [f"~/.ssh/id_{kind}" for kind in ("rsa", "ecdsa", "ed25519")],
        "userknownhostsfile": ["~/.ssh/known_hosts ~/.ssh/known_hosts2"],
        "globalknownhostsfile": ["/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"],
    }
    given: dict[str, list[str]] = {}
    ignored = str(table.get("ignoreunknown", "")).lower()
    for key, item in table.items():
        keyword, row = rows_by_name().get(key, (key, None))
        if row is None and any(Path(key).match(word) for word in ignored.split(",") if word):
            continue
        given[keyword.lower()] = [str(item)] if not isinstance(item, list) else item
    return Table(
        {**default, **given},
        frozenset({"hostname", "globalknownhostsfile"}),
        lacking=frozenset(_NEWER),  # which version would be there, nobody knows
    )


def _text(path: Path) -> str:
    """Return a configuration as paramiko may read it: its lines end where OpenSSH's do.

    Raises:
        ValueError: it has a character that is a blank or ends a line for Python alone.
    """
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    for number, line in enumerate(text.split("\n"), 1):
        plain = line.rstrip(" \t\r")
        odd = [char for char in plain if char == "\0" or (char.isspace() and char not in " \t")]
        if odd and not line.lstrip(" \t").startswith("#"):
            raise ValueError(f"line {number} has the character U+{ord(odd[0]):04X}")
    return text


def _check_owner(path: Path) -> None:
    """Return if nobody else can write the person's configuration (as OpenSSH, readconf.c)."""
    with suppress(OSError):
        found = path.stat()
        if found.st_uid not in (0, os.getuid()) or found.st_mode & 0o022:
            raise LinkError(
                f"Other users may change the ssh configuration {path}.", f"chmod 600 {path}"
            )
