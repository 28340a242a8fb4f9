"""The snapshots on a site: sending, copying for runs, pruning.

A snapshot is one state of the code: `<id>/`, read-only, with checksums in `<id>.sums`, in a store
of `contents.content_store`. Snapshots share unchanged contents. Each run has a copy, verified by
the checksums: with hard links, one run's writes would change another's code. A wrong copy marks its
snapshot as suspect, and the next send repairs it.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from lumitui.remote.site.answer_fields import count, last_words, lines
from lumitui.remote.site.errors import AnswerUnusable, RefusedError
from lumitui.remote.site.run_folder import CODE
from lumitui.remote.site.shell_text import REFLINK, SHA, fill, quote
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.transfer.contents import content_store
from lumitui.remote.transfer.contents.content_store import Item, Store
from lumitui.remote.transfer.contents.content_upload import ContentUpload, Shipped, reason
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

VERIFIED = """\
right() {
  [ "$(printf '%s\\n' "$1" | sed -n 's/^[0-9a-f]\\{64\\}  \\.\\//.\\//p' | tr '\\n' '\\0' |
    xargs -0 openssl dgst -sha256 -r 2>/dev/null | sed 's/ \\*/  /')" = "$1" ] ||
    printf '%s\\n' "$1" | sha -c - >/dev/null 2>&1
}
verified() {
  n=$(( $(wc -l <"$1") ))
  [ "$n" -gt 0 ] || return 0
  if [ "$n" -lt 500 ]; then right "$(cat "$1")"; return; fi
  right "$(sed -n "1,$((n / 2))p" "$1")" & first=$!
  right "$(sed "1,$((n / 2))d" "$1")" || { wait "$first"; return 1; }
  wait "$first"
}
"""
"""Defines `verified LIST`: whether the files below the folder have the hashes of LIST. Needs `SHA`.

The hashes are most of a send's work on the site, so two processes share a long list. openssl uses
the processor's own instructions for them: 24 MB in 2,000 files cost it 60 ms of processor time, of
which 50 are reading, and sha256sum 110. Where openssl is missing or prints anything else than LIST,
sha256sum decides: a name with a backslash is written otherwise in LIST."""

# 4: the snapshot is missing (a prune may remove it at any time), 5: it is incomplete. The checksums
# are copied first, so that the copy is checked whatever happens to the original. Equal files of a
# snapshot are hard links, which busybox's cp preserves: a write would change both. Without the
# snapshot, the files of an earlier run's copy serve if each still has its hash. The list's name
# ends with its own hash, since a crash may leave it short or empty. sha256sum's lists have no
# links, so a copy with links keeps no list.
_COPY = """\
(
{sha}umask 077
s={snapshot}; t={target}; own={own}; w=$t.part-$$; kept=.{code}.sums
[ -d "$t" ] && exit 0
gone() { [ -d "$s" ] || { echo no-snapshot; exit 4; }; exit 1; }
damaged() { echo damaged-snapshot; exit 5; }
trap 'chmod -R u+w "$w" 2>/dev/null || :; rm -rf "$w" "$w.sums" "$w.own"' EXIT
set -- "$own/$kept".*; sum=$(sha "$1" 2>/dev/null) || :
if [ ! -d "$s" ] && [ "$1" = "$own/$kept.${sum%% *}" ] && cp "$1" "$w.sums" 2>/dev/null; then
  mkdir "$w" || exit 1
  sed 's/^[0-9a-f]*  //' "$w.sums" | tr '\\n' '\\0' | (cd "$own/{code}" && xargs -0 sh -c '
    to=$1; shift
    for f; do
      [ -d "$to/${f%/*}" ] || mkdir -p "$to/${f%/*}" && cp -P "$f" "$to/$f" || exit 1
    done' x "$w") 2>/dev/null && (cd "$w" && verified "$w.sums") || gone
else
  [ -d "$s" ] || gone
  [ -f "$s.sums" ] || damaged
  cp "$s.sums" "$w.sums" || gone
  {reflink}
  cp -PR $reflink "$s" "$w" || gone
fi
chmod -R u+w "$w" || exit 1
find "$w" -type f -links +1 -exec sh -c '
  own=$1; shift
  for f; do cp "$f" "$own" && mv -f "$own" "$f" || exit 1; done' x "$w.own" {} + || exit 1
( cd "$w" && verified "$w.sums" &&
  [ $(( $(find . -type f | wc -l) )) -eq $(( $(wc -l <"$w.sums") )) ]
) || { printf '%s\\n' "${s##*/}" 2>/dev/null >"${s%/*}/.suspect"; damaged; }
[ -n "$(find "$w" -type l)" ] || {
  sum=$(sha <"$w.sums") && mv "$w.sums" "${t%/*}/$kept.${sum%% *}" || exit 1
}
mv "$w" "$t"
)"""


def copy_script(snapshot: str, target: str, own: str = "") -> str:
    """Return a shell command that creates a run's writable, verified copy of `snapshot`.

    If the snapshot is missing, the copy in `own`, the folder of an earlier run, takes its place.
    On failure, it leaves nothing at `target`; with status 4 it prints `no-snapshot`, with 5
    `damaged-snapshot`. If `target` exists, it does nothing, so it can be repeated.
    """
    return fill(
        _COPY,
        sha=SHA + VERIFIED,
        reflink=REFLINK,
        snapshot=quote(snapshot),
        target=quote(target),
        own=quote(own),
        code=CODE,
    )


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
    """Store `manifest` on the site as a snapshot below `folder`, sending only missing parts.

    One request suffices if the snapshot, or the earlier one `base`, exists. Otherwise, a second
    request sends the missing parts. `where` returns the local file for a path (`scan.source_of`).

    Raises:
        InputError: a file changed since `manifest` was created.
        RefusedError: the site could not store the snapshot (disk full, quota, no permission).
        LinkError, LinkLost: see `Transport.run`. Safe to repeat: partial data is never used.
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
    """Raise RefusedError if the site may not be able to store or verify a name.

    Names that differ only in case are one file on a disk like macOS's; busybox's sha256sum does not
    support a backslash in a list.
    """
    for entry in manifest.entries:
        if "\\" in entry.path:
            raise RefusedError(
                f"The code in {folder} is incomplete: the name {entry.path!r} has a backslash, "
                "which the site's tools may not support.",
                "Rename it, or exclude it in .lumituiignore.",
            )
    seen: dict[str, str] = {}
    for entry in manifest.entries:
        other = seen.setdefault(entry.path.casefold(), entry.path)
        if other != entry.path:
            raise RefusedError(
                f"The code in {folder} is incomplete: {other!r} and {entry.path!r} differ only "
                "in case, which the site's disk may not distinguish.",
                "Rename one of them, or exclude it in .lumituiignore.",
            )


MOST_BYTES = 16 << 20
"""Maximum bytes of one snapshot's checksums: about 100,000 files."""
_LINE = re.compile(r"\\?([0-9a-f]{64})  \./(.+)")
_ONE = """\
echo "= {id}"; [ -f {sums} ] && head -c {most} {sums}; echo
"""


def read_sums(
    transport: Transport, folder: str, snapshots: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Return the hash of each file of `snapshots` in `folder`, by snapshot id and path.

    Omits missing snapshots and those with unreadable checksums.
    """
    script = "".join(
        _ONE.format(id=one, sums=quote(f"{folder}/{one}.sums"), most=MOST_BYTES)
        for one in snapshots
        if re.fullmatch("[0-9a-f]+", one)
    )
    if not script:
        return {}
    sums: dict[str, dict[str, str]] = {}
    files: dict[str, str] = {}
    broken: set[str] = set()
    current = ""
    for line in transport.run(script).out.decode("utf-8", "replace").splitlines():
        if line.startswith("= "):
            current = line[2:]
            files = sums.setdefault(current, {})
        elif match := _LINE.fullmatch(line):
            files[match[2]] = match[1]
        elif line:
            broken.add(current)
    return {one: files for one, files in sums.items() if files and one not in broken}


# A snapshot is renamed before it is removed, so that nobody uses a part of it. A content is removed
# with the last snapshot that has it. mtime +0 is "older than a day": remains of cut connections. du
# counts a shared file only once, so what stays comes first.
_PRUNE = """\
dry={dry}
stay= gone= beside=
for s in *; do
  case $s in *[!0-9a-f]*) continue;; esac
  [ "${#s}" -eq 24 ] && [ -e "$s" ] || continue
  case {keep} in *" $s "*) stay="$stay $s"; continue;; esac
  gone="$gone $s"
  for f in "$s.sums" "$s.facts" "$s.sealed"; do
    [ ! -e "$f" ] || beside="$beside $f"
  done
done
for old in $(
  find . -maxdepth 1 -mtime +0 \\( -name '.in*' -o -name '.left-*' -o -name '.gone-*' \
    -o -name '*.sums' -o -name '*.facts' -o -name '*.sealed' \\)
  find ./parts -type f -mtime +0 2>/dev/null
); do
  s=${old%.*}
  case $old in ./.*|./parts/*) ;; *)
    case $s in ./*[!0-9a-f]*) continue ;; ./*) [ ! -e "$s" ] || continue ;; esac
  esac
  case $old in ./*) [ ! -e "$old" ] || beside="$beside $old" ;; esac
done
set -- $gone $beside
blobs=$({
  [ -z "$gone" ] || find $gone -type f -exec ls -lnid {} + | sed 's/^ */t /'
  ls -lni blobs 2>/dev/null | sed 's/^ */b /'
} | awk '$1 == "t" {of[$2]++} $1 == "b" && $3 ~ /^-/ && $4 == of[$2] + 1 {n++} END {print n + 0}')
[ $(($# + blobs)) -gt 0 ] || exit 0
files=$blobs
[ $# -eq 0 ] || files=$((blobs + $(find "$@" | wc -l)))
kib=$({
  [ $# -eq 0 ] || du -sk $stay "$@" | awk -v stay="$(set -- $stay; echo $#)" 'NR > stay'
  [ ! -d blobs ] || find blobs -type f -links 1 -exec du -k {} +
} 2>/dev/null | awk '{n += $1} END {printf "%.0f", n}')
if [ "$dry" -eq 0 ]; then
  for s in $gone; do
    w=.gone-$s-$$
    mv "$s" "$w" || { [ ! -e "$s" ] && continue; exit 1; }
    discard "$w" || exit 1
  done
  for f in $beside; do discard "$f" || exit 1; done
  [ ! -d blobs ] || find blobs -type f -links 1 -exec rm -f {} + || exit 1
fi
for s in $gone; do echo "$s 0 0"; done
echo "- $files $kib"
"""

_REMOVED = re.compile(r"(-|[0-9a-f]{24}) ([0-9]{1,15}) ([0-9]{1,15})")


@dataclass(frozen=True)
class Pruned:
    """The result of `prune`, or of a dry run."""

    snapshots: tuple[str, ...]
    files: int
    """Number of files, links and folders, as counted by quotas, including leftovers of broken
    connections."""
    bytes: int
    """Freed space, as counted by `du`."""


def prune_script(folder: str, keep: Collection[str], *, dry: bool = False) -> str:
    """Return sh that removes all snapshots below `folder` except those with ids in `keep`."""
    names = quote(f" {' '.join(sorted(keep))} ")
    there = f"[ -d {quote(folder)} ] || exit 0\n"
    return there + content_store.script(folder, _PRUNE, keep=names, dry=int(dry))


@purpose("prune")
def prune(transport: Transport, folder: str, keep: Collection[str], *, dry: bool = False) -> Pruned:
    """Remove all snapshots below `folder` except ids in `keep`; `dry` only counts.

    Runs have their own copies, so pruning does not affect them, nor a resubmission of their code.

    Raises:
        RefusedError: something could not be removed.
        AnswerUnusable: the site's answer is unusable.
        LinkError, LinkLost: see `Transport.run`. Safe to repeat.
    """
    result = transport.run(prune_script(folder, keep, dry=dry), timeout=600.0)
    if result.code:
        raise RefusedError(
            f"lumitui could not remove old snapshots in {folder}: {reason(result)}.",
            "Check its permissions, then prune again: already removed items stay removed.",
        )
    names, files, kib = list[str](), 0, 0
    for line in lines(result.out):
        match = _REMOVED.fullmatch(line)
        more, size = (count(match[2]), count(match[3])) if match else (None, None)
        if match is None or more is None or size is None:
            raise AnswerUnusable(
                f"The site answered with {last_words(line)} instead of a list of the items that "
                f"it removed in {folder}.",
                "`lumitui site prune SITE --dry-run` lists the remaining items. Check the "
                "output of your shell startup files.",
            )
        if match[1] != "-":
            names.append(match[1])
        files, kib = files + more, kib + size
    return Pruned(tuple(names), files, kib * 1024)
