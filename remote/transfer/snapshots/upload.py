"""Snapshots: a project's files on the site, sent once, checked by hash, never changed.

`<folder>/<id>/` is one state of the code, read-only, and `<folder>/<id>.sums` its checksums. What
arrives is put together in `<folder>/.incoming-...` and renamed when every byte is right, so nothing
half-made is ever used. A run gets a copy of its own: with hard links one run's writes would change
another run's code.
"""

import hashlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lumitui.remote.site.errors import RefusedError
from lumitui.remote.site.shell_text import REFLINK, SHA, fill, quote
from lumitui.remote.source.manifest import Entry, Manifest, differing
from lumitui.remote.transfer.contents.content_queries import reason
from lumitui.remote.transfer.contents.tar import Packed, tar_stream
from lumitui.remote.transfer.snapshots.snapshot_store import VERIFIED
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Result, Transport

_MOST_GONE = 1000  # removed files that the script names; with more of them everything is sent
_SLOWEST = 100_000  # bytes per second; a slower link runs into the timeout

# `stands FOLDER SUMS`: every file is there with its content and execute bit, and nothing else is.
# `kinds` prints how many plain files, links, other things and executables there are, as in 7f1l2x.
_STANDS = """\
kinds() {
  find . -type f -perm -100 -exec printf 'x\\n%.0s' {} + -o -type f -exec printf 'f\\n%.0s' {} + \
    -o -type l -exec printf 'l\\n%.0s' {} + -o ! -type d -exec printf 'o\\n%.0s' {} + |
    sort | uniq -c | tr -d ' \\n\\t'
}
links() { {links}; }
stands() { (
  cd "$1" 2>/dev/null && [ -f "$2" ] || exit 1
  hash=$(sha <"$2") && [ "${hash%% *}" = {list_hash} ] || exit 1
  verified "$2" || exit 1
  [ "$(kinds)" = "{kinds}" ] && links
) }
"""

_CHECK = """\
umask 077
cd {folder} 2>/dev/null || { echo missing; exit 0; }
d=$(pwd); id={id}
if stands "$d/$id" "$d/$id.sums"; then echo stands; else echo missing; fi
"""

# mtime +0 is "older than a day": leftovers of connections that were cut long ago.
_MAKE = """\
umask 077
mkdir -p {folder} && cd {folder} || exit 73
chmod 700 . 2>/dev/null  # a default ACL above outweighs the umask
d=$(pwd); id={id}; base={base}; w=.incoming-$id-{random}
discard() { chmod -R u+w "$@" 2>/dev/null; rm -rf "$@"; }
if [ -e "$id" ]; then
  if stands "$d/$id" "$d/$id.sums"; then echo stands; exit 0; fi
  mv "$id" "$w-damaged" && discard "$w-damaged" || exit 73
fi
find . -maxdepth 1 -name '.incoming-*' -mtime +0 | while IFS= read -r old; do discard "$old"; done
trap 'cd "$d" && discard "$w"' EXIT
trap 'exit 74' HUP INT TERM PIPE
mkdir "$w" || exit 73
if [ -n "$base" ]; then
  [ -d "$base" ] || { echo base-gone; exit 0; }
  {reflink}
  cp -PR $reflink "$base" "$w/code" || { [ -d "$base" ] || { echo base-gone; exit 0; }; exit 74; }
  find "$w/code" -type d -exec chmod u+w {} + && cd "$w/code" || exit 74
{gone}
  cd "$d"
fi
mkdir -p "$w/code" && ( cd "$w" && tar xzomf - ) || exit 74
if ! stands "$d/$w/code" "$d/$w/sums"; then
  [ -z "$base" ] || { echo base-gone; exit 0; }
  echo 'what arrived is not what was sent' >&2; exit 74
fi
find "$w/code" ! -type l \\( -perm -200 -o -perm -020 -o -perm -002 \\) -exec chmod a-w {} + &&
  chmod u+w "$w/code" && mv -f "$w/sums" "$id.sums" || exit 74
if mv -T "$w/code" "$id" 2>/dev/null || { [ ! -e "$id" ] && mv "$w/code" "$id"; }; then
  chmod u-w "$id"; echo made
elif stands "$d/$id" "$d/$id.sums"; then
  echo stands
else
  exit 74
fi
"""


@dataclass(frozen=True)
class Synced:
    """A snapshot that is on the site, and what it took to get it there."""

    snapshot: str
    """Its path there."""
    id: str
    files_sent: int
    bytes_sent: int
    """Compressed bytes."""
    requests: int


@purpose("send code")
def sync(
    transport: Transport,
    folder: str,
    manifest: Manifest,
    where: Callable[[str], Path],
    known: Manifest | None = None,
) -> Synced:
    """Put `manifest` on the site as a snapshot below `folder`; send only what is missing.

    One request is enough when the snapshot is there already, or when `known`, one sent before, is
    there and few files changed. Otherwise a second request sends everything.

    Args:
        transport: the site.
        folder: the folder of the project's snapshots there; made when it is missing.
        manifest: the files of the snapshot.
        where: returns the local file of a path of the manifest (`scan.source_of`).
        known: the last snapshot that is known to have been there.

    Raises:
        InputError: a file changed since `manifest` was made.
        RefusedError: the site could not store it (disk full, quota, no permission).
        LinkError, LinkLost: as `Transport.run`. It may be repeated: nothing half-made is used.
    """
    sent_bytes, sums = 0, manifest.checksum_text().encode()
    stands = SHA + VERIFIED + _stands(manifest, sums)
    for requests, step in enumerate(_steps(manifest, known), 1):
        sent: Sequence[Entry] = ()
        packed = Packed()
        if step is None:
            check = fill(_CHECK, folder=quote(folder), id=manifest.id)
            result = transport.run(stands + check, timeout=300.0)
        else:
            base, sent, gone = step
            script = stands + _make_script(folder, manifest, base, gone)
            limit = 300.0 + sum(entry.size for entry in sent) / _SLOWEST
            # Now, not the local modification time: sites purge scratch files by age.
            now = int(time.time())
            pieces = tar_stream(sent, where, mtime=now, folder="code/", sums=sums)
            result = transport.run(script, stdin=packed.stream(pieces), timeout=limit)
            if result.code == 74 and b"not what was sent" in result.err:
                refuse_names(manifest, folder)
            sent_bytes += packed.size
        word = answer(result, folder)
        if word in ("stands", "made"):
            files = len(sent) if word == "made" else 0
            return Synced(f"{folder}/{manifest.id}", manifest.id, files, sent_bytes, requests)
    raise RefusedError(
        f"The snapshot {manifest.id} could not be completed in {folder}.",
        "Something else changes files there; ask the site's support.",
    )


_Step = tuple[str, Sequence[Entry], Sequence[str]]
"""The id of the snapshot to build on ("": none), what to send, and the paths to remove first."""


def _steps(manifest: Manifest, known: Manifest | None) -> list[_Step | None]:
    """Return what each request does: None only checks, the last one sends everything."""
    everything = ("", manifest.entries, ())
    if known is not None and known.id != manifest.id:
        sent, gone = differing(manifest, known)
        if len(gone) <= _MOST_GONE:
            return [(known.id if known.entries else "", sent, gone), everything]
    return [None, everything]


def _stands(manifest: Manifest, sums: bytes) -> str:
    links = [entry for entry in manifest.entries if entry.target is not None]
    checks = [
        f'[ "$(readlink {quote("./" + entry.path)})" = {quote(entry.target or "")} ]'
        for entry in links
    ]
    executables = sum(entry.executable for entry in manifest.entries)
    return fill(
        _STANDS,
        links=" &&\n  ".join(checks) or ":",
        list_hash=hashlib.sha256(sums).hexdigest(),
        kinds="".join(
            f"{count}{kind}"
            for kind, count in (
                ("f", len(manifest.entries) - len(links) - executables),
                ("l", len(links)),
                ("x", executables),
            )
            if count
        ),
    )


def _make_script(folder: str, manifest: Manifest, base: str, gone: Sequence[str]) -> str:
    words = [quote("./" + path) for path in gone]
    removals = [f"  rm -f {' '.join(words[i : i + 100])}" for i in range(0, len(words), 100)]
    if not set(gone) <= {entry.path for entry in manifest.entries}:
        removals.append("  find . -depth -type d -exec rmdir {} + 2>/dev/null")
    return fill(
        _MAKE,
        folder=quote(folder),
        id=manifest.id,
        base=quote(base),
        reflink=REFLINK,
        random=secrets.token_hex(4),
        gone="\n".join(removals) or "  :",
    )


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


def answer(result: Result, folder: str) -> str:
    """Return what a script that stores code in `folder` printed; RefusedError when it failed."""
    if result.code == 0:
        return result.text.strip()
    raise RefusedError(
        f"The site could not store the code in {folder}: {reason(result)}.",
        "Check quota and permissions there; `lumitui site prune` removes old snapshots.",
    )
