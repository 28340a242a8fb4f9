"""A snapshot as one archive, for a project with too many files or bytes for a folder.

`<folder>/<id>.tar.gz` is one state of the code, read-only, and `<id>.tar.gz.sha256` its hash. It is
packed on the laptop first, so that its hash is known before a byte is sent. It travels as any large
content does: what a cut link left in `parts/` is continued.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lumitui.remote.site.errors import InputError
from lumitui.remote.site.shell_text import quote
from lumitui.remote.source.manifest import Manifest, ManifestEntry
from lumitui.remote.transfer.contents import content_store
from lumitui.remote.transfer.contents.content_queries import PATIENCE, check, missing_in
from lumitui.remote.transfer.contents.content_store import Item, Store, blobs_of
from lumitui.remote.transfer.contents.content_upload import ContentUpload, Shipped
from lumitui.remote.transfer.contents.pieces import packed
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

MAX_FILES = 100_000
MAX_BYTES = 2_000_000_000
"""Limits of an archive: every node unpacks it into its local folder, which may be in memory."""
_MTIME = 1_000_000_000  # fixed, so that the same files give the same bytes

_ASK = """\
a={id}.tar.gz
if [ -f "$a" ]; then
  h=$(sums "$a") && [ "${h%% *}" = "$(cat "$a.sha256" 2>/dev/null)" ] && { echo stands; exit 0; }
  rm -f "$a" "$a.sha256"
fi
find parts -type f -mtime +0 -exec rm -f {} + 2>/dev/null
ls -ln parts 2>/dev/null | awk '$5 > 0 {print "p", $9, $5}'
echo asked
"""


@purpose("send code")
def sync_archive(
    transport: Transport, folder: str, manifest: Manifest, where: Callable[[str], Path]
) -> Shipped:
    """Put `manifest` on the site as one archive below `folder`; like `sync`.

    One request is enough when it is there already; otherwise a second one sends it, or the rest of
    it.

    Raises:
        InputError: a file changed since `manifest` was made, or there is no room to pack it.
        RefusedError: the site could not store it (disk full, quota, no permission).
        LinkError, LinkLost: as `Transport.run`. It may be repeated: nothing half-made is used.
    """
    store = Store(folder, "")
    ask = content_store.script(folder, _ASK, id=manifest.id)
    there = f"[ -d {quote(folder)} ] || {{ echo asked; exit 0; }}\n"
    result = transport.run(there + ask, timeout=PATIENCE)
    check(result, "the code", store)
    missing = missing_in(result, (), folder)
    place = f"{folder}/{manifest.id}"
    if missing is None:
        return Shipped(place, manifest.id, 0, 0, 1)
    with _packed(manifest, where) as item:
        (blob,) = blobs_of(item)
        upload = ContentUpload(transport, store, item)
        upload.send_large(blob, missing.parts.get(blob.name, ()), f"{manifest.id}.tar.gz")
    requests = 1 + upload.requests
    return Shipped(place, manifest.id, len(manifest.entries), upload.bytes, requests)


@contextmanager
def _packed(manifest: Manifest, where: Callable[[str], Path]) -> Iterator[Item]:
    """Pack the manifest into a temporary file that is removed when the block ends."""
    digest = hashlib.sha256()
    with ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.NamedTemporaryFile(prefix="lumitui-"))
            for piece in packed(manifest.entries, where, mtime=_MTIME):
                digest.update(piece)
                file.write(piece)
            file.flush()
        except OSError as error:
            raise InputError(
                f"The code could not be packed into a temporary file: {error.strerror}.",
                "Make room in the folder for temporary files, or set TMPDIR to a folder with room.",
            ) from error
        entry = ManifestEntry("code.tar.gz", file.tell(), False, digest.hexdigest())
        source = Path(os.path.realpath(file.name))
        yield Item("the code", Manifest((entry,)), {entry.path: source}, {})
