"""The snapshots on a site: how a run copies one, and how those that nobody uses are removed.

A snapshot is `<id>/` with its checksums in `<id>.sums`, or one archive `<id>.tar.gz` with its hash
in `<id>.tar.gz.sha256`. Runs have copies: with hard links one run's writes would change another's.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from lumitui.remote.errors import RefusedError
from lumitui.remote.run_folder import CODE_ARCHIVE
from lumitui.remote.transport.protocol import Result, Transport
from lumitui.remote.transport.shell import REFLINK, SHA, fill, quote

# 4: the snapshot is not there (a prune may take it at any moment), 5: it is not whole. The
# checksums are copied first, so that the copy is checked whatever happens to the original.
_COPY = """\
(
{sha}umask 077
s={snapshot}; t={target}; w=$t.part-$$
[ -d "$t" ] && exit 0
gone() { [ -d "$s" ] || { echo no-snapshot; exit 4; }; exit 1; }
trap 'rm -rf "$w" "$w.sums"' EXIT
[ -d "$s" ] || gone
[ -f "$s.sums" ] || { echo damaged-snapshot; exit 5; }
cp "$s.sums" "$w.sums" || gone
{reflink}
cp -PR $reflink "$s" "$w" || gone
chmod -R u+w "$w" || exit 1
( cd "$w" && { [ ! -s "$w.sums" ] || sha -c "$w.sums" >/dev/null 2>&1; } &&
  [ $(( $(find . -type f | wc -l) )) -eq $(( $(wc -l <"$w.sums") )) ]
) || { echo damaged-snapshot; exit 5; }
mv "$w" "$t"
)"""

_COPY_ARCHIVE = """\
(
{sha}umask 077
s={snapshot}; t={target}; w=$t.part-$$
[ -f "$t" ] && exit 0
gone() { [ -f "$s" ] || { echo no-snapshot; exit 4; }; exit 1; }
trap 'rm -f "$w" "$w.sha256"' EXIT
[ -f "$s" ] || gone
[ -f "$s.sha256" ] || { echo damaged-snapshot; exit 5; }
cp "$s.sha256" "$w.sha256" || gone
{reflink}
cp $reflink "$s" "$w" || gone
h=$(sha <"$w") && [ "${h%% *}" = "$(cat "$w.sha256")" ] || { echo damaged-snapshot; exit 5; }
chmod u+w "$w" "$w.sha256" && mv "$w.sha256" "$t.sha256" && mv "$w" "$t"
)"""

# A snapshot is renamed before it is removed, so that nobody finds half of it. mtime +0 is "older
# than a day": leftovers of cut connections.
_PRUNE = """\
umask 077
cd {folder} 2>/dev/null || exit 0
dry={dry}
weigh() {
  files=0; kib=0
  for part in "$@"; do
    [ -e "$part" ] || [ -L "$part" ] || continue
    size=$(du -sk "$part") || exit 1
    files=$(( files + $(find "$part" | wc -l) )); kib=$(( kib + ${size%%[!0-9]*} ))
  done
}
discard() { chmod -R u+w "$@" 2>/dev/null; rm -rf "$@"; }
for s in *; do
  id=${s%.tar.gz}
  case $id in *[!0-9a-f]*) continue;; esac
  [ "${#id}" -eq 24 ] && [ -e "$s" ] || continue
  case {keep} in *" $id "*) continue;; esac
  w=$s; sums=$s.sums; [ "$s" = "$id" ] || sums=$s.sha256
  if [ "$dry" -eq 0 ]; then
    w=.incoming-$s-pruned-$$
    mv "$sums" "$w.sums" 2>/dev/null
    mv "$s" "$w" || { [ -e "$s" ] && exit 1; rm -f "$w.sums"; continue; }
    sums=$w.sums
  fi
  weigh "$w" "$sums"
  if [ "$dry" -eq 0 ]; then discard "$w" "$sums" || exit 1; fi
  echo "$s $files $kib"
done
find . -maxdepth 1 \\( -name '.incoming-*' -o -name '*.sums' -o -name '*.sha256' \\) -mtime +0 |
while IFS= read -r old; do
  case $old in
    ./.incoming-*) ;;
    *) s=${old%.*}; [ -e "$s" ] && continue; case ${s%.tar.gz} in ./*[!0-9a-f]*) continue;; esac;;
  esac
  weigh "$old"
  if [ "$dry" -eq 0 ]; then discard "$old" || exit 1; fi
  echo "- $files $kib"
done
"""


@dataclass(frozen=True)
class Pruned:
    """What `prune` removed, or would remove."""

    snapshots: tuple[str, ...]
    files: int
    """Files, links and folders, as a quota counts them; with leftovers of cut connections."""
    bytes: int
    """Space that was freed, as `du` counts it."""


def reason(result: Result) -> str:
    """Return the line of standard error that says why; tar's own last line never does."""
    lines = result.err.decode("utf-8", "replace").strip().splitlines()
    reasons = [line for line in lines if "xiting with failure" not in line]
    full = [line for line in reasons if re.search("space|quota", line, re.IGNORECASE)]
    if not full and any("Wrote only" in line for line in reasons):
        full = ["no space left, or the quota is used up: tar wrote only a part of a file"]
    return (full or reasons[-1:] or [f"exit status {result.code}"])[0].rstrip(".")


def copy_script(snapshot: str, target: str) -> str:
    """Return one shell command that gives a run its own writable, checked copy of `snapshot`.

    When it fails it leaves nothing at `target`: with status 4 it prints `no-snapshot`, with 5
    `damaged-snapshot`. When `target` is there it does nothing, so that it may be repeated.
    """
    return fill(_COPY, sha=SHA, reflink=REFLINK, snapshot=quote(snapshot), target=quote(target))


def archive_copy_script(snapshot: str, folder: str) -> str:
    """Return the same for an archive, which becomes `CODE_ARCHIVE` in the run's `folder`."""
    return fill(
        _COPY_ARCHIVE,
        sha=SHA,
        reflink=REFLINK,
        snapshot=quote(f"{snapshot}.tar.gz"),
        target=quote(f"{folder}/{CODE_ARCHIVE}"),
    )


def prune_script(folder: str, keep: Collection[str], *, dry: bool = False) -> str:
    """Return sh that removes all snapshots below `folder` but those whose ids are in `keep`."""
    names = quote(f" {' '.join(sorted(keep))} ")
    return fill(_PRUNE, folder=quote(folder), keep=names, dry=int(dry))


def prune(transport: Transport, folder: str, keep: Collection[str], *, dry: bool = False) -> Pruned:
    """Remove all snapshots below `folder` but those whose ids are in `keep`; `dry` only counts.

    Runs have their own copies, so a prune takes nothing from a run.

    Raises:
        RefusedError: something could not be removed.
        LinkError, LinkLost: as `Transport.run`. It may be repeated.
    """
    result = transport.run(prune_script(folder, keep, dry=dry), timeout=600.0)
    if result.code:
        raise RefusedError(
            f"Old snapshots in {folder} could not be removed: {reason(result)}.",
            "Check the permissions there, and prune again: what was removed stays removed.",
        )
    rows = [line.split() for line in result.text.splitlines()]
    return Pruned(
        tuple(row[0].removesuffix(".tar.gz") for row in rows if row[0] != "-"),
        sum(int(row[1]) for row in rows),
        sum(int(row[2]) for row in rows) * 1024,
    )
