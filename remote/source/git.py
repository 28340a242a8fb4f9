"""Git's information on a folder, read without running programs that the folder configures.

An unpacked repository has its own configuration, which may name programs: filters, hooks, a
monitor, a transport for missing objects, and more keys than a list could cover. So git never uses
that configuration: it gets a temporary git folder with the repository's objects, references and
index, and only harmless values of its configuration.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lumitui.remote.site.reading.plain_file import read_plain

_SECONDS = 20.0
_SMALL = 4096  # maximum bytes of HEAD, and of a `.git` file
_SHARED = ("objects", "refs", "packed-refs", "reftable", "info", "shallow")
# Keys that affect which files differ and do not name programs (git-config(1)).
_HARMLESS = re.compile(
    r"(core\.(?:repositoryformatversion|filemode|symlinks|ignorecase|precomposeunicode|autocrlf"
    r"|eol|trustctime|checkstat)|extensions\.(?:objectformat|refstorage))\n([A-Za-z0-9]{0,20})"
)
_OWN_CONFIG = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")


@dataclass(frozen=True)
class Repository:
    """What git knows about a folder besides its .gitignore files."""

    top: Path
    below: str
    """The folder's path from the top, "" or "a/b/"."""
    excludes: tuple[Path, ...]
    """The pattern files of the user and the repository, lowest precedence first; some may not
    exist."""
    tracked: tuple[str, ...]
    """Files in the folder that git tracks although a pattern excludes them, sorted."""


@dataclass(frozen=True)
class Git:
    """git for one folder, with its own git folder and configuration."""

    root: Path
    top: Path
    excludes: Path
    """The user's pattern file; may not exist."""
    _command: tuple[str, ...]
    _environ: dict[str, str]

    def out(self, *words: str, data: bytes = b"") -> bytes | None:
        """Return git's output for the input `data`; None if it fails or takes too long."""
        return _out([*self._command, *words], self._environ, self.root, data)


@contextmanager
def reading(root: Path) -> Iterator[Git | None]:
    """Yield git for the repository around `root`; None without a repository or git.

    Changes nothing in the repository, not even its index.
    """
    root = root.resolve()
    top = next((at for at in (root, *root.parents) if os.path.exists(at / ".git")), None)
    program = _program(root)
    if top is None or program is None:
        yield None
        return
    own, common = _git_folders(top)
    # git would wait for a pipe in place of one of its files.
    named = (own / "HEAD", own / "commondir", own / "index", common / "config",
             common / "info" / "exclude")  # fmt: skip
    if any(path.exists() and not path.is_file() for path in named):
        yield None
        return
    environ = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    configured = _out(
        [program, "config", "-z", "--list"],
        environ
        | {name: os.environ[name] for name in _OWN_CONFIG if name in os.environ}
        | {"GIT_DIR": str(own)},
        root,
    )
    rows = os.fsdecode(configured or b"").split("\0")
    with tempfile.TemporaryDirectory(prefix="lumitui-git-") as name:
        made = Path(name)
        if not _make(made, own, common, rows):
            yield None
            return
        excludes = top / (_path(rows, "core.excludesfile") or _default("ignore"))
        attributes = top / (_path(rows, "core.attributesfile") or _default("attributes"))
        command = [program, "-c", "core.quotePath=false"]
        for key, path in (("excludesFile", excludes), ("attributesFile", attributes)):
            command += ["-c", f"core.{key}={path if path.is_file() else os.devnull}"]
        # Before git 2.32, only HOME and XDG_CONFIG_HOME exclude the user's configuration, where
        # git-lfs has its filter. No protocol: a partial clone must not fetch missing objects.
        environ |= {
            "GIT_DIR": name,
            "GIT_WORK_TREE": str(top),
            "HOME": name,
            "XDG_CONFIG_HOME": name,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_PAGER": "cat",
        }
        yield Git(root, top, excludes, tuple(command), environ)


def repository(root: Path) -> Repository | None:
    """Return the repository that contains `root`; None without a repository or git.

    Takes two short git commands.
    """
    with reading(root) as git:
        if git is None:
            return None
        tracked = git.out("ls-files", "-z", "--cached", "--ignored", "--exclude-standard") or b""
    top = git.top
    below = "" if git.root == top else git.root.relative_to(top).as_posix() + "/"
    lists = (git.excludes, _git_folders(top)[1] / "info" / "exclude")
    names = (os.fsdecode(name) for name in tracked.split(b"\0") if name)
    return Repository(top, below, lists, tuple(sorted(names)))


def _program(root: Path) -> str | None:
    """Return git's path, or None; never one below `root`, which `PATH=.` would find."""
    closed = () if Path.home().is_relative_to(root) else (root,)
    places = [
        place
        for place in os.get_exec_path()
        if os.path.isabs(place)
        and not any(Path(os.path.realpath(place)).is_relative_to(one) for one in closed)
    ]
    return shutil.which("git", path=os.pathsep.join(places))


def _out(
    command: Sequence[str], environ: dict[str, str], cwd: Path, data: bytes = b""
) -> bytes | None:
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environ,
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _make(made: Path, own: Path, common: Path, rows: Sequence[str]) -> bool:
    """Fill the temporary git folder `made`; return whether there is a repository."""
    try:
        (made / "HEAD").write_bytes(read_plain(own / "HEAD", _SMALL))
        for name in _SHARED:
            if (common / name).is_file() or (common / name).is_dir():
                (made / name).symlink_to(common / name)
        # A copy: a comparison writes times into it. The lock keeps git from reading all files anew.
        # Its own time tells which files may have been written since, within the same second.
        if (own / "index").is_file():
            shutil.copy2(own / "index", made / "index")
        (made / "index.lock").touch()
        for shared in own.glob("sharedindex.*"):
            (made / shared.name).symlink_to(shared)
        lines = ["[core]\nbare = false\n"]
        for match in filter(None, map(_HARMLESS.fullmatch, rows)):
            part, _, key = match[1].partition(".")
            lines.append(f"[{part}]\n{key} = {match[2]}\n")
        (made / "config").write_text("".join(lines))
    except OSError:
        return False
    return True


def _path(rows: Sequence[str], key: str) -> str:
    """Return the path in the last row with `key`, or ""."""
    values = [row.partition("\n")[2] for row in rows if row.partition("\n")[0] == key]
    return os.path.expanduser(values[-1]) if values else ""


def _default(name: str) -> Path:
    """Return the user's default file (gitignore(5), gitattributes(5))."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base) / "git" / name


def _git_folders(top: Path) -> tuple[Path, Path]:
    """Return the folder of HEAD and index, and that of the rest, which differ in a worktree."""
    at = top / ".git"
    with suppress(OSError, UnicodeDecodeError):
        if at.is_file():
            at = top / read_plain(at, _SMALL).decode().partition("gitdir:")[2].strip()
        if (at / "commondir").is_file():
            return at, at / read_plain(at / "commondir", _SMALL).decode().strip()
    return at, at
