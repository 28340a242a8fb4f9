"""What is staged, read on this machine: one file, or all of a folder, as a manifest.

Unlike code, data is sent whole: no ignore file counts, hidden files and any size are welcome. Links
inside the folder stay links. A link out of it is refused, unless a pattern of `follow_links:` names
it: then what it leads to is sent, where neither a name on its way nor the contents show a secret.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from lumitui.remote.site.errors import InputError
from lumitui.remote.source.hash_cache import FileContent, Hashes
from lumitui.remote.source.manifest import Manifest, ManifestEntry
from lumitui.remote.source.outside_links import Follow, hops
from lumitui.remote.source.project_walk import is_system, some
from lumitui.remote.source.scan import file_state, read_file
from lumitui.remote.transfer.contents.content_store import Item, stage_changed
from lumitui.remote.transfer.staging.staged_files import (
    MOST_FILES,
    Allowed,
    StagedFiles,
    key_in,
    looks_like,
    said_of,
)


def find(
    name: str,
    place: Path,
    allowed: Sequence[str] = (),
    follow: Sequence[str] = (),
    *,
    enough: int | None = None,
) -> StagedFiles:
    """Return what is to stage at `place`; only names are read, and small files behind links.

    Args:
        name: what the job file calls it.
        place: the file or folder.
        allowed: patterns of files that may be sent although they look like secrets.
        follow: patterns of links out of the folder that are followed.
        enough: after so many files and links the rest is not looked at; None: all are.

    Raises:
        InputError: it is not there or empty, it is the root of all files, or something in it
            cannot or must not be sent.
    """
    root, allow = Path(os.path.realpath(place)), Allowed(allowed)
    if root.is_file():
        return _single(name, place, root, allow)
    if not root.is_dir():
        raise InputError(
            f"stage: {name} is to be {place}, which is neither a file nor a folder.",
            "Correct the path.",
        )
    if root == Path(root.anchor):
        raise InputError(f"stage: {name} is to be {root}, with all files there are.", "Name less.")
    if is_system(root):
        raise InputError(f"stage: {name} is to be {root}, a folder of the system.", "Name another.")
    staged = StagedFiles(name, root, allow, Follow(follow), enough)
    staged.walk(root)
    if staged.refused:
        raise InputError(
            f"stage: {name} cannot be sent: {some(staged.refused)}.",
            "Remove or repair them, or stage a folder without them. In the job file, "
            "`ship_secrets:` names files that are sent although they look like secrets, and "
            "`follow_links:` links out of the folder that are followed.",
        )
    if enough is None and staged.full:
        raise InputError(
            f"stage: {name} has more than {MOST_FILES:,} files.",
            "Pack them into shards (`trainers/pack.py`) or an archive, and stage that.",
        )
    if not staged.files and not staged.links:
        raise InputError(
            f"stage: {name} is to be {place}, which has no file in it.",
            "Fill it, or correct the path.",
        )
    staged.find_private()
    return staged


def _single(name: str, place: Path, root: Path, allow: Allowed) -> StagedFiles:
    followed = {root.name: root} if os.path.realpath(place) != os.path.abspath(place) else {}
    try:
        # The name that the user wrote counts, and those which a link leads to.
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
            f"stage: {name} is to be {place}, which looks like {what}.",
            f"Correct the path; or send it all the same, with `ship_secrets: [{root.name}]` in the "
            "job file.",
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
    """Return the item with the hash of every file; `passed` hears of each portion of bytes.

    Raises:
        InputError: a file cannot be read, or changes meanwhile.
    """
    entries = [ManifestEntry(path, 0, False, "", target) for path, target in staged.links.items()]
    sources, seen = {}, {}
    for path, info in staged.files.items():
        behind = staged.follow.taken.get(path)
        sources[path] = staged.root if staged.single else behind or staged.root / path
        key = path if behind is None else f"{path}/"  # known only after a search for keys
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
            f"stage: {staged.name}: {path!r} leads to {real}, which has {what}.",
            f"Remove the link; or send it all the same, with `ship_secrets: [{path}]` in the job "
            "file.",
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
