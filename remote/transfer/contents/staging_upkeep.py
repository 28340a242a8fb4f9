"""Staged data on a site: listing, and removing unused items."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from lumitui.remote.site.answer_fields import last_words, lines, moment
from lumitui.remote.site.errors import AnswerUnusable, RefusedError
from lumitui.remote.site.run_folder import STAGE
from lumitui.remote.site.shell_text import fill, quote
from lumitui.remote.transfer.contents import content_store
from lumitui.remote.transfer.contents.content_upload import reason
from lumitui.remote.transfer.run_users import USERS, RunUser, user_in
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

_LIST = (
    USERS
    + """\
cd {folder} 2>/dev/null || exit 0
for f in *.facts; do
  id=${f%.facts}; [ -d "$id" ] || continue
  echo "i $id $(date -r "$f" +%s) $(head -n 1 "$f")"
done
here=$(pwd)
for r in ../*/runs/*/; do
  ids=
  for l in "${r}{stage}"/*; do
    [ -L "$l" ] || continue
    to=$(readlink "$l"); to=${to#"$here"/}; to=${to#{plain}/}; ids="$ids ${to%%/*}"
  done
  [ -z "$ids" ] || users "$r" $ids
done
find blobs parts .in-* .left-* .gone-* ! -type d -links 1 -exec ls -lnd {} + 2>/dev/null |
  awk '{n++; s+=$5} END {printf "l %d %.0f\\n", n, s}'
"""
)

# The contents of a removed item are removed too, unless another item has them.
_REMOVE = """\
for id in {ids}; do
  [ -d "$id" ] || { rm -f "$id.facts" "$id.sealed"; continue; }
  w=.gone-$id-$$
  chmod u+w "$id" && rm -f "$id.facts" "$id.sealed" && mv "$id" "$w" || exit 74
  { find "$w" -type f -exec ls -lnid {} + | sed 's/^ */t /'; ls -lni blobs | sed 's/^ */b /'; } |
    awk '$1 == "t" {has[$2] = 1} $1 == "b" && ($2 in has) {print $NF}' >"$w.blobs"
  discard "$w" || exit 74
  ( cd blobs && xargs sh -c 'for f; do find "./$f" -links 1; done' x | xargs rm -f ) <"$w.blobs"
  rm -f "$w.blobs"; echo "$id"
done
"""
# `.left-` and `.gone-` are unused, as is `.in-` without a new file for ten minutes. Creates
# nothing, because the disk may lack inodes. Folders are removed first, because they may link to
# blobs.
_SWEEP = """\
set --
for old in .left-* .gone-* .in-*; do
  [ -e "$old" ] || continue
  case $old in .in-*)
    [ -n "$(find "$old/new" -maxdepth 0 -mmin +10 2>/dev/null)$(
      find "$old" -maxdepth 0 -mtime +0)" ] || continue;;
  esac
  set -- "$@" "$old"
done
{ [ $# -eq 0 ] || find "$@" ! -type d -links 1 -exec ls -lnd {} +
  find blobs -type f -links 1 -mtime +0 -exec ls -lnd {} +
  find parts -type f -mtime +0 -exec ls -lnd {} +
} 2>/dev/null | awk '{n++; s+=$5} END {printf "l %d %.0f\\n", n, s}'
[ {dry} -eq 0 ] || exit 0
[ $# -eq 0 ] || discard "$@" || exit 74
find blobs -type f -links 1 -mtime +0 -exec rm -f {} + &&
find parts -type f -mtime +0 -exec rm -f {} +
"""
_ITEM = re.compile(r"i ([0-9a-f]{24}) ([0-9]{1,15}) ([0-9]{1,15}) ([0-9]{1,15}) ([A-Za-z0-9._-]*)")
_LOOSE = re.compile(r"l ([0-9]{1,15}) ([0-9]{1,18})")


@dataclass(frozen=True)
class StagedItem:
    """One item in a store."""

    id: str
    name: str
    """Its name in the job file."""
    files: int
    bytes: int
    last_used: float
    """Time of the last send that needed it, in epoch seconds."""
    in_use: bool
    """Whether an unfinished run needs it."""
    used_by: tuple[str, ...] = ()
    """The ids of the runs that need it, from any computer."""


@dataclass(frozen=True)
class Loose:
    """Data of unfinished sends, from which the next send of the same item resumes."""

    files: int = 0
    bytes: int = 0


NOTHING_LOOSE = Loose()


@dataclass(frozen=True)
class Stock:
    """The contents of a store."""

    folder: str
    items: tuple[StagedItem, ...]
    loose: Loose = NOTHING_LOOSE


FindUnfinished = Callable[[Sequence[RunUser]], Collection[str]]
"""Returns which of some run ids may be unfinished."""


@purpose("stage")
def stock(transport: Transport, folder: str, find_unfinished: FindUnfinished) -> Stock:
    """Return the contents of the store at `folder`, and which items unfinished runs need.

    Raises:
        AnswerUnusable: the site's answer is unusable.
    """
    at, work = quote(folder), folder.rpartition("/")[0]
    script = fill(_LIST, folder=at, plain=at, stage=STAGE)
    rows: list[re.Match[str]] = []
    users: dict[str, list[RunUser]] = {}
    loose = NOTHING_LOOSE
    for line in lines(transport.run(script, timeout=300.0).out):
        if match := _ITEM.fullmatch(line):
            rows.append(match)
        elif user := user_in(line, work):
            users.setdefault(user[0], []).append(user[1])
        elif match := _LOOSE.fullmatch(line):
            loose = Loose(int(match[1]), int(match[2]))
        elif not line.startswith("u "):
            raise AnswerUnusable(
                f"The site answered with {last_words(line)} instead of a list of the staged data "
                f"in {folder}.",
                "Check the output of your shell startup files on the site, and query again.",
            )
    runs = sorted({user for each in users.values() for user in each}, key=lambda one: one.folder)
    unfinished = set(find_unfinished(runs))
    items = []
    for row in rows:
        by = tuple(sorted({user.run for user in users.get(row[1], ())} & unfinished))
        last = moment(row[2]) or 0.0
        items.append(StagedItem(row[1], row[5], int(row[3]), int(row[4]), last, bool(by), by))
    return Stock(folder, tuple(sorted(items, key=lambda item: -item.last_used)), loose)


@purpose("stage")
def remove(
    transport: Transport, folder: str, ids: Collection[str], *, sweep: bool, dry: bool = False
) -> tuple[tuple[str, ...], Loose]:
    """Remove items from the store at `folder`; with `sweep`, also data of unfinished sends.

    Returns the removed ids, and the removed data of unfinished sends. `dry` only counts.

    Raises:
        RefusedError: something could not be removed.
        LinkError, LinkLost: see `Transport.run`. Safe to repeat.
    """
    words = " ".join(sorted(one for one in ids if re.fullmatch("[0-9a-f]{24}", one)))
    text = (_REMOVE if words and not dry else "") + (_SWEEP if sweep else "")
    if not text:
        return tuple(words.split()), NOTHING_LOOSE
    script = content_store.script(folder, text, ids=words, dry=int(dry))
    there = f"[ -d {quote(folder)} ] || exit 0\n"
    result = transport.run(there + script, timeout=1800.0)
    if result.code:
        raise RefusedError(
            f"lumitui could not remove everything in {folder}: {reason(result)}.",
            "Check the folder's permissions, then try again. Items already removed stay removed.",
        )
    rows = list(lines(result.out))
    swept = next((match for row in rows if (match := _LOOSE.fullmatch(row))), None)
    gone = words.split() if dry else [row for row in rows if re.fullmatch("[0-9a-f]{24}", row)]
    return tuple(gone), Loose(int(swept[1]), int(swept[2])) if swept else NOTHING_LOOSE
