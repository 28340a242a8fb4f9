"""The walk over a project folder: which files and links are sent, and what must not be."""

import os
import posixpath
import stat
from dataclasses import dataclass
from pathlib import Path

from lumitui.remote.site.errors import InputError
from lumitui.remote.source.ignore import Ignoring
from lumitui.remote.source.outside_links import Follow, way

MAX_FILES = 5000
MAX_BYTES = 200_000_000
_SKIPPED = frozenset({".git", "__pycache__", "node_modules"})
LOOKED_AT = 20_000
"""Entries after which the walk of a project over its limits ends; its error names the largest."""
_KERNEL = ("/proc", "/sys", "/dev")  # the kernel makes their files; /dev/shm is a disk in memory


@dataclass(frozen=True)
class ProjectLimits:
    """How much code a project may have."""

    files: int = MAX_FILES
    """Most files and links."""
    bytes: int = MAX_BYTES
    """Most bytes of all files together."""
    alternative: str = ""
    """What else a user may do about too much of it, at the end of a sentence."""


class WalkedFiles:
    """What a walk has met so far."""

    def __init__(
        self, limits: ProjectLimits, root: Path, follow: Follow | None = None, *, looked_at: int = 0
    ) -> None:
        """Stop the walk below `root` over the `limits`, after `looked_at` entries at the least."""
        self.files: list[tuple[str, os.stat_result]] = []
        self.links: list[tuple[str, str]] = []
        """Path and target."""
        self.refused: list[str] = []
        self.size = 0
        """Bytes of all files."""
        self.visited = 0
        """Entries of folders that were inspected."""
        self.root = os.path.realpath(root)
        self.follow = follow or Follow()
        self.within = [self.root]
        """The real paths of the folder and of those that links led to, down to the present one."""
        self._limits, self._looked_at = limits, looked_at

    @property
    def full(self) -> bool:
        """Whether the walk has met enough."""
        count = len(self.files) + len(self.links) + len(self.refused)
        over = count > self._limits.files or self.size > self._limits.bytes
        return over and self.visited >= self._looked_at

    def add(self, path: str, info: os.stat_result) -> None:
        """Add a file."""
        self.files.append((path, info))
        self.size += info.st_size

    def refuse(self, path: str, why: str) -> None:
        """Note a file that must not or cannot be sent."""
        self.refused.append(f"{path!r} {why}")

    def raise_refused(self) -> None:
        """Raise InputError when something was refused."""
        if self.refused:
            shown = "; ".join(self.refused[:5])
            more = f"; and {len(self.refused) - 5} more" if len(self.refused) > 5 else ""
            raise InputError(
                f"The project cannot be sent: {shown}{more}.",
                "Exclude them in .lumituiignore, or follow the advice for each.",
            )

    def check(self, limits: ProjectLimits) -> None:
        """Raise InputError when there is too much, naming the five largest at the top."""
        count, size = len(self.files) + len(self.links), self.size
        if count <= limits.files and size <= limits.bytes:
            return
        by_size = size > limits.bytes
        limit = f"{limits.bytes / 1e6:.0f} MB" if by_size else f"{limits.files} files"
        least, so_far = ("at least ", " so far") if self.full else ("", "")
        raise InputError(
            f"The project has {least}{count} files, {size / 1e6:.1f} MB, over the limit of "
            f"{limit}; the largest{so_far}: {self._largest(by_size)}.",
            f"Exclude data in .lumituiignore and reach it with `links:`{limits.alternative}.",
        )

    def _largest(self, by_size: bool) -> str:
        weights: dict[str, tuple[int, int]] = {}
        for path, info in self.files:
            head, slash, _ = path.partition("/")
            files, size = weights.get(head + slash, (0, 0))
            weights[head + slash] = files + 1, size + info.st_size
        largest = sorted(weights.items(), key=lambda item: -item[1][by_size])[:5]
        return ", ".join(
            f"{name} ({files} files, {size / 1e6:.1f} MB)" for name, (files, size) in largest
        )


def walk(
    root: Path,
    limits: ProjectLimits,
    elsewhere: frozenset[str] = frozenset(),
    follow: Follow | None = None,
) -> WalkedFiles:
    """Return what of the project below `root` is sent, far enough to describe what is too much.

    `elsewhere` are the files and folders in it that are no part of what is sent; `follow` says
    which links out of it are followed, and keeps what they led to.

    Raises:
        InputError: `root` is not a folder that a user keeps a project in.
    """
    if is_system(root):
        raise InputError(
            f"The project {root} belongs to the system; it is not a folder with your code.",
            "Name the folder of your code in `project:`.",
        )
    found = WalkedFiles(limits, root, follow, looked_at=LOOKED_AT)
    _walk(root, "", Ignoring.of(root, elsewhere), found)
    return found


def is_system(root: Path) -> bool:
    """Whether `root` is the root of all files, or a folder whose files the kernel makes."""
    real = Path(os.path.realpath(root))
    if real == Path(real.anchor):
        return True
    return any(real.is_relative_to(one) for one in _KERNEL) and not real.is_relative_to("/dev/shm")


def exceeds(
    root: Path,
    limits: ProjectLimits = ProjectLimits(),  # frozen
    *,
    elsewhere: frozenset[str] = frozenset(),
    follow: Follow | None = None,
) -> bool:
    """Whether the project is over the limits: a walk that reads no file and stops there."""
    found = WalkedFiles(limits, root, follow)
    if root.is_dir() and not is_system(root):
        _walk(root, "", Ignoring.of(root, elsewhere), found)
    return found.full


def _walk(folder: Path, below: str, ignoring: Ignoring, found: WalkedFiles) -> None:
    """Collect what is sent of `folder`, which is `below` ("a/b/") the root."""
    try:
        items = sorted(os.scandir(folder), key=lambda item: item.name)
    except OSError as error:
        found.refuse(below or ".", f"cannot be read ({error.strerror})")
        return
    names = {item.name for item in items}
    if "pyvenv.cfg" in names and below:
        return
    rules = ignoring.within(folder, below, names)
    for item in items:
        if found.full:
            return
        found.visited += 1
        is_folder = item.is_dir(follow_symlinks=False)
        path = below + item.name
        if item.name in _SKIPPED and (is_folder or item.name == ".git"):
            continue
        choice = rules.choice(path + "/" if is_folder else path)
        if is_folder and (choice.sent or choice.enter):
            _walk(folder / item.name, path + "/", rules.entering(choice), found)
        elif not is_folder and choice.sent:
            _take(item, path, found, rules)


def _take(item: os.DirEntry[str], path: str, found: WalkedFiles, rules: Ignoring) -> None:
    if not _travels(path):
        found.refuse(path, "has a name with a line end or bytes that are not UTF-8; rename it")
        return
    try:
        _take_kind(item, path, found, rules)
    except OSError as error:
        found.refuse(path, f"cannot be read ({error.strerror})")


def _take_kind(item: os.DirEntry[str], path: str, found: WalkedFiles, rules: Ignoring) -> None:
    if item.is_symlink():
        target = os.readlink(item.path)
        if _leads_out(found.root, item.path, path, target):
            if found.follow.names(path):
                _follow(Path(os.path.realpath(item.path)), path, found, rules)
            else:
                found.refuse(
                    path,
                    f"points out of the project to {way(target, Path(item.path))}; use `links:` "
                    f"for what is on the site, or `follow_links: [{path}]` to send what is there",
                )
        elif not _travels(target):
            found.refuse(path, "points to a name with a line end or bytes that are not UTF-8")
        else:
            found.links.append((path, target))
    elif item.is_file(follow_symlinks=False):
        found.add(path, item.stat(follow_symlinks=False))
        if len(found.within) > 1:
            found.follow.taken[path] = Path(os.path.realpath(item.path))
    else:
        found.refuse(path, "is neither a file nor a folder (socket, pipe or device); remove it")


def _follow(real: Path, path: str, found: WalkedFiles, rules: Ignoring) -> None:
    """Take what the link at `path` leads to: the file, or all of the folder, at `real`."""
    info = os.lstat(real)
    if stat.S_ISREG(info.st_mode):
        found.follow.taken[path] = real
        found.add(path, info)
    elif not stat.S_ISDIR(info.st_mode) or is_system(real):
        found.refuse(path, f"points to {real}, which is neither a file nor a folder to send")
    elif str(real) in found.within:
        found.refuse(path, f"points to {real}, which it is in itself")
    else:
        found.within.append(str(real))
        _walk(real, path + "/", rules, found)
        found.within.pop()


def _leads_out(root: str, place: str, path: str, target: str) -> bool:
    """Whether a link leaves the project, by its own text or through other links."""
    inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if target.startswith("/") or inside == ".." or inside.startswith("../"):
        return True
    return os.path.commonpath([root, os.path.realpath(place)]) != root


def _travels(text: str) -> bool:
    """Whether a list with one name a line can hold it."""
    if "\n" in text or "\r" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
