"""Snapshots: a project's files on the site, sent once, checked by hash, never changed.

`<folder>/<id>/` is one state of the code, read-only, and `<folder>/<id>.sums` its checksums. What
arrives is put together in `<folder>/.incoming-...` and renamed when every byte is right, so nothing
half-made is ever used. A run gets its own copy: with hard links one run's writes would change
another's code.
"""

import hashlib
import re
import secrets
import stat
import tarfile
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lumitui.remote.errors import RefusedError
from lumitui.remote.manifest import Entry, Manifest, changed, differing
from lumitui.remote.quoting import quote
from lumitui.remote.transport import Result, Transport

_CHUNK = 1 << 18
_MOST_GONE = 1000  # removals named in the script; beyond that everything is sent anew
_SLOWEST = 100_000  # bytes a second a link must carry for the time given

_SHA = """\
sha() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum "$@"; else shasum -a 256 "$@"; fi
}
"""

# `stands FOLDER SUMS`: every file is there with its content, its execute bit, and none besides.
# The hashes take most of a request's time on the site (86 of 170 ms for 2,000 files and 24 MB), so
# two processes share a long list.
_STANDS = """\
verified() {
  if [ {files} -lt 500 ]; then sha -c "$1" >/dev/null 2>&1; return; fi
  sed -n '1,{half}p' "$1" | sha -c - >/dev/null 2>&1 & first=$!
  sed '1,{half}d' "$1" | sha -c - >/dev/null 2>&1 || { wait "$first"; return 1; }
  wait "$first"
}
count() { echo $(( $(find . "$@" | wc -l) )); }
links() { {links}; }
stands() { (
  cd "$1" 2>/dev/null && [ -f "$2" ] || exit 1
  hash=$(sha <"$2") && [ "${hash%% *}" = {list_hash} ] || exit 1
  [ {files} -eq 0 ] || verified "$2" || exit 1
  [ "$(count -type f)" -eq {files} ] && [ "$(count -type l)" -eq {link_count} ] || exit 1
  [ "$(count -type f -perm -100)" -eq {executables} ] && links
) }
"""

_CHECK = """\
umask 077
cd {folder} 2>/dev/null || { echo missing; exit 0; }
d=$(pwd); id={id}
if stands "$d/$id" "$d/$id.sums"; then echo stands; else echo missing; fi
"""

# mtime +0 is "older than a day": what a cut connection left behind long ago.
_MAKE = """\
umask 077
mkdir -p {folder} && cd {folder} || exit 73
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
  cp -a --reflink=auto "$base" "$w/code" 2>/dev/null ||
    { discard "$w/code"; cp -pPR "$base" "$w/code"; } || exit 74
  chmod -R u+w "$w/code" && cd "$w/code" || exit 74
{gone}
  cd "$d"
  find "$w/code" -depth -type d -exec rmdir {} + 2>/dev/null
fi
mkdir -p "$w/code" && ( cd "$w" && tar xzof - ) || exit 74
if ! stands "$d/$w/code" "$d/$w/sums"; then
  [ -z "$base" ] || { echo base-gone; exit 0; }
  echo 'what arrived is not what was sent' >&2; exit 74
fi
chmod -R a-w "$w/code" && chmod u+w "$w/code" && mv -f "$w/sums" "$id.sums" || exit 74
if mv -T "$w/code" "$id" 2>/dev/null || { [ ! -e "$id" ] && mv "$w/code" "$id"; }; then
  chmod u-w "$id"; echo made
elif stands "$d/$id" "$d/$id.sums"; then
  echo stands
else
  exit 74
fi
"""

_COPY = """\
(
{sha}umask 077
s={snapshot}; t={target}; w=$t.part-$$
[ -d "$t" ] && exit 0
trap 'rm -rf "$w"' EXIT
{ cp -PR --reflink=auto "$s" "$w" 2>/dev/null || { rm -rf "$w"; cp -PR "$s" "$w"; }; } &&
  chmod -R u+w "$w" && ( cd "$w" && { [ ! -s "$s.sums" ] || sha -c "$s.sums" >/dev/null; } ) &&
  mv "$w" "$t"
)"""

_PRUNE = """\
cd {folder} 2>/dev/null || exit 0
for s in *; do
  case $s in *[!0-9a-f]*) continue;; esac
  [ "${#s}" -eq 24 ] && [ -d "$s" ] || continue
  case {keep} in *" $s "*) continue;; esac
  files=$(( $(find "$s" -type f | wc -l) )); size=$(du -sk "$s") || exit 1
  w=.incoming-$s-pruned
  rm -rf "$w"; mv "$s" "$w" && chmod -R u+w "$w" && rm -rf "$w" "$s.sums" || exit 1
  echo "$s $files ${size%%[!0-9]*}"
done
"""


@dataclass(frozen=True)
class Synced:
    """A snapshot that stands on the site."""

    snapshot: str
    """Its path there."""
    id: str
    files_sent: int
    bytes_sent: int
    """Compressed bytes."""
    requests: int


@dataclass(frozen=True)
class Pruned:
    """What `prune` removed."""

    snapshots: tuple[str, ...]
    files: int
    bytes: int
    """Space freed, as `du` counts it."""


def sync(
    transport: Transport,
    folder: str,
    manifest: Manifest,
    where: Callable[[str], Path],
    known: Manifest | None = None,
) -> Synced:
    """Make `manifest` stand as a snapshot below `folder`, sending only what is missing.

    One request when it stands already or `known`, a snapshot sent before, still does and few
    files changed; else a second one sends everything.

    Args:
        transport: the site.
        folder: the folder of the project's snapshots there; made when it is missing.
        manifest: what is to stand there.
        where: the local file of a manifest's path (`manifest.source_of`).
        known: the last snapshot known to have stood there.

    Raises:
        InputError: a file changed since `manifest` was made.
        RefusedError: the site could not store it (disk full, quota, no permission).
        LinkError, LinkLost: as `Transport.run`. It may be repeated: nothing half-made is used.
    """
    sent_bytes = 0
    for requests, base in enumerate(_bases(manifest, known), 1):
        sent: Sequence[Entry] = ()
        packed = _Packed()
        if base is None:
            script = _fill(_SHA + _stands(manifest) + _CHECK, folder=quote(folder), id=manifest.id)
            result = transport.run(script, timeout=300.0)
        else:
            sent, gone = differing(manifest, base)
            script = _make_script(folder, manifest, base, gone)
            patience = 300.0 + sum(entry.size for entry in sent) / _SLOWEST
            result = transport.run(
                script, stdin=packed.stream(manifest, sent, where), timeout=patience
            )
            sent_bytes += packed.size
        word = _answer(result, folder)
        if word in ("stands", "made"):
            files = len(sent) if word == "made" else 0
            return Synced(f"{folder}/{manifest.id}", manifest.id, files, sent_bytes, requests)
    raise RefusedError(
        f"The snapshot {manifest.id} does not stay whole in {folder}.",
        "Something else changes files there; ask the site's support.",
    )


def _bases(manifest: Manifest, known: Manifest | None) -> list[Manifest | None]:
    """What each request builds on: None only looks, an empty manifest sends everything."""
    if known is not None and known.id != manifest.id:
        _, gone = differing(manifest, known)
        if len(gone) <= _MOST_GONE:
            return [known, Manifest(())]
    return [None, Manifest(())]


def _fill(template: str, **values: str | int) -> str:
    """Put `values` for `{name}`; other braces are the shell's."""
    return re.sub(
        r"\{(\w+)\}", lambda match: str(values.get(match[1], match[0])), template, flags=re.ASCII
    )


def _stands(manifest: Manifest) -> str:
    links = [entry for entry in manifest.entries if entry.target is not None]
    checks = [
        f'[ "$(readlink {quote("./" + entry.path)})" = {quote(entry.target or "")} ]'
        for entry in links
    ]
    return _fill(
        _STANDS,
        links=" &&\n  ".join(checks) or ":",
        list_hash=hashlib.sha256(manifest.checksum_text().encode()).hexdigest(),
        files=len(manifest.entries) - len(links),
        half=(len(manifest.entries) - len(links)) // 2,
        link_count=len(links),
        executables=sum(entry.executable for entry in manifest.entries),
    )


def _make_script(folder: str, manifest: Manifest, base: Manifest, gone: Sequence[str]) -> str:
    words = [quote("./" + path) for path in gone]
    removals = [f"  rm -f {' '.join(words[i : i + 100])}" for i in range(0, len(words), 100)]
    return (
        _SHA
        + _stands(manifest)
        + _fill(
            _MAKE,
            folder=quote(folder),
            id=manifest.id,
            base=base.id if base.entries else "''",
            random=secrets.token_hex(4),
            gone="\n".join(removals) or "  :",
        )
    )


def _answer(result: Result, folder: str) -> str:
    if result.code == 0:
        return result.text.strip()
    raise RefusedError(
        f"The site could not store the code in {folder}: {_reason(result)}.",
        "Check quota and permissions there; `lumitui prune` removes old snapshots.",
    )


def _reason(result: Result) -> str:
    """The line of standard error that says why; tar's own last one never does."""
    lines = result.err.decode("utf-8", "replace").strip().splitlines()
    telling = [line for line in lines if "xiting with failure" not in line]
    full = [line for line in telling if re.search("space|quota", line, re.IGNORECASE)]
    return (full or telling[-1:] or [f"exit status {result.code}"])[0].rstrip(".")


class _Packed:
    """A compressed archive made while it is sent, so that memory stays bounded."""

    def __init__(self) -> None:
        self.size = 0

    def stream(
        self, manifest: Manifest, sent: Sequence[Entry], where: Callable[[str], Path]
    ) -> Iterator[bytes]:
        """The checksum list and the entries as tar.gz; counts what it gave in `size`."""
        squeeze = zlib.compressobj(1, zlib.DEFLATED, 31)  # 31: with the header of gzip
        held = bytearray()
        for piece in _tar(manifest.checksum_text().encode(), sent, where):
            held += squeeze.compress(piece)
            if len(held) >= _CHUNK:
                self.size += len(held)
                yield bytes(held)
                held.clear()
        held += squeeze.flush()
        self.size += len(held)
        yield bytes(held)


def _tar(sums: bytes, sent: Sequence[Entry], where: Callable[[str], Path]) -> Iterator[bytes]:
    now = int(time.time())  # not the local time of change: sites purge scratch files by age
    yield from (_header("sums", len(sums), 0o600, now), sums, _padding(len(sums)))
    for entry in sent:
        name = f"code/{entry.path}"
        if entry.target is not None:
            yield _header(name, 0, 0o777, now, entry.target)
            continue
        yield _header(name, entry.size, 0o700 if entry.executable else 0o600, now)
        yield from _content(entry, where(entry.path))
        yield _padding(entry.size)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _header(name: str, size: int, mode: int, mtime: int, target: str | None = None) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, stat.S_IMODE(mode), mtime
    if target is not None:
        info.type, info.linkname = tarfile.SYMTYPE, target
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8")


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)


def _content(entry: Entry, source: Path) -> Iterator[bytes]:
    digest, left = hashlib.sha256(), entry.size
    try:
        with open(source, "rb") as file:
            while left and (piece := file.read(min(_CHUNK, left))):
                digest.update(piece)
                left -= len(piece)
                yield piece
            grown = file.read(1)
    except OSError as error:
        raise changed(entry.path) from error
    if left or grown or digest.hexdigest() != entry.sha256:
        raise changed(entry.path)


def copy_script(snapshot: str, target: str) -> str:
    """One shell command that gives a run its own writable, checked copy of `snapshot`.

    It fails with words on standard error, leaving nothing at `target`; when `target` is there it
    does nothing, so a request that holds it may be repeated.
    """
    return _fill(_COPY, sha=_SHA, snapshot=quote(snapshot), target=quote(target))


def prune_script(folder: str, keep: Collection[str]) -> str:
    """The script that removes all snapshots below `folder` but those whose ids are in `keep`."""
    return _fill(_PRUNE, folder=quote(folder), keep=quote(f" {' '.join(sorted(keep))} "))


def prune(transport: Transport, folder: str, keep: Collection[str]) -> Pruned:
    """Remove all snapshots below `folder` but those whose ids are in `keep`.

    Runs have their own copies, so this takes nothing from a live one.

    Raises:
        RefusedError: something could not be removed.
        LinkError, LinkLost: as `Transport.run`. It may be repeated.
    """
    result = transport.run(prune_script(folder, keep), timeout=600.0)
    if result.code:
        raise RefusedError(f"Old snapshots in {folder} could not be removed: {_reason(result)}.")
    rows = [line.split() for line in result.text.splitlines()]
    return Pruned(
        tuple(row[0] for row in rows),
        sum(int(row[1]) for row in rows),
        sum(int(row[2]) for row in rows) * 1024,
    )
