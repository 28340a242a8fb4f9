"""Removing the snapshots on a site that nobody uses; runs have their own copies."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from lumitui.remote.site.answer_fields import count, last_words, lines
from lumitui.remote.site.errors import AnswerUnusable, RefusedError
from lumitui.remote.site.shell_text import quote
from lumitui.remote.transfer.contents import content_store
from lumitui.remote.transfer.contents.content_queries import reason
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

# A snapshot is renamed before it is removed, so that nobody finds half of it. A content goes with
# the last snapshot that has it. mtime +0 is "older than a day": leftovers of cut connections. du
# counts a file where it first meets it, so what stays comes first.
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
    """What `prune` removed, or would remove."""

    snapshots: tuple[str, ...]
    files: int
    """Files, links and folders, as a quota counts them; with leftovers of cut connections."""
    bytes: int
    """Space that was freed, as `du` counts it."""


def prune_script(folder: str, keep: Collection[str], *, dry: bool = False) -> str:
    """Return sh that removes all snapshots below `folder` but those whose ids are in `keep`."""
    names = quote(f" {' '.join(sorted(keep))} ")
    there = f"[ -d {quote(folder)} ] || exit 0\n"
    return there + content_store.script(folder, _PRUNE, keep=names, dry=int(dry))


@purpose("prune")
def prune(transport: Transport, folder: str, keep: Collection[str], *, dry: bool = False) -> Pruned:
    """Remove all snapshots below `folder` but those whose ids are in `keep`; `dry` only counts.

    Runs have their own copies, so a prune takes nothing from a run.

    Raises:
        RefusedError: something could not be removed.
        AnswerUnusable: the site does not say what was removed.
        LinkError, LinkLost: as `Transport.run`. It may be repeated.
    """
    result = transport.run(prune_script(folder, keep, dry=dry), timeout=600.0)
    if result.code:
        raise RefusedError(
            f"Old snapshots in {folder} could not be removed: {reason(result)}.",
            "Check the permissions there, and prune again: what was removed stays removed.",
        )
    names, files, kib = list[str](), 0, 0
    for line in lines(result.out):
        match = _REMOVED.fullmatch(line)
        more, size = (count(match[2]), count(match[3])) if match else (None, None)
        if match is None or more is None or size is None:
            raise AnswerUnusable(
                f"The site does not say what was removed in {folder}; it says: {last_words(line)}.",
                "`lumitui site prune SITE --dry-run` shows what is left. Check what your login "
                "files print.",
            )
        if match[1] != "-":
            names.append(match[1])
        files, kib = files + more, kib + size
    return Pruned(tuple(names), files, kib * 1024)
