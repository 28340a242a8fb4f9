"""Has OpenSSH read the configuration (`ssh -G`), with Include, Match, tokens and variables.

Since 9.6, OpenSSH refuses some names of hosts and users (`ssh_valid_hostname`, `ssh_valid_ruser` in
readconf.c). lumitui refuses them with every version, before it starts a command with such a name.
"""

import glob
import os
import pwd
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
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
    """The options of one host from `ssh -G`: lowercase name -> its values in order."""

    values: Mapping[str, Sequence[str]]

    def written(self, name: str) -> str | None:
        """Return a list or a name as written, even `none`; None if it is not set."""
        values = self.values.get(name)
        return values[0] if values else None

    def one(self, name: str, default: str = "") -> str:
        """Return the first value of an option; `none` counts as not set."""
        value = self.written(name) or default
        return default if value.lower() == "none" else value

    def number(self, name: str, default: int) -> int:
        """Return a number; 0 and other texts count as not set."""
        value = self.one(name)
        return (int(value) if value.isdecimal() else 0) or default

    def on(self, name: str, default: bool = False) -> bool:
        """Return whether a switch is on."""
        # OpenSSH may print an option a second time under its older name.
        values = [value.lower() for value in self.values.get(name, ())]
        return not {"no", "false"} & set(values) if values else default


def check_names(host: str, user: str = "") -> None:
    """Raise LinkError if a shell would interpret a name; `user` may be empty."""
    for what, name, rule in (("host", host, _HOST), ("user", user, _USER)):
        if not rule.fullmatch(name):
            raise LinkError(
                f"{name!r} is not a valid {what} name: it has characters that a shell interprets.",
                "Correct it in the site's profile or in the ssh configuration.",
            )


def openssh_table(login: Login) -> Table:
    """Return the options for `login` as OpenSSH reads them; LinkError if it cannot."""
    check_names(login.host, login.user or "")
    return Table(_ask(login))


@cache
def defaults() -> Mapping[str, Sequence[str]]:
    """Return OpenSSH's options without any configuration."""
    return _ask(Login("localhost", config=Path("none")))


def home() -> str:
    """Return the home folder of the user's account; like OpenSSH, ignore HOME."""
    return pwd.getpwuid(os.getuid()).pw_dir


def from_home(text: str) -> str:
    """Return a path with `~/` expanded, which some versions of OpenSSH print."""
    return home() + text[1:] if text.startswith("~/") else text


def local_path(login: Login, text: str) -> Path:
    """Return the file of a value; OpenSSH expands `~name`, tokens and variables.

    `ssh -G` expands ControlPath, which allows the same tokens as IdentityFile and CertificateFile,
    but prints those two as written.
    """
    if not re.search(r"%|\$\{|^~[^/]", text):
        return Path(from_home(text))
    quoted = re.sub(r'(["\\])', r"\\\1", text)
    try:
        return Path(_ask(login, "-o", f'ControlPath="{quoted}"')["controlpath"][0])
    except LinkError as error:
        raise LinkError(f"{error.message} This concerns the file {text}.", error.hint) from error


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
            "OpenSSH is not installed on this machine, but lumitui needs it to read the ssh "
            "configuration (`ssh -G`).",
            "Install the package openssh-client or openssh-clients.",
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LinkError(
            f"OpenSSH did not read the configuration for {login.host} (`ssh -G` failed or took "
            "20 s).",
            check,
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
        if keyword.lower() not in table:  # ssh exits with 0, but omits lists that it cannot use
            raise LinkError(
                f"OpenSSH cannot use {keyword} in the configuration for {login.host}: {words[-1]}.",
                check,
            )
    return table


_DEEPEST = 4
"""Maximum depth of nested includes; OpenSSH allows 16."""
_LARGEST = 1 << 20


def aliases(login: Login) -> list[str]:
    """Return the names whose HostName is the host of `login`, in the order of the files.

    An entry for the host's own name takes precedence: then there are no aliases.
    """
    matches: list[str] = []
    names: list[str] = []
    for keyword, words in _lines(login.config or Path(home(), ".ssh/config")):
        if keyword in ("host", "match"):
            names = words if keyword == "host" else []
            if login.host in names:
                return []
        elif keyword == "hostname" and words:
            for name in names:
                leads_to = words[0].replace("%h", name).replace("%n", name)
                if not set(name) & set("*?!%") and leads_to.lower() == login.host.lower():
                    matches.append(name)
    return list(dict.fromkeys(matches))


def _lines(file: Path, depth: int = 0) -> Iterator[tuple[str, list[str]]]:
    """Yield the keyword and words of each line, including those of included files.

    Unreadable files are skipped: `ssh -G` reports them.
    """
    try:
        with file.open("rb") as opened:
            text = opened.read(_LARGEST).decode("utf-8", "surrogateescape")
    except OSError:
        return
    for line in text.split("\n"):
        match = re.match(r"\s*(\w+)(?:\s*=\s*|\s+)(.*)", line)
        if match is None:
            continue
        try:
            words = shlex.split(match[2], comments=True)
        except ValueError:
            continue
        keyword = match[1].lower()
        if keyword != "include":
            yield keyword, words
        elif depth < _DEEPEST:
            for word in words:
                place = word.replace("~", home(), 1) if word.startswith("~/") else word
                for name in sorted(glob.glob(str(Path(home(), ".ssh", place)))):
                    yield from _lines(Path(name), depth + 1)
