"""Local items to stage: one file or a whole folder, read into a manifest.

Unlike code, data is sent as a whole: ignore files have no effect, and hidden files and any size are
allowed. Links inside the folder stay links. A link out of it is refused unless a pattern in
`follow_links:` matches it; then its target is sent, if neither a name along the link nor the
contents look like a secret.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lumitui.remote.site.errors import InputError
from lumitui.remote.site.secret_shapes import KeyMark, ShapeSearch, shape_of
from lumitui.remote.source.guard import covering, head_of
from lumitui.remote.source.hash_cache import FileContent, Hashes
from lumitui.remote.source.manifest import Manifest, ManifestEntry
from lumitui.remote.source.project_walk import FolderWalk, Follow, hops, is_system, some, way
from lumitui.remote.source.scan import file_state, opened, read_file
from lumitui.remote.source.secret_names import has_settings, secret_name
from lumitui.remote.transfer.contents.content_store import Item, stage_changed

MOST_FILES = 200_000
"""Maximum number of files in an item: more would burden a parallel file system; pack them
instead."""
_MOST_REFUSED = 1000
"""Maximum number of refused files to list; then the check ends."""
_SEARCHED = 1 << 18  # bytes; a key file is smaller; larger files are searched when they are sent
_MOST_SEARCHED = 200


@dataclass(frozen=True)
class Allowed:
    """The files of an item to send even if they look like secrets."""

    words: Sequence[str] = ()
    """Patterns as in `ship_secrets:`, relative to the item or its folder."""
    heeded: set[str] = field(default_factory=set)
    """Patterns that match a file which looks like a secret or is unreadable for others."""

    def names(self, root: Path, path: str) -> bool:
        """Return whether a pattern matches the file at `path` of the item at `root`."""
        own = root.name if path == "." else f"{root.name}/{path}"
        word = covering(self.words, path) or covering(self.words, own)
        if word is not None:
            self.heeded.add(word)
        return word is not None


def looks_like(root: Path, path: str) -> str:
    """Return what secret the file at `path` of the folder `root` looks like, or "".

    The names of parent folders also count: everything in `~/.ssh` is a secret.

    Raises:
        OSError: the contents decide, but cannot be read.
    """
    rule = secret_name("/".join([*root.parts[-2:], path]))
    if rule is None or (
        rule.holds and not rule.holds(head_of(opened(Path(os.path.realpath(root / path)))))
    ):
        return ""
    return rule.what


class StagedFiles(FolderWalk):
    """The files to stage under one name, before reading any: all, or the item is refused."""

    def __init__(
        self, name: str, root: Path, allow: Allowed, follow: Follow, enough: int | None = None
    ) -> None:
        """Stop after `enough` files and links; None: at the maximum."""
        super().__init__(root, follow)
        self.name, self.allow = name, allow
        self.private: list[str] = []
        """Files that other local users may not read, or "." for the folder."""
        self._enough = MOST_FILES + 1 if enough is None else enough

    @property
    def size(self) -> int:
        """Total bytes."""
        return sum(info.st_size for info in self.files.values())

    @property
    def single(self) -> str:
        """The name of the single file; "" for a folder."""
        return "" if self.root.is_dir() else self.root.name

    @property
    def top(self) -> Path:
        """The folder to which the files' paths are relative."""
        return self.root.parent if self.single else self.root

    def find_private(self) -> None:
        """Record files that other users may not read, unless a pattern matches them."""
        paths = [path for path, info in self.files.items() if not info.st_mode & 0o004]
        if not self.single and not self.root.stat().st_mode & 0o004:
            paths = ["."]
        self.private = [path for path in paths if not self.allow.names(self.top, path)]

    @property
    def full(self) -> bool:
        """Whether the walk should end."""
        return (
            len(self.files) + len(self.links) >= self._enough or len(self.refused) >= _MOST_REFUSED
        )

    def objection(self, path: str, place: str, target: str | None) -> str:
        """Return why the entry at `place` cannot be sent, or ""."""
        at = Path(place)
        what = looks_like(at.parent, at.name) or looks_like(self.root, path)
        if what and not self._allowed(path):
            return f"looks like {what}"
        if target is None:
            return ""
        if not at.exists():
            return f"is a link to {target!r}, which is not a file"
        if self.stays_inside(path, target, place):
            return ""
        if not self.follow.names(path, f"{self.root.name}/{path}"):
            return (
                f"is a link out of the folder, to {way(target, at)}; to send the target, write "
                f"`follow_links: [{path}]`"
            )
        for hop in hops(at):
            what = looks_like(hop.parent, hop.name)
            if what and not self._allowed(path):
                return f"is a link to {hop}, which looks like {what}"
        return ""

    def add(self, path: str, info: os.stat_result, real: Path | None = None) -> None:
        """Add a file; if it is small and reached through a symlink, search it for keys."""
        super().add(path, info, real)
        if real is not None and len(self.follow.taken) <= _MOST_SEARCHED:
            what = key_in(real, info)
            if what and not self._allowed(path):
                self.refuse(path, f"leads to {real}, which has {what}")

    def _allowed(self, path: str) -> bool:
        return self.allow.names(self.root, path)


def key_in(real: Path, info: os.stat_result) -> str:
    """Return the apparent key in a small file, or ""."""
    if info.st_size > _SEARCHED:
        return ""
    search = ShapeSearch()
    search.feed(head_of(opened(real)))
    return said_of(real, search.marks)


def said_of(real: Path, marks: Iterable[KeyMark]) -> str:
    """Return the first of the `marks` in the file at `real` with its line, in words, or ""."""
    for mark in marks:
        shape = shape_of(mark)
        if not shape.settings_only or has_settings(real.name):
            return f"{shape.what} in line {mark.line}"
    return ""


def find(
    name: str,
    place: Path,
    allowed: Sequence[str] = (),
    follow: Sequence[str] = (),
    *,
    enough: int | None = None,
) -> StagedFiles:
    """Return the files to stage at `place` as `name`; reads only names and small linked files.

    `allowed` has patterns of files to send although they look like secrets, and `follow` of links
    out of the folder. After `enough` files and links, the search ends.

    Raises:
        InputError: the place is missing, empty or the file system's root, or contains something
            that cannot or must not be sent.
    """
    root, allow = Path(os.path.realpath(place)), Allowed(allowed)
    if root.is_file():
        return _single(name, place, root, allow)
    if not root.is_dir():
        raise InputError(
            f"stage: {name} is {place}, which is not a file or folder.",
            "Correct the path.",
        )
    if root == Path(root.anchor):
        raise InputError(
            f"stage: {name} is {root}, which contains all files of this machine.",
            "Choose a smaller folder.",
        )
    if is_system(root):
        raise InputError(f"stage: {name} is {root}, a system folder.", "Choose another.")
    staged = StagedFiles(name, root, allow, Follow(follow), enough)
    staged.walk(root)
    if staged.refused:
        raise InputError(
            f"stage: {name} cannot be sent: {some(staged.refused)}.",
            "Remove or repair them, or stage a folder without them. To send files that look like "
            "secrets, list them under `ship_secrets:` in the job file; to follow links out of the "
            "folder, list them under `follow_links:`.",
        )
    if enough is None and staged.full:
        raise InputError(
            f"stage: {name} has more than {MOST_FILES:,} files.",
            "Pack them into shards (`trainers/pack.py`) or an archive, and stage that.",
        )
    if not staged.files and not staged.links:
        raise InputError(
            f"stage: {name} is {place}, which contains no files.",
            "Fill it, or correct the path.",
        )
    staged.find_private()
    return staged


def _single(name: str, place: Path, root: Path, allow: Allowed) -> StagedFiles:
    followed = {root.name: root} if os.path.realpath(place) != os.path.abspath(place) else {}
    try:
        # Both the user's path and the targets of links count.
        ways = (place, *hops(place), root)
        what = next(filter(None, (looks_like(one.parent, one.name) for one in ways)), "")
        what = what or (key_in(root, root.stat()) if followed else "")
        info = root.stat()
    except OSError as error:
        raise InputError(
            f"stage: {name} cannot be read: {error.strerror}.", "Make it readable."
        ) from error
    if what and not allow.names(root.parent, root.name):
        raise InputError(
            f"stage: {name} is {place}, which looks like {what}.",
            f"Correct the path, or send it anyway with `ship_secrets: [{root.name}]` in the job "
            "file.",
        )
    staged = StagedFiles(name, root, allow, Follow(taken=followed))
    staged.files[root.name] = info
    staged.find_private()
    return staged


def read(
    staged: StagedFiles,
    hashes: Hashes | None = None,
    passed: Callable[[int], None] = lambda size: None,
) -> Item:
    """Return the item with all hashes; `passed` is called with each number of bytes read.

    Raises:
        InputError: a file cannot be read, or changes during the read.
    """
    entries = [ManifestEntry(path, 0, False, "", target) for path, target in staged.links.items()]
    sources, seen = {}, {}
    for path, info in staged.files.items():
        behind = staged.follow.taken.get(path)
        sources[path] = staged.root if staged.single else behind or staged.root / path
        key = path if behind is None else f"{path}/"  # known only after searching for keys
        contents = _contents(staged, sources[path], key, info, hashes, passed)
        if behind is not None:
            _refuse_key(staged, path, behind, contents)
        seen[path] = file_state(info)
        executable = bool(info.st_mode & 0o100)
        entries.append(ManifestEntry(path, info.st_size, executable, contents.sha256))
    if hashes is not None:
        hashes.save()
    manifest = Manifest(tuple(sorted(entries, key=lambda entry: entry.path)))
    return Item(staged.name, manifest, sources, seen, staged.single)


def _refuse_key(staged: StagedFiles, path: str, real: Path, contents: FileContent) -> None:
    what = said_of(real, contents.marks)
    if what and not staged.allow.names(staged.top, path):
        raise InputError(
            f"stage: {staged.name}: {path!r} points to {real}, which has {what}.",
            f"Remove the link, or send it anyway with `ship_secrets: [{path}]` in the job file.",
        )


def _contents(
    staged: StagedFiles,
    source: Path,
    key: str,
    info: os.stat_result,
    hashes: Hashes | None,
    passed: Callable[[int], None],
) -> FileContent:
    try:
        read = read_file(lambda: source, key, info, hashes, passed, search=key.endswith("/"))
    except OSError as error:
        raise InputError(
            f"The file {source} cannot be read: {error.strerror}.", "Make it readable."
        ) from error
    if read is None:
        raise stage_changed(staged.name, str(source))
    return read[0]
