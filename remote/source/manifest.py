"""What of a project folder is shipped, and its name: the hash of what it holds."""

import errno
import hashlib
import json
import os
import posixpath
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lumitui.remote.errors import InputError
from lumitui.remote.source.hash_cache import Hashes
from lumitui.remote.source.ignore import Ignoring

MAX_FILES = 5000
MAX_BYTES = 200_000_000
_SKIPPED = frozenset({".git", "__pycache__", "node_modules"})
_WALKED = 10  # times the limit that are looked at, so that the error can name the largest
_CHUNK = 1 << 20
_Where = Callable[[str], Path]


@dataclass(frozen=True)
class Entry:
    """One file or symbolic link."""

    path: str
    """POSIX path below the project's root."""
    size: int
    """Bytes; 0 for a link."""
    executable: bool
    sha256: str
    """Hex digest of the content; empty for a link."""
    target: str | None = None
    """Where a link points, relative and inside the project; None for a file."""


@dataclass(frozen=True)
class Manifest:
    """All entries, sorted by path: an immutable description of one state of the code."""

    entries: tuple[Entry, ...]

    @property
    def files(self) -> Iterator[Entry]:
        """The entries that are files."""
        return (entry for entry in self.entries if entry.target is None)

    @cached_property
    def text(self) -> str:
        """The canonical form: one JSON list a line. `parse` reads it back."""
        return "".join(json.dumps(list(vars(entry).values())) + "\n" for entry in self.entries)

    @cached_property
    def id(self) -> str:
        """24 hex characters that name exactly these files."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:24]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.entries)

    def checksum_text(self) -> str:
        """The files in the format of `sha256sum -c`.

        A name with a backslash is written with two, and its line begins with one (GNU coreutils
        manual, "md5sum invocation").
        """
        lines = []
        for entry in self.files:
            mark = "\\" if "\\" in entry.path else ""
            name = entry.path.replace("\\", "\\\\")
            lines.append(f"{mark}{entry.sha256}  ./{name}\n")
        return "".join(lines)

    @staticmethod
    def parse(text: str) -> "Manifest":
        """Read what `text` gave.

        Raises:
            InputError: it is not such a text.
        """
        try:
            entries = tuple(Entry(*json.loads(line)) for line in text.splitlines())
        except (ValueError, TypeError) as error:
            raise InputError("A stored list of shipped files cannot be read.", "") from error
        return Manifest(entries)


def scan(
    root: Path,
    *,
    extra: Mapping[str, Path] | None = None,
    allow: Collection[str] = (),
    max_files: int = MAX_FILES,
    max_bytes: int = MAX_BYTES,
    way_out: str = "",
    hashes: Hashes | None = None,
) -> Manifest:
    """Read the project below `root` and hash what is shipped of it.

    Left out: what .gitignore and .lumituiignore files exclude (the latter win, and their `!`
    brings back what the former exclude), .git, __pycache__, node_modules, virtual environments.

    Args:
        root: the project's folder.
        extra: files from elsewhere, by the POSIX path they get.
        allow: paths of files with secrets that are shipped all the same.
        max_files: most files and links.
        max_bytes: most bytes of all files.
        way_out: what else may be done about too much of it, at the end of a sentence.
        hashes: what is known of the files from earlier; brought up to date and saved.

    Raises:
        InputError: something that must not or cannot be shipped, or too much of it.
    """
    if not root.is_dir():
        raise InputError(f"The project folder {root} does not exist.", "Correct `project:`.")
    found = _Found(max_files * _WALKED if max_files <= MAX_FILES else max_files * 2)
    _walk(root, "", Ignoring.of(root), found)
    taken = {path for path, _ in found.files} | {path for path, _ in found.links}
    for path, source in sorted((extra or {}).items()):
        if path in taken:
            found.refuse(path, "is also the name of a file lumitui adds; rename it")
        try:
            found.add(path, os.stat(source))
        except OSError as error:
            found.refuse(str(source), f"cannot be read ({error.strerror})")
    found.check(max_files, max_bytes, way_out)
    where = source_of(root, extra)
    for path, _ in found.files:
        _check_secret(path, where, allow, found)
    found.raise_refused()
    entries = [_hashed(path, where, info, hashes) for path, info in found.files]
    if hashes is not None:
        hashes.save()
    entries += [Entry(path, 0, False, "", target) for path, target in found.links]
    return Manifest(tuple(sorted(entries, key=lambda entry: entry.path)))


def exceeds(root: Path, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES) -> bool:
    """Whether the project is over the limits: a walk that reads no file and stops there."""
    found = _Found(max_files + 1, max_bytes + 1)
    if root.is_dir():
        _walk(root, "", Ignoring.of(root), found)
    return found.full


def has(root: Path, path: str) -> bool:
    """Whether `path`, a file or something in that folder, is shipped; reads its folders alone.

    Raises:
        InputError: it is there, and must not or cannot be shipped.
    """
    found = _Found(1)
    if root.is_dir():
        parts = () if path == "." else tuple(path.split("/"))
        _walk(root, "", Ignoring.of(root), found, parts)
    found.raise_refused()
    return found.full


def source_of(root: Path, extra: Mapping[str, Path] | None = None) -> Callable[[str], Path]:
    """Where the content of a manifest's path lies on this machine."""
    added = dict(extra or {})
    return lambda path: added[path] if path in added else root / path


class _Found:
    """What a walk has met so far."""

    def __init__(self, enough: int, enough_bytes: int | None = None) -> None:
        self.files: list[tuple[str, os.stat_result]] = []
        self.links: list[tuple[str, str]] = []
        self.refused: list[str] = []
        self._enough, self._enough_bytes = enough, enough_bytes
        self.size = 0

    @property
    def full(self) -> bool:
        if self._enough_bytes is not None and self.size >= self._enough_bytes:
            return True
        return len(self.files) + len(self.links) >= self._enough

    def add(self, path: str, info: os.stat_result) -> None:
        self.files.append((path, info))
        self.size += info.st_size

    def refuse(self, path: str, why: str) -> None:
        self.refused.append(f"{path!r} {why}")

    def raise_refused(self) -> None:
        if self.refused:
            shown = "; ".join(self.refused[:5])
            more = f"; and {len(self.refused) - 5} more" if len(self.refused) > 5 else ""
            raise InputError(
                f"The project cannot be shipped: {shown}{more}.",
                "Exclude them in .lumituiignore, or do what is said of each.",
            )

    def check(self, max_files: int, max_bytes: int, way_out: str) -> None:
        """Raise when there is too much, naming the five largest at the top of the project."""
        count = len(self.files) + len(self.links)
        size = self.size
        if count <= max_files and size <= max_bytes:
            return
        weights: dict[str, list[int]] = {}
        for path, info in self.files:
            head, slash, _ = path.partition("/")
            weight = weights.setdefault(head + slash, [0, 0])
            weight[0] += 1
            weight[1] += info.st_size
        by = 1 if size > max_bytes else 0
        largest = sorted(weights.items(), key=lambda item: -item[1][by])[:5]
        names = ", ".join(
            f"{name} ({files} files, {amount / 1e6:.1f} MB)" for name, (files, amount) in largest
        )
        limit = f"{max_bytes / 1e6:.0f} MB" if by else f"{max_files} files"
        least = "more than " if self.full else ""
        raise InputError(
            f"The project has {least}{count} files, {size / 1e6:.1f} MB, over the limit of "
            f"{limit}; the largest: {names}.",
            f"Exclude data in .lumituiignore and reach it with `links:`{way_out}.",
        )


def _walk(
    folder: Path, below: str, ignoring: Ignoring, found: _Found, along: Sequence[str] = ()
) -> None:
    """Collect what is shipped of `folder`, which is `below` ("a/b/") the root.

    `along` names the only item to look at, and in it the next one.
    """
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
        if along and item.name != along[0]:
            continue
        is_folder = item.is_dir(follow_symlinks=False)
        path = below + item.name
        if item.name in _SKIPPED and (is_folder or item.name == ".git"):
            continue
        verdict = rules.verdict(path + "/" if is_folder else path)
        if is_folder and (verdict.shipped or verdict.look_inside):
            _walk(folder / item.name, path + "/", rules.entering(verdict), found, along[1:])
        elif not is_folder and verdict.shipped and not along[1:]:
            _take(item, path, found)


def _take(item: os.DirEntry[str], path: str, found: _Found) -> None:
    if not _travels(path):
        found.refuse(path, "has a name with a line end or bytes that are not UTF-8; rename it")
        return
    try:
        _take_kind(item, path, found)
    except OSError as error:
        found.refuse(path, f"cannot be read ({error.strerror})")


def _take_kind(item: os.DirEntry[str], path: str, found: _Found) -> None:
    if item.is_symlink():
        target = os.readlink(item.path)
        if _leads_out(item, path, target):
            found.refuse(path, f"points out of the project to {target!r}; use `links:` for it")
        elif not _travels(target):
            found.refuse(path, "points to a name with a line end or bytes that are not UTF-8")
        else:
            found.links.append((path, target))
    elif item.is_file(follow_symlinks=False):
        found.add(path, item.stat(follow_symlinks=False))
    else:
        found.refuse(path, "is neither a file nor a folder (socket, pipe or device); remove it")


def _leads_out(item: os.DirEntry[str], path: str, target: str) -> bool:
    """Whether a link leaves the project, by its own text or through other links."""
    inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if target.startswith("/") or inside == ".." or inside.startswith("../"):
        return True
    root = os.path.realpath(item.path[: len(item.path) - len(path)])
    real = os.path.realpath(item.path)
    return os.path.commonpath([root, real]) != root


def _travels(text: str) -> bool:
    """Whether a list of one name a line can hold it."""
    if "\n" in text or "\r" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_secret(path: str, where: _Where, allow: Collection[str], found: _Found) -> None:
    """Refuse what looks like a secret by its name; `id_*` only when it is a private key."""
    name = posixpath.basename(path)
    if path in allow:
        return
    if name == ".env" or name.endswith(".pem"):
        found.refuse(path, "usually holds secrets; exclude it, or list it under `allow:`")
    elif name.startswith("id_"):
        try:
            with os.fdopen(opened(where(path)), "rb") as file:
                private = b"PRIVATE KEY-----" in file.read(200)
        except OSError:
            return  # `_hashed` says it with all others that cannot be read
        if private:
            found.refuse(path, "is a private key; exclude it, or list it under `allow:`")


def _hashed(path: str, where: _Where, seen: os.stat_result, hashes: Hashes | None) -> Entry:
    known = hashes.known(path, seen) if hashes is not None else None
    if known is not None:
        return Entry(path, seen.st_size, bool(seen.st_mode & 0o100), known)
    try:
        # Plain descriptors, and a buffer of the file's size: for small files a file object and a
        # large buffer cost more than the hash.
        file = opened(where(path))
        try:
            digest = hashlib.sha256()
            while chunk := os.read(file, min(_CHUNK, seen.st_size + 1)):
                digest.update(chunk)
            now = os.fstat(file)
        finally:
            os.close(file)
    except OSError as error:
        raise InputError(
            f"The project cannot be shipped: {path!r} cannot be read ({error.strerror}).",
            "Make it readable, or exclude it in .lumituiignore.",
        ) from error
    if _state(now) != _state(seen):
        raise changed(path)
    if hashes is not None:
        hashes.keep(path, now, digest.hexdigest())
    return Entry(path, now.st_size, bool(now.st_mode & 0o100), digest.hexdigest())


def opened(source: Path) -> int:
    """A descriptor of a regular file; a pipe that took its place is not waited for.

    Raises:
        OSError: it cannot be read, or is no file any more.
    """
    file = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "it is no longer a file")
    return file


def _state(info: os.stat_result) -> tuple[int, int, int, int]:
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns


def changed(path: str) -> InputError:
    """The error for a file that was written to while it was read."""
    return InputError(
        f"The file {path!r} changed while it was read.",
        "Wait until nothing writes to the project and send again.",
    )


def differing(new: Manifest, old: Manifest) -> tuple[Sequence[Entry], Sequence[str]]:
    """Entries of `new` that `old` lacks or has otherwise, and paths of `old` that must go first."""
    before = {entry.path: entry for entry in old.entries}
    after = {entry.path: entry for entry in new.entries}
    sent = [entry for path, entry in after.items() if before.get(path) != entry]
    gone = [path for path, entry in before.items() if after.get(path) != entry]
    return sent, gone
