"""A snapshot as one archive, for a project with too many files or bytes for a folder.

`<folder>/<id>.tar.gz` is one state of the code, read-only, and `<id>.tar.gz.sha256` its hash. It is
packed on the laptop first, so that its hash is known before a byte is sent. It arrives as
`.incoming-...` and is renamed when every byte is right. What a cut link left there is continued.
"""

import hashlib
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lumitui.remote.site.answer_fields import count
from lumitui.remote.site.errors import InputError, RefusedError
from lumitui.remote.site.shell_text import SHA, fill, quote
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.transfer.contents.tar import Packed, tar_stream
from lumitui.remote.transfer.snapshots.upload import Synced, answer
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

MAX_FILES = 100_000
MAX_BYTES = 2_000_000_000
"""Limits of an archive: every node unpacks it into its local folder, which may be in memory."""
_MTIME = 1_000_000_000  # fixed, so that the same files give the same bytes
_CHUNK = 1 << 18
_SLOWEST = 100_000  # bytes per second; a slower link runs into the timeout

_CHECK = """\
umask 077
cd {folder} 2>/dev/null || { echo missing; exit 0; }
a={id}.tar.gz; p=.incoming-{id}.part
h=$(sha <"$a" 2>/dev/null) && [ "${h%% *}" = "$(cat "$a.sha256" 2>/dev/null)" ] &&
  { echo stands; exit 0; }
[ -f "$p" ] && h=$(sha <"$p") && { echo part $(( $(wc -c <"$p") )) "${h%% *}"; exit 0; }
echo missing
"""

# What a cut link leaves is kept for the next try; what did not fit on the disk is not.
_MAKE = """\
umask 077
mkdir -p {folder} && cd {folder} || exit 73
chmod 700 . 2>/dev/null  # a default ACL above outweighs the umask
a={id}.tar.gz; p=.incoming-{id}.part; w=.incoming-{id}-{random}
find . -maxdepth 1 -name '.incoming-*' -mtime +0 | while IFS= read -r old; do
  chmod -R u+w "$old" 2>/dev/null; rm -rf "$old"
done
keep=
trap 'rm -f "$w.sha256"; if [ -n "$keep" ]; then mv -f "$w" "$p"; else rm -f "$w"; fi' EXIT
trap 'exit 74' HUP INT TERM PIPE
if [ {offset} -gt 0 ]; then mv "$p" "$w" || { echo part-gone; exit 0; }; else : >"$w"; fi
keep=yes
cat >>"$w" || { keep=; exit 74; }
if [ "$(( $(wc -c <"$w") ))" -lt {size} ]; then echo 'the link ended too early' >&2; exit 74; fi
keep=
h=$(sha <"$w") && [ "${h%% *}" = {hash} ] ||
  { echo 'what arrived is not what was sent' >&2; exit 74; }
echo {hash} >"$w.sha256" && chmod a-w "$w" "$w.sha256" &&
  mv -f "$w.sha256" "$a.sha256" && mv -f "$w" "$a" && echo made || exit 74
"""


@dataclass(frozen=True)
class _Archive:
    file: IO[bytes]
    size: int
    sha256: str


@purpose("send code")
def sync_archive(
    transport: Transport, folder: str, manifest: Manifest, where: Callable[[str], Path]
) -> Synced:
    """Put `manifest` on the site as one archive below `folder`; like `sync`.

    One request is enough when it is there already; otherwise a second one sends it, or the rest of
    it.

    Raises:
        InputError: a file changed since `manifest` was made, or there is no room to pack it.
        RefusedError: the site could not store it (disk full, quota, no permission).
        LinkError, LinkLost: as `Transport.run`. It may be repeated: nothing half-made is used.
    """
    place = f"{folder}/{manifest.id}"
    check = SHA + fill(_CHECK, folder=quote(folder), id=manifest.id)
    words = answer(transport.run(check, timeout=600.0), folder).split()
    if words == ["stands"]:
        return Synced(place, manifest.id, 0, 0, 1)
    with _packed(manifest, where) as archive:
        offset = _continued(archive, words)
        sent, requests = 0, 1
        for start in dict.fromkeys((offset, 0)):
            requests += 1
            script = SHA + fill(
                _MAKE,
                folder=quote(folder),
                id=manifest.id,
                random=secrets.token_hex(4),
                offset=start,
                size=archive.size,
                hash=archive.sha256,
            )
            limit = 600.0 + (archive.size - start) / _SLOWEST
            result = transport.run(script, stdin=_from(archive.file, start), timeout=limit)
            sent += archive.size - start
            if answer(result, folder) == "made":
                return Synced(place, manifest.id, len(manifest.entries), sent, requests)
    raise RefusedError(
        f"The archive {manifest.id} could not be completed in {folder}.",
        "Something else changes files there; ask the site's support.",
    )


@contextmanager
def _packed(manifest: Manifest, where: Callable[[str], Path]) -> Iterator[_Archive]:
    """Pack the manifest into a temporary file that is removed when the block ends."""
    packed, digest = Packed(), hashlib.sha256()
    with ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.TemporaryFile(prefix="lumitui-"))
            for piece in packed.stream(tar_stream(manifest.entries, where, mtime=_MTIME)):
                digest.update(piece)
                file.write(piece)
            file.flush()
        except OSError as error:
            raise InputError(
                f"The code could not be packed into a temporary file: {error.strerror}.",
                "Make room in the folder for temporary files, or set TMPDIR to a folder with room.",
            ) from error
        yield _Archive(file, packed.size, digest.hexdigest())


def _continued(archive: _Archive, words: list[str]) -> int:
    """Return how many bytes of the archive are there already; `_CHECK` says `part SIZE HASH`."""
    size = count(words[1]) if len(words) == 3 and words[0] == "part" else None
    if size is None or not 0 < size < archive.size:
        return 0
    archive.file.seek(0)
    digest, left = hashlib.sha256(), size
    while left and (piece := archive.file.read(min(_CHUNK, left))):
        digest.update(piece)
        left -= len(piece)
    return size if digest.hexdigest() == words[2] else 0


def _from(file: IO[bytes], start: int) -> Iterator[bytes]:
    file.seek(start)
    while piece := file.read(_CHUNK):
        yield piece
