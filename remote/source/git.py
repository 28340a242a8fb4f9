"""What the git repository around a project says about files to leave out."""

import contextlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_SECONDS = 20.0


@dataclass(frozen=True)
class Repository:
    """What git knows about a folder besides the .gitignore files in it."""

    top: Path
    below: str
    """The folder's path from the top, "" or "a/b/"."""
    excludes: tuple[Path, ...]
    """The person's own and the repository's list of patterns, the weakest first; not all exist."""
    tracked: tuple[str, ...]
    """Files in the folder that git tracks although a pattern matches them, sorted."""


def repository(root: Path) -> Repository | None:
    """Return the repository that contains `root`; None: there is none, or git is not installed.

    Costs two short git commands, which run at the same time.
    """
    root = root.resolve()
    top = next((at for at in (root, *root.parents) if os.path.exists(at / ".git")), None)
    if top is None:
        return None
    listing = _start(root, "ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
    asked = _start(root, "config", "--type=path", "--get", "core.excludesFile")
    if listing is None or asked is None:
        return None
    tracked, own = _output(listing), os.fsdecode(_output(asked)).removesuffix("\n")
    below = "" if root == top else root.relative_to(top).as_posix() + "/"
    lists = (Path(own) if own else _default(), _git_folder(top) / "info" / "exclude")
    names = (os.fsdecode(name) for name in tracked.split(b"\0") if name)
    return Repository(top, below, lists, tuple(sorted(names)))


def _start(root: Path, *words: str) -> "subprocess.Popen[bytes] | None":
    # A program that the repository names as its monitor must not run because files are listed.
    argv = ["git", "-c", "core.fsmonitor=false", "-C", str(root), *words]
    # Set where a git hook runs this program; the project's own repository is meant.
    other = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"}
    environ = {name: value for name, value in os.environ.items() if name not in other}
    try:
        return subprocess.Popen(
            argv,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None  # no git: only the .gitignore files count


def _output(process: "subprocess.Popen[bytes]") -> bytes:
    """Return its output; nothing when it fails, as in a repository that another user owns."""
    try:
        out, _ = process.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return b""
    return out if process.returncode == 0 else b""


def _default() -> Path:
    """Return the file of the person's own patterns where nothing is configured (gitignore(5))."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base) / "git" / "ignore"


def _git_folder(top: Path) -> Path:
    """Return the folder of the repository's own files; worktrees and submodules point to it."""
    at = top / ".git"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if at.is_file():
            at = top / at.read_text("utf-8").partition("gitdir:")[2].strip()
        common = at / "commondir"
        if common.is_file():
            at = at / common.read_text("utf-8").strip()
    return at
