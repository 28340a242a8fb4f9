"""OpenSSH reads the configuration (`ssh -G`), with Include, Match, tokens and variables.

What it refuses in names of hosts and users since 9.6 (`ssh_valid_hostname`, `ssh_valid_ruser` in
its readconf.c) is refused here with every version, and before anything is started with such a name.
"""

import os
import pwd
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.config import Login
from lumitui.remote.ssh.options.rows import ALGORITHMS

_OLDER = {
    "pubkeyacceptedkeytypes": "pubkeyacceptedalgorithms",  # before 8.5
    "challengeresponseauthentication": "kbdinteractiveauthentication",  # before 8.7
}
_HOST = re.compile(r"(?!-)[^'`\"$\\;&<>|(){},\s\x00-\x1f\x7f]+")
_USER = re.compile(r"(?!-)(?:(?!\s-)[^'`\";&<>|(){}\x00-\x1f\x7f])*(?<!\\)")


@dataclass(frozen=True)
class Table:
    """The options of one host, as `ssh -G` prints them: lower-case name -> its values in order."""

    values: Mapping[str, Sequence[str]]

    def written(self, name: str) -> str | None:
        """Return a list or a name as it is written, `none` too. None: it is not set."""
        found = self.values.get(name)
        return found[0] if found else None

    def one(self, name: str, default: str = "") -> str:
        """Return the value of an option that counts once; `none` is like no value."""
        value = self.written(name) or default
        return default if value.lower() == "none" else value

    def number(self, name: str, default: int) -> int:
        """Return a number; 0 and what is not a number are like no value."""
        value = self.one(name)
        return (int(value) if value.isdecimal() else 0) or default

    def on(self, name: str, default: bool = False) -> bool:
        """Return whether a switch is on."""
        # Under its older name an option may be printed a second time.
        values = [value.lower() for value in self.values.get(name, ())]
        return not {"no", "false"} & set(values) if values else default


def check_names(host: str, user: str = "") -> None:
    """Return if a command line may carry the names; an empty `user` is any.

    Raises:
        LinkError: a name has characters that mean something to a shell.
    """
    for what, name, rule in (("host", host, _HOST), ("user", user, _USER)):
        if not rule.fullmatch(name):
            raise LinkError(
                f"{name!r} cannot be the name of a {what}: it has characters that a shell would "
                "interpret.",
                "Correct it in the site's profile or in the ssh configuration.",
            )


def openssh_table(login: Login) -> Table:
    """Return how OpenSSH reads the configuration for `login`.

    Raises:
        LinkError: there is no OpenSSH, or the configuration has an error; then the message is its.
    """
    check_names(login.host, login.user or "")
    return Table(_ask(login))


@cache
def defaults() -> Mapping[str, Sequence[str]]:
    """Return what OpenSSH prints without any configuration."""
    return _ask(Login("localhost", config=Path("none")))


def home() -> str:
    """Return the home folder of the user's account, which OpenSSH takes whatever HOME says."""
    return pwd.getpwuid(os.getuid()).pw_dir


def from_home(text: str) -> str:
    """Return a path with its `~/` filled in; some versions of OpenSSH print it so."""
    return home() + text[1:] if text.startswith("~/") else text


def local_path(login: Login, text: str) -> Path:
    """Return the file that a value names: OpenSSH fills in `~name`, tokens and variables.

    `ssh -G` does so in ControlPath, which may have the tokens that IdentityFile and CertificateFile
    may have; these it prints as they are written.
    """
    if not re.search(r"%|\$\{|^~[^/]", text):
        return Path(from_home(text))
    quoted = re.sub(r'(["\\])', r"\\\1", text)
    try:
        return Path(_ask(login, "-o", f'ControlPath="{quoted}"')["controlpath"][0])
    except LinkError as error:
        raise LinkError(f"{error.message} It is about the file {text}.", error.hint) from error


def _ask(login: Login, *more: str) -> dict[str, list[str]]:
    command = ["ssh", *more, "-G"]
    for flag, value in (("-F", login.config), ("-p", login.port), ("-l", login.user)):
        command += [flag, str(value)] if value is not None else []
    check = f"Check it with: ssh -G {shlex.quote(login.host)}"
    try:
        done = subprocess.run(
            [*command, "--", login.host],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=20,
        )
    except FileNotFoundError as error:
        raise LinkError(
            "OpenSSH is not installed on this machine, and lumitui reads the ssh configuration "
            "with it (`ssh -G`).",
            "Install it: the package is called openssh-client or openssh-clients.",
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LinkError(
            f"OpenSSH did not say how to reach {login.host} (`ssh -G` failed or took 20 s).", check
        ) from error
    words = done.stderr.decode("utf-8", "replace").strip().splitlines()
    words = [line for line in words if ": terminating, " not in line] or ["no reason given"]
    if done.returncode:
        raise LinkError(
            f"OpenSSH cannot use the configuration for {login.host}: {words[-1]}.", check
        )
    table: dict[str, list[str]] = {}
    for line in filter(None, done.stdout.decode("utf-8", "surrogateescape").split("\n")):
        name, _, value = line.partition(" ")
        table.setdefault(_OLDER.get(name.lower(), name.lower()), []).append(value)
    for keyword in ALGORITHMS:
        if keyword.lower() not in table:  # it ends well, but has left out what it cannot use
            raise LinkError(
                f"OpenSSH cannot use {keyword} as the configuration for {login.host} has it: "
                f"{words[-1]}.",
                check,
            )
    return table
