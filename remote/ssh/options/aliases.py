"""Finds aliases for a host in the ssh configuration, such as `Host lumi`."""

import glob
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from lumitui.remote.ssh.config import Login
from lumitui.remote.ssh.options.openssh import home

_DEEPEST = 4
"""Levels of included files; OpenSSH allows 16."""
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
            plain = [name for name in names if not set(name) & set("*?!%")]
            matches += [name for name in plain if _leads(words[0], name, login.host)]
    return list(dict.fromkeys(matches))


def _leads(written: str, alias: str, host: str) -> bool:
    """Return whether HostName, as written for an alias, is the host."""
    return written.replace("%h", alias).replace("%n", alias).lower() == host.lower()


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
