"""Files of a run brought back: one stream, checked by hash, each put in place when it is whole."""

import hashlib
import io
import os
import re
import secrets
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lumitui.remote.errors import InputError, LumiError, RefusedError
from lumitui.remote.portable import SHA
from lumitui.remote.quoting import quote
from lumitui.remote.transport import Transport

_CHUNK = 1 << 18

_LIST = (
    SHA
    + """\
cd {folder} || exit 66
set --
for f in {patterns}; do
  if [ -f "$f" ]; then set -- "$@" "$f"; fi
done
[ $# -eq 0 ] && exit 0
sha "$@"
"""
)


@dataclass(frozen=True)
class Fetched:
    """One remote file that now stands on this machine."""

    name: str
    """Its path below the remote folder."""
    path: Path
    size: int
    """Bytes."""
    fresh: bool
    """Whether it was brought now; false: an equal file stood here."""


def fetch(
    transport: Transport,
    folder: str,
    patterns: Sequence[str],
    target: Path,
    *,
    stop: Callable[[], bool] = lambda: False,
) -> list[Fetched]:
    """Bring the files below remote `folder` that match `patterns` under `target`.

    `patterns` are the shell's (`checkpoints/*.pt`), relative to `folder`. Equal files are not
    brought again. Checkpoints do not compress, so the stream is plain tar. `stop` ends it between
    two pieces; whole files stay.

    Raises:
        InputError: a pattern is absolute or leaves the folder.
        RefusedError: the site could not read a file, or it changed meanwhile.
        LinkError, LinkLost: as `Transport`; whole files stay.
    """
    wanted = _listed(transport, folder, [_word(pattern) for pattern in patterns])
    done = [
        Fetched(name, target / name, (target / name).stat().st_size, fresh=False)
        for name, digest in wanted.items()
        if _digest(target / name) == digest
    ]
    have = {item.name for item in done}
    missing = {name: digest for name, digest in wanted.items() if name not in have}
    if missing:
        words = " ".join(quote(f"./{name}") for name in missing)
        # GNU tar reads a backslash of a name as the beginning of an escape.
        script = (
            "u=--no-unquote; tar $u --version >/dev/null 2>&1 || u=\n"
            f"cd {quote(folder)} && exec tar $u -chf - {words}"
        )
        done += _unpack(transport.stream(script, stop=stop), missing, target, stop)
    return sorted(done, key=lambda item: item.name)


def _word(pattern: str) -> str:
    """`pattern` as a word of the shell in which only `*`, `?` and `[...]` are special."""
    if pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
        raise InputError(
            f"The pattern {pattern!r} leaves the run's folder.",
            "Write it relative to the run, such as checkpoints/*.pt.",
        )
    # In brackets only what no shell reads as more than a character; the rest is plain text.
    parts = re.split(r"(\*|\?|\[!?[\w.,:+@%=-]+\])", pattern, flags=re.ASCII)
    special = ((part if index % 2 else quote(part)) for index, part in enumerate(parts) if part)
    return "./" + "".join(special)


def _listed(transport: Transport, folder: str, words: Sequence[str]) -> dict[str, str]:
    """Name -> digest of what is there, as `sha256sum` prints it."""
    head, body = _LIST.split("{folder}")
    script = head + quote(folder) + body.replace("{patterns}", " ".join(words))
    result = transport.run(script, timeout=900.0)
    if result.code:
        reason = result.err.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        raise RefusedError(f"The site could not read {folder}: {reason[-1]}.", "")
    found: dict[str, str] = {}
    # Not splitlines: a name may have what Unicode calls a line's end.
    for line in result.text.split("\n")[:-1]:
        escaped = line.startswith("\\")
        digest, _, name = line.lstrip("\\").partition("  ")
        name = name.removeprefix("./")
        if escaped:
            name = re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match[1], match[1]), name)
        found[_inside(name)] = digest
    return found


def _inside(name: str) -> str:
    """`name`, when it stays below a folder."""
    if name.startswith("/") or not {"..", ""}.isdisjoint(name.split("/")):
        raise RefusedError(f"The site names a file outside the run's folder: {name!r}.", "")
    return name


def _digest(path: Path) -> str:
    """The file's SHA-256; empty when there is none."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _unpack(
    stream: Iterator[bytes],
    missing: Mapping[str, str],
    target: Path,
    stop: Callable[[], bool],
) -> Iterator[Fetched]:
    left = dict(missing)
    came: set[str] = set()
    try:
        with tarfile.open(fileobj=io.BufferedReader(_Pipe(stream), _CHUNK), mode="r|") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                digest = left.pop(name, None)
                content = _opened(archive, member, came, target)
                if digest is None or content is None:
                    raise RefusedError(f"The site sent a file nobody asked for: {name!r}.", "")
                with content:
                    size = _put(content, target, name, digest)
                came.add(name)
                yield Fetched(name, target / name, size, fresh=True)
    except tarfile.TarError as error:  # a stream that was stopped ends in the middle
        if not stop():
            raise RefusedError(
                f"What the site sent is damaged: {error}.", "Fetch again."
            ) from error
    if left and not stop():
        raise RefusedError(f"The site did not send {', '.join(sorted(left)[:5])}.", "Fetch again.")


def _opened(
    archive: tarfile.TarFile, member: tarfile.TarInfo, came: set[str], target: Path
) -> IO[bytes] | None:
    """The content of `member`; None when it is no file.

    tar sends the second name of one file (latest.pt) as a link to the first, which `came` before.
    """
    twin = member.linkname.removeprefix("./")
    if member.islnk() and twin in came:
        return open(target / twin, "rb")
    return archive.extractfile(member) if member.isreg() else None


def _put(content: IO[bytes], target: Path, name: str, digest: str) -> int:
    """Write aside, check, rename; return the bytes."""
    path = target / name
    aside = path.parent / f".{path.name}.{secrets.token_hex(4)}.part"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.parent.resolve().is_relative_to(target.resolve()):
            raise RefusedError(f"{path.parent} leads out of {target}.", "Remove that link.")
        found = hashlib.sha256()
        with open(aside, "xb") as file:
            while piece := content.read(_CHUNK):
                found.update(piece)
                file.write(piece)
        if found.hexdigest() != digest:
            raise RefusedError(
                f"The file {name} changed on the site while it was brought.", "Fetch again."
            )
        os.replace(aside, path)
        return path.stat().st_size
    except OSError as error:
        raise LumiError(f"{path} cannot be written: {error.strerror}.", "Free space.") from error
    finally:
        aside.unlink(missing_ok=True)


class _Pipe(io.RawIOBase):
    """Chunks of a stream as a file to read."""

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
