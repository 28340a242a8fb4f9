"""Files of a run brought back: one stream, checked by hash; whole files are put in place."""

import hashlib
import io
import os
import secrets
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lumitui.remote.errors import LumiError, RefusedError
from lumitui.remote.snapshots.listing import Listed, list_again, list_files
from lumitui.remote.transport.protocol import Transport
from lumitui.remote.transport.shell import quote

_CHUNK = 1 << 18
_WORDS = 1 << 17
"""Most characters of names in one tar command: the arguments of a command have a limit."""


@dataclass(frozen=True)
class Fetched:
    """One remote file that is now on this machine."""

    name: str
    """Its path below the remote folder."""
    path: Path
    size: int
    """Bytes."""
    fresh: bool
    """Whether it was brought now; False: an equal file was here already."""


@dataclass(frozen=True)
class NotFetched:
    """One remote file that matches a pattern and was not fetched."""

    name: str
    why: str


@dataclass(frozen=True)
class FetchOutcome:
    """What a fetch brought, and what it did not."""

    files: tuple[Fetched, ...]
    left: tuple[NotFetched, ...] = ()
    """Files that changed, vanished or could not be read."""
    links: tuple[str, ...] = ()
    """Links that were not followed: to nothing, to folders, or out of the folder."""
    unmatched: tuple[str, ...] = ()
    """The patterns that brought nothing."""
    troubles: tuple[str, ...] = ()
    """The site's own words about what it could not read."""


def fetch(
    transport: Transport,
    folder: str,
    patterns: Sequence[str],
    target: Path,
    *,
    stop: Callable[[], bool] = lambda: False,
) -> FetchOutcome:
    """Bring the files below remote `folder` that match `patterns` under `target`.

    `patterns` are shell patterns (`checkpoints/*.pt`), relative to `folder`; a folder that fits
    brings everything in it. Equal files are not brought again. Checkpoints do not compress, so the
    stream is plain tar. A file that grows meanwhile comes as it was when it was listed; any other
    file that changes or vanishes is left out, and the rest comes. `stop` ends the fetch between two
    pieces; whole files stay.

    Raises:
        InputError: a pattern is absolute or leaves the folder.
        RefusedError: the site could not read the folder, or sent a file not asked for.
        LinkError, LinkLost: as `Transport`; whole files stay.
    """
    listing = list_files(transport, folder, patterns)
    done, missing = _here(listing.files, target)
    done += _brought(transport, folder, missing, target, stop)
    lost = _without(missing, done)
    left = [NotFetched(name, "its name is not UTF-8") for name in listing.unnamed]
    if lost and not stop():
        # Once more, each up to its present size: a file that only grows comes now.
        again = list_again(transport, folder, list(lost))
        found, missing = _here(again.files, target)
        found += _brought(transport, folder, missing, target, stop)
        done += found
        gone = _without(lost, found)
        if not stop():
            left += [
                NotFetched(
                    name, "it changed meanwhile" if name in missing else "it is gone or unreadable"
                )
                for name in gone
            ]
    return FetchOutcome(
        tuple(sorted(done, key=lambda item: item.name)),
        tuple(sorted(left, key=lambda item: item.name)),
        listing.links,
        listing.unmatched,
        listing.troubles,
    )


def _here(wanted: Mapping[str, Listed], target: Path) -> tuple[list[Fetched], dict[str, Listed]]:
    """Return the files that are here already, and those that are missing."""
    done = [
        Fetched(name, target / name, (target / name).stat().st_size, fresh=False)
        for name, item in wanted.items()
        if _digest(target / name) == item.digest
    ]
    return done, _without(wanted, done)


def _without(wanted: Mapping[str, Listed], done: Sequence[Fetched]) -> dict[str, Listed]:
    have = {item.name for item in done}
    return {name: item for name, item in wanted.items() if name not in have}


def _brought(
    transport: Transport,
    folder: str,
    missing: Mapping[str, Listed],
    target: Path,
    stop: Callable[[], bool],
) -> list[Fetched]:
    """Bring the files of `missing`, and return those that came as they were listed."""
    done: list[Fetched] = []
    for names in _portions(list(missing)):
        words = " ".join(quote(f"./{name}") for name in names)
        # GNU tar reads a backslash in a name as the beginning of an escape. For a file that changes
        # or vanishes meanwhile GNU tar returns 1 or 2 (tar(1), RETURN VALUE), busybox 1; the hashes
        # show which file it was.
        script = (
            "u=--no-unquote; tar $u --version >/dev/null 2>&1 || u=\n"
            f"cd {quote(folder)} || exit 66\ntar $u -chf - {words}\n[ $? -le 2 ]"
        )
        portion = {name: missing[name] for name in names}
        done += _unpack(transport.stream(script, stop=stop), portion, target)
        if stop():
            break
    return done


def _portions(names: Sequence[str]) -> Iterator[list[str]]:
    portion: list[str] = []
    room = _WORDS
    for name in names:
        if portion and len(name) > room:
            yield portion
            portion, room = [], _WORDS
        portion.append(name)
        room -= len(name) + 8
    if portion:
        yield portion


def _digest(path: Path) -> str:
    """Return the file's SHA-256; empty when there is no file."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _unpack(
    stream: Iterator[bytes], wanted: Mapping[str, Listed], target: Path
) -> Iterator[Fetched]:
    came: set[str] = set()
    try:
        with tarfile.open(fileobj=io.BufferedReader(_Pipe(stream), _CHUNK), mode="r|") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                if name not in wanted or not (member.isreg() or member.islnk()):
                    raise RefusedError(
                        f"The site sent a file that was not asked for: {name!r}.", ""
                    )
                content = _opened(archive, member, came, target)
                if content is None:
                    continue  # of a file that changed: both names are asked for again
                with content:
                    size = _put(content, target, name, wanted[name])
                if size is not None:
                    came.add(name)
                    yield Fetched(name, target / name, size, fresh=True)
    except tarfile.TarError:
        # A stream that was stopped ends in the middle, and so does busybox's where a file shrank:
        # what did not come is asked for again, or reported.
        return


def _opened(
    archive: tarfile.TarFile, member: tarfile.TarInfo, came: set[str], target: Path
) -> IO[bytes] | None:
    """Return the content of `member`; None for a second name of a file that did not come.

    tar sends the second name of one file (latest.pt) as a link to the first.
    """
    if member.isreg():
        return archive.extractfile(member)
    twin = member.linkname.removeprefix("./")
    return open(target / twin, "rb") if twin in came else None


def _put(content: IO[bytes], target: Path, name: str, listed: Listed) -> int | None:
    """Write to another name, check, rename; return the bytes, or None when the hash differs."""
    path = target / name
    aside = path.parent / f".{path.name}.{secrets.token_hex(4)}.part"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.parent.resolve().is_relative_to(target.resolve()):
            raise RefusedError(f"{path.parent} leads out of {target}.", "Remove that link.")
        found = hashlib.sha256()
        left = listed.size
        with open(aside, "xb") as file:
            while piece := content.read(_CHUNK if left is None else min(_CHUNK, left)):
                found.update(piece)
                file.write(piece)
                left = None if left is None else left - len(piece)
        if found.hexdigest() != listed.digest:
            return None
        os.replace(aside, path)
        return path.stat().st_size
    except OSError as error:
        raise LumiError(f"{path} cannot be written: {error.strerror}.", "Free space.") from error
    finally:
        aside.unlink(missing_ok=True)


class _Pipe(io.RawIOBase):
    """The chunks of a stream as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._held = chunks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._held:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._held = memoryview(chunk)
        count = min(len(buffer), len(self._held))
        buffer[:count], self._held = self._held[:count], self._held[count:]
        return count
