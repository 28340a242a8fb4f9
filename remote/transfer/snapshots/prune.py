"""Removing the snapshots on a site that nobody uses; runs have their own copies."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from lumitui.remote.site.answer_fields import count, last_words, lines
from lumitui.remote.site.errors import AnswerUnusable, RefusedError
from lumitui.remote.site.shell_text import fill, quote
from lumitui.remote.transfer.contents.content_queries import reason
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

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

_REMOVED = re.compile(r"(-|[0-9a-f]{24}(?:\.tar\.gz)?) ([0-9]{1,15}) ([0-9]{1,15})")


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
    return fill(_PRUNE, folder=quote(folder), keep=names, dry=int(dry))


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
                "`lumitui site prune SITE --dry-run` shows what is left. Look at what your login "
                "files print.",
            )
        if match[1] != "-":
            names.append(match[1].removesuffix(".tar.gz"))
        files, kib = files + more, kib + size
    return Pruned(tuple(names), files, kib * 1024)
