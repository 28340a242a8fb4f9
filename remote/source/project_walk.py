"""The walk over a folder to send: included files and links, and refused ones.

A link in an unpacked folder may lead to any file of this machine. So it is followed only if a
pattern in `follow_links:` matches it, and its target is searched for secrets.
"""

import errno
import os
import posixpath
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lumitui.remote.site.errors import InputError
from lumitui.remote.source.guard import covering
from lumitui.remote.source.ignore import Ignoring

_MOST_HOPS = 40  # Linux's limit (path_resolution(7))


@dataclass(frozen=True)
class Follow:
    """Which links out of the project to follow, and which were followed."""

    words: Sequence[str] = ()
    """Patterns as in `ship_secrets:`."""
    taken: dict[str, Path] = field(default_factory=dict)
    """The files behind such links: path in the copy to real path on this machine."""

    def names(self, *paths: str) -> bool:
        """Return whether a pattern matches one form of a link's path or a folder above it."""
        return any(covering(self.words, path) is not None for path in paths)


def hops(place: Path) -> list[Path]:
    """Return the paths that a link leads through, the last no link; OSError if it is circular."""
    paths: list[Path] = []
    at = place
    while os.path.islink(at):
        if len(paths) == _MOST_HOPS:
            raise OSError(errno.ELOOP, "it is a circular link")
        target = os.path.join(os.path.realpath(at.parent), os.readlink(at))
        above, name = os.path.split(target)
        plain = name in ("", ".", "..")
        at = Path(
            os.path.realpath(target) if plain else os.path.join(os.path.realpath(above), name)
        )
        paths.append(at)
    return paths


def names_of(place: Path) -> list[str]:
    """Return the endings of a link's target paths, for the rules about names."""
    return ["/".join(hop.parts[-3:]) for hop in hops(place)]


def way(target: str, place: Path) -> str:
    """Return the destination of the link at `place` with the text `target`, in words."""
    real = os.path.realpath(place)
    return repr(target) if real == target else f"{target!r} ({real})"


MAX_FILES = 10_000
MAX_BYTES = 500_000_000
_SKIPPED = frozenset({".git", "__pycache__", "node_modules"})
LOOKED_AT = 20_000
"""Number of entries after which the walk of an oversized project ends."""
_KERNEL = ("/proc", "/sys", "/dev")  # the kernel creates their files; /dev/shm is a RAM disk


@dataclass(frozen=True)
class ProjectLimits:
    """The limits of a project's size."""

    files: int = MAX_FILES
    """Maximum number of files and links."""
    bytes: int = MAX_BYTES
    """Maximum total bytes of all files."""


class FolderWalk:
    """The results of a walk so far."""

    def __init__(self, root: Path, follow: Follow) -> None:
        """Start empty; `follow` has the patterns of links out of `root` to follow."""
        self.root = Path(os.path.realpath(root))
        self.follow = follow
        self.files: dict[str, os.stat_result] = {}
        self.links: dict[str, str] = {}
        """Links inside the folder: path to target."""
        self.refused: list[str] = []
        """Refused entries, with the reason."""
        self.visited = 0
        """Number of inspected entries."""
        self._within = [self.root]
        """The folder, and those reached through links, down to the current one."""

    @property
    def full(self) -> bool:
        """Whether the walk should end."""
        return False

    def objection(self, path: str, place: str, target: str | None) -> str:
        """Return why the entry at `place`, possibly a link to `target`, cannot be sent, or ""."""
        return ""

    def stays_inside(self, path: str, target: str, place: str) -> bool:
        """Return whether a link stays in the folder, both as text and through other links."""
        if Path(place) != self.root / path:  # in a folder behind a link out of the project
            return False
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if target.startswith("/") or inside == ".." or inside.startswith("../"):
            return False
        return Path(os.path.realpath(place)).is_relative_to(self.root)

    def add(self, path: str, info: os.stat_result, real: Path | None = None) -> None:
        """Add a file; `real` is its path if it was reached through a link out."""
        self.files[path] = info
        if real is not None:
            self.follow.taken[path] = real

    def refuse(self, path: str, why: str) -> None:
        """Record a file that must not or cannot be sent."""
        self.refused.append(f"{path!r} {why}")

    def walk(self, folder: Path, below: str = "", rules: Ignoring | None = None) -> None:
        """Add the files of `folder` included by `rules`; it is `below` ("a/b/") the root."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            self.refuse(below or ".", f"cannot be read ({error.strerror})")
            return
        if rules is not None:
            names = {entry.name for entry in entries}
            if "pyvenv.cfg" in names and below:
                return
            rules = rules.within(folder, below, names)
        for entry in entries:
            if self.full:
                return
            self.visited += 1
            is_folder = entry.is_dir(follow_symlinks=False)
            path, inner = below + entry.name, rules
            if rules is not None:
                if entry.name in _SKIPPED and (is_folder or entry.name == ".git"):
                    continue
                choice = rules.choice(path + "/" if is_folder else path)
                if not choice.sent and not (is_folder and choice.enter):
                    continue
                inner = rules.entering(choice) if is_folder else rules
            if is_folder:
                self.walk(folder / entry.name, path + "/", inner)
            else:
                self._take(entry, path, rules)

    def _take(self, entry: os.DirEntry[str], path: str, rules: Ignoring | None) -> None:
        place = entry.path  # strings: path objects for 2,000 files would take 10 ms
        try:
            target = os.readlink(place) if entry.is_symlink() else None
            if why := self.objection(path, place, target):
                self.refuse(path, why)
            elif target is not None and self.stays_inside(path, target, place):
                self.links[path] = target
            elif target is not None:
                self._follow(Path(os.path.realpath(place)), path, rules)
            elif entry.is_file(follow_symlinks=False):
                real = Path(os.path.realpath(place)) if len(self._within) > 1 else None
                self.add(path, entry.stat(follow_symlinks=False), real)
            else:
                words = "is not a file or folder, but a socket, pipe or device; remove it"
                self.refuse(path, words)
        except OSError as error:
            self.refuse(path, f"cannot be read ({error.strerror})")

    def _follow(self, real: Path, path: str, rules: Ignoring | None) -> None:
        """Add the target of the link at `path`: the file, or the whole folder, at `real`."""
        info = os.lstat(real)
        if stat.S_ISREG(info.st_mode):
            self.add(path, info, real)
        elif not stat.S_ISDIR(info.st_mode) or is_system(real):
            self.refuse(
                path, f"is a link to {real}, which is not a file or folder that can be sent"
            )
        elif real in self._within:
            self.refuse(path, f"is a link to {real}, which contains the link itself")
        else:
            self._within.append(real)
            self.walk(real, path + "/", rules)
            self._within.pop()


class ProjectWalk(FolderWalk):
    """A walk over a project, which ends beyond its limits."""

    def __init__(
        self, limits: ProjectLimits, root: Path, follow: Follow | None = None, *, looked_at: int = 0
    ) -> None:
        """Stop the walk below `root` beyond the `limits`, but not before `looked_at` entries."""
        super().__init__(root, follow or Follow())
        self.size = 0
        """Bytes of all files so far."""
        self._limits, self._looked_at = limits, looked_at

    @property
    def full(self) -> bool:
        """Whether the walk should end."""
        count = len(self.files) + len(self.links) + len(self.refused)
        over = count > self._limits.files or self.size > self._limits.bytes
        return over and self.visited >= self._looked_at

    def objection(self, path: str, place: str, target: str | None) -> str:
        """Return why the entry at `place` cannot be sent; "" if it can."""
        if not _travels(path):
            return "has a name with a line break or bytes that are not UTF-8; rename it"
        if target is None:
            return ""
        if self.stays_inside(path, target, place):
            words = "points to a name with a line break or bytes that are not UTF-8"
            return "" if _travels(target) else words
        if self.follow.names(path):
            return ""
        return (
            f"points outside the project, to {way(target, Path(place))}; use `links:` for files on "
            f"the site, or `follow_links: [{path}]` to send the target"
        )

    def add(self, path: str, info: os.stat_result, real: Path | None = None) -> None:
        """Add a file."""
        super().add(path, info, real)
        self.size += info.st_size

    def check(self) -> None:
        """Raise InputError if the project is too large or has refused entries."""
        count, size, limits = len(self.files) + len(self.links), self.size, self._limits
        if count > limits.files or size > limits.bytes:
            by_size = size > limits.bytes
            limit = f"{limits.bytes / 1e6:.0f} MB" if by_size else f"{limits.files} files"
            least, so_far = ("at least ", " so far") if self.full else ("", "")
            raise InputError(
                f"The project has {least}{count} files, {size / 1e6:.1f} MB, over the limit of "
                f"{limit}; the largest{so_far}: {self._largest(by_size)}.",
                "Exclude data in .lumituiignore; `stage:` sends it once, and `links:` links "
                "files on the site.",
            )
        if self.refused:
            raise InputError(
                f"The project cannot be sent: {some(self.refused)}.",
                "Exclude them in .lumituiignore, or follow the advice for each.",
            )

    def _largest(self, by_size: bool) -> str:
        weights: dict[str, tuple[int, int]] = {}
        for path, info in self.files.items():
            head, slash, _ = path.partition("/")
            files, size = weights.get(head + slash, (0, 0))
            weights[head + slash] = files + 1, size + info.st_size
        largest = sorted(weights.items(), key=lambda item: -item[1][by_size])[:5]
        return ", ".join(
            f"{name} ({files} files, {size / 1e6:.1f} MB)" for name, (files, size) in largest
        )


def some(refused: Sequence[str]) -> str:
    """Return the first refused entries, and the number of others."""
    more = f"; and {len(refused) - 5} more" if len(refused) > 5 else ""
    return "; ".join(refused[:5]) + more


def walk(
    root: Path,
    limits: ProjectLimits,
    elsewhere: frozenset[str] = frozenset(),
    follow: Follow | None = None,
) -> ProjectWalk:
    """Return the project's files below `root`; ends early if the project is too large.

    `elsewhere` has the files and folders to leave out; `follow` selects the links out of the
    project to follow, and records their files.

    Raises:
        InputError: `root` is a system folder.
    """
    if is_system(root):
        raise InputError(
            f"The project {root} is a system folder, not a folder with your code.",
            "Set `project:` to the folder with your code.",
        )
    project = ProjectWalk(limits, root, follow, looked_at=LOOKED_AT)
    project.walk(project.root, "", Ignoring.of(root, elsewhere))
    return project


def is_system(root: Path) -> bool:
    """Return whether `root` is the file system's root or one of the kernel's folders."""
    real = Path(os.path.realpath(root))
    if real == Path(real.anchor):
        return True
    return any(real.is_relative_to(one) for one in _KERNEL) and not real.is_relative_to("/dev/shm")


def _travels(text: str) -> bool:
    """Return whether a name fits a list with one name per line."""
    if "\n" in text or "\r" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
