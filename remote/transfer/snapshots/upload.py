"""Snapshots: a project's files on the site, each content sent once, never changed.

`<folder>/<id>/` is one state of the code, read-only, and `<folder>/<id>.sums` its checksums; the
store is `contents.content_store`'s. Snapshots share the contents that did not change. A run gets a
copy of its own, checked by the checksums: with hard links one run's writes would change another
run's code.
"""

from collections.abc import Callable
from pathlib import Path

from lumitui.remote.site.errors import RefusedError
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.transfer.contents.content_store import Item, Store
from lumitui.remote.transfer.contents.content_upload import ContentUpload, Shipped
from lumitui.remote.transfer.snapshots.snapshot_store import VERIFIED
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

_CHECKED = """\
( cd "$w/tree" && verified ../sums ) || { echo 'what arrived is not what was sent' >&2; exit 74; }
"""


@purpose("send code")
def sync(
    transport: Transport,
    folder: str,
    manifest: Manifest,
    where: Callable[[str], Path],
    base: Manifest | None = None,
) -> Shipped:
    """Put `manifest` on the site as a snapshot below `folder`; send only what is missing.

    One request is enough when the snapshot is there already, or when `base`, one sent before, is
    there. Otherwise a second one sends what is missing.

    Args:
        transport: the site.
        folder: the folder of the project's snapshots there; made when it is missing.
        manifest: the files of the snapshot.
        where: returns the local file of a path of the manifest (`scan.source_of`).
        base: the last snapshot that is known to have been there.

    Raises:
        InputError: a file changed since `manifest` was made.
        RefusedError: the site could not store it (disk full, quota, no permission).
        LinkError, LinkLost: as `Transport.run`. It may be repeated: nothing half-made is used.
    """
    sources = {entry.path: where(entry.path) for entry in manifest.files}
    item = Item("the code", manifest, sources, {}, sums=manifest.checksum_text().encode())
    upload = ContentUpload(transport, Store(folder, ""), item, checks=VERIFIED + _CHECKED)
    try:
        return upload.run(base)
    except RefusedError as error:
        if "what arrived is not" in error.message:
            refuse_names(manifest, folder)
        raise


def refuse_names(manifest: Manifest, folder: str) -> None:
    """Raise RefusedError when the site may not be able to keep or check a name.

    Two names that differ only in case are one file on a disk like macOS's; busybox's sha256sum does
    not find a name with a backslash in a list.
    """
    for entry in manifest.entries:
        if "\\" in entry.path:
            raise RefusedError(
                f"The code did not arrive whole in {folder}: the name {entry.path!r} has a "
                "backslash, which the tools there may not understand.",
                "Rename it, or exclude it in .lumituiignore.",
            )
    seen: dict[str, str] = {}
    for entry in manifest.entries:
        other = seen.setdefault(entry.path.casefold(), entry.path)
        if other != entry.path:
            raise RefusedError(
                f"The code did not arrive whole in {folder}: {other!r} and {entry.path!r} differ "
                "only in case, and the disk there may not distinguish them.",
                "Rename one of them, or exclude it in .lumituiignore.",
            )
