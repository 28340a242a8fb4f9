"""The store of staged files on a site: its layout, and the sh that works in it.

    <folder>/<id>/              one item, read-only: a tree of hard links, visible when it is whole
    <folder>/<id>.facts         how many files and bytes it has, and what it is called
    <folder>/<id>.sealed        as old as the item: a file that is younger, or writable, was changed
    <folder>/blobs/<sha256>     each content once (with an `x` at the end: executable)
    <folder>/parts/<blob>-<offset>-<random>   a piece of a large blob, from that offset on
    <folder>/.in-<random>/      what arrives now; `.left-...`: what a cut link left

A blob gets its name after its hash was checked on the site, so nothing half-sent is ever used. Two
sends at once write different files, and each may join what another one has sent of a large file.
When that is gone, the content is there, or the file is sent anew.
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lumitui.remote.site.errors import InputError
from lumitui.remote.site.shell_text import SHA, fill, quote
from lumitui.remote.source.manifest import Entry, Manifest

LARGE = 8 << 20
"""Bytes from which a file is sent by itself, and continued where a cut link left it."""
BATCH = 256 << 20
"""Bytes of small files in one request: what has arrived whole before a cut is kept anyway."""

# `sums [FILE...]`: hash and name, from openssl where it is there: it uses the processor's own
# instructions. `weigh FOLDER`: how many files and links, and their bytes; only stat is asked.
# `broken ID`: the files of an item that somebody changed. `discard` changes no mode of a file, as
# other items have the same file.
_BASE = """\
umask 077
sums() {
  if openssl dgst -sha256 -r /dev/null >/dev/null 2>&1; then
    openssl dgst -sha256 -r "$@" | sed 's/ \\*/  /'
  else sha "$@"; fi
}
q=q; ls -q / >/dev/null 2>&1 || q=  # a line end in a name as ?; busybox does so without
weigh() {
  find "$1" ! -type d -exec ls "-lnd$q" {} + |
    awk '{n++; s+=$5} END {printf "%d %.0f", n, s}'
}
broken() {
  [ ! -f "$1.sealed" ] ||
    find "$1" -type f \\( -perm -200 -o -newer "$1.sealed" \\) -exec ls "-lnid$q" {} +
}
discard() { find "$@" -type d -exec chmod u+w {} + 2>/dev/null; rm -rf "$@"; }
cd {folder} || exit 73
"""

_OPEN = """\
umask 077
mkdir -p {folder} && cd {folder} || exit 73
chmod 700 . 2>/dev/null  # a default ACL above outweighs the umask
if [ -n {group} ]; then chgrp {group} . && chmod g+s . || exit 73; fi
mkdir -p blobs parts || exit 73
"""

# What a cut link left whole becomes blobs. `.in-` of ten minutes ago without a new file is of a
# process that nobody feeds any more. This comes before anything is created: a disk that such a
# send filled has room again only afterwards. The links need room: all but the contents goes first.
ASK = """\
if [ -f {id}.facts ] && [ -d {id} ] && [ "$(weigh {id})" = '{weight}' ] &&
  [ -z "$(broken {id})" ]; then
  touch {id}.facts; echo stands; exit 0
fi
# A content that was changed gets sent again. Without a seal modes say nothing on this file system.
if ls ./*.sealed >/dev/null 2>&1; then
  { broken {id} | sed 's/^ */t /'; ls -lni blobs | sed 's/^ */b /'; } |
    awk '$1 == "t" {bad[$2] = 1} $1 == "b" && (($2 in bad) || $3 ~ /^-.w/) {print "blobs/" $NF}' |
    xargs rm -f
fi
find . -maxdepth 2 -path './.in-*/new' -mmin +10 | while IFS= read -r old; do
  d=${old%/new}; mv "$d" ".left-${d#./.in-}"
done
for d in .left-*; do
  [ -d "$d/new" ] || continue
  for o in "$d"/*; do [ "$o" = "$d/new" ] || discard "$o"; done
  ( cd "$d/new" && find . -type f -exec sh -c 'sums() { {sums}; }; sums "$@"' x {} + |
    awk '{n=substr($2, 3); h=n; sub(/x$/, "", h); if (h == $1) print n}' |
    xargs sh -c '[ $# -eq 0 ] || ln "$@" ../../blobs/ 2>/dev/null' x )
  discard "$d"
done
: >.try-$$ || exit 74
e=$(ln .try-$$ .try-$$-2 2>&1) || {
  rm -f .try-$$
  case $e in *space*|*uota*) printf '%s\\n' "$e" >&2; exit 74;; esac
  echo no-links; exit 0
}
rm -f .try-$$ .try-$$-2
{ ls -ln blobs | sed 's/^/b /'; ls -ln parts | sed 's/^/p /'; echo asked; gzip -dc; } | awk '
  asked {
    n++; want = !($1 in blob) || blob[$1] != $2
    if (want && $1 in blob) system("rm -f blobs/" $1)  # damaged: its size is another one
    if (want) { wanted[$1] = 1; if (!from) from = n }
    else if (from) { print "m", from, n - 1; from = 0 }
    next
  }
  $1 == "asked" { asked = 1; next }
  $1 == "b" { blob[$10] = $6 }
  $1 == "p" && $6 > 0 { split($10, at, "-"); part[$10] = $6; of[$10] = at[1] }
  END {
    if (from) print "m", from, n
    for (p in part) if (of[p] in wanted) print "p", p, part[p]
    print "asked"
  }'
"""

# Other sends may join, finish or remove the same parts at any time. `stored`: the content is there,
# from any send. `again`: a part has gone; without the content the file is sent anew.
PARTS = """\
cd parts || exit 73
own={own}
stored() {
  [ -f ../blobs/{blob} ] && has=$(wc -c <../blobs/{blob}) && [ "$((has + 0))" -eq {size} ]
} 2>/dev/null
again() {
  rm -f "$own" ".$own"
  if stored; then rm -f {chain}; echo made; exit 0; fi
  echo 'another send took a part' >&2; exit 75
}
"""

PART = """\
trap 'exit 74' HUP INT TERM PIPE
{unpack} | cat >"$own" || { rm -f "$own"; exit 74; }  # full: what was there before stays
n=$( { wc -c <"$own"; } 2>/dev/null) || again
[ "$((n))" -ge {length} ] || { echo 'the link ended too early' >&2; exit 74; }
[ "$((n))" -eq {length} ] || again
"""

# The others are put behind the first part. One that is longer than it was when the site was asked
# has a sender still: that one is copied.
JOIN = """\
stored && again
set -- {counted}
f=$1
n=$( { wc -c <"$f"; } 2>/dev/null) || again
if [ "$((n))" -ne "$2" ]; then
  f=.$own; head -c "$2" "$1" >"$f" || { [ -f "$1" ] || again; rm -f "$f"; exit 74; }
fi
shift 2
while [ $# -gt 0 ]; do
  head -c "$2" "$1" >>"$f" || { [ -f "$1" ] || again; exit 74; }
  rm -f "$1"; shift 2
done
h=$(sums "$f") && [ "${h%% *}" = {sha} ] || {
  [ -f "$f" ] && ! stored || again
  rm -f "$f" {chain}; echo 'what arrived is not what was sent' >&2; exit 74
}
# Not over one that another send brought: Linux refuses a link to a file that is being replaced.
to=../blobs/{blob}
chmod {mode} "$f" && { ln "$f" "$to" 2>/dev/null || stored || mv -f "$f" "$to"; } || {
  [ -f "$f" ] && ! stored || again
  exit 74
}
rm -f "$f" {chain}; echo made
"""

BATCHED = """\
w=.in-{random}
mkdir "$w" "$w/new" "$w/tree" || exit 73
trap 'mv "$w" .left-{random} 2>/dev/null' EXIT
trap 'exit 74' HUP INT TERM PIPE
{unpack} | tar xomf - || exit 74
( cd "$w/new" && find . -type f -exec sh -c 'sums() { {sums}; }; sums "$@"' x {} + |
  awk '{n=substr($2, 3); sub(/x$/, "", n); if (n == $1) good++; else bad++}
    END {exit !(good + 0 == {count} && !bad)}' ) ||
  { echo 'what arrived is not what was sent' >&2; exit 74; }
# Not over one that another send brought: Linux refuses a link to a file that is being replaced.
[ {count} -eq 0 ] || find "$w/new" -type f -exec sh -c 'ln "$@" blobs/ 2>/dev/null' x {} + || :
for f in "$w"/new/*; do [ ! -f "$f" ] || [ -f "blobs/${f##*/}" ] || exit 74; done
"""

PLACE = """\
[ "$(weigh "$w/tree")" = '{weight}' ] || { echo 'what arrived is not whole' >&2; exit 74; }
find "$w/tree" -type d -exec chmod a-w {} + && chmod u+w "$w/tree" || exit 74
printf '%s\\n' {facts} >"$w/facts" && : >"$w/tree.sealed" || exit 74
[ -z "$(broken "$w/tree")" ] || rm -f "$w/tree.sealed"  # modes do not hold, or clocks differ
placed() {
  if mv -T "$w/tree" {id} 2>/dev/null || { [ ! -e {id} ] && mv "$w/tree" {id}; }; then
    won=yes; chmod u-w {id} 2>/dev/null || :
  else [ "$(weigh {id} 2>/dev/null)" = '{weight}' ]; fi  # another send was first
}
won=
if [ -e {id} ] && { [ "$(weigh {id})" != '{weight}' ] || [ -n "$(broken {id})" ]; }; then
  rm -f {id}.sealed; chmod u+w {id} 2>/dev/null
  mkdir "$w/old" && { mv {id} "$w/old/" 2>/dev/null || [ ! -e {id} ]; } || exit 74
fi
placed || placed || placed || exit 74  # another one may be replacing it
mv -f "$w/facts" {id}.facts || exit 74
# Who was first seals: another one's seal may be older than these files.
[ -z "$won" ] || [ ! -f "$w/tree.sealed" ] || mv -f "$w/tree.sealed" {id}.sealed || exit 74
discard "$w"; echo made
"""
_SUMS = (
    "if openssl dgst -sha256 -r /dev/null >/dev/null 2>&1; then "
    'openssl dgst -sha256 -r "$@" | sed "s/ \\*/  /"; '
    'elif command -v sha256sum >/dev/null 2>&1; then sha256sum "$@"; else shasum -a 256 "$@"; fi'
)


def script(folder: str, *steps: str, **values: str | int) -> str:
    """Return sh that does `steps` in the store at `folder`, with `values` in their places."""
    # The sums first: what they print in braces is awk's and the shell's.
    text = "".join(steps).replace("{sums}", _SUMS)
    return SHA + fill(_BASE, folder=quote(folder)) + fill(text, **values)


def opened(folder: str, group: str) -> str:
    """Return sh that makes the store where it is missing; its files get `group` unless it is ""."""
    return fill(_OPEN, folder=quote(folder), group=quote(group))


@dataclass(frozen=True)
class Item:
    """Files that belong together, with their hashes: what gets one tree."""

    name: str
    """What messages call it."""
    manifest: Manifest
    sources: Mapping[str, Path] = field(repr=False)
    seen: Mapping[str, tuple[int, ...]] = field(repr=False)
    """What stat said of each file when it was read."""
    single: str = ""
    """The name of the one file; "" for a folder."""

    def unchanged(self, path: str) -> bool:
        """Whether the file at `path` is what was read, as far as stat says."""
        try:
            return self.is_same(path, os.lstat(self.sources[path]))
        except OSError:
            return False

    def is_same(self, path: str, info: os.stat_result) -> bool:
        """Whether `info` is of the file that was read as `path`."""
        return file_state(info) == self.seen[path]


def changed(name: str, path: str) -> InputError:
    """Return the error for a file that was written to while it was read or sent."""
    return InputError(
        f"stage: {name}: the file {path!r} changed while it was sent.",
        "Wait until nothing writes to it, then send again: what has arrived is not sent twice.",
    )


def file_state(info: os.stat_result) -> tuple[int, ...]:
    """Return what is the same of a file as long as nobody writes to it."""
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, stat.S_IMODE(info.st_mode)


@dataclass(frozen=True)
class Blob:
    """One content to send."""

    name: str
    """Its hash, with an `x` at the end where it is executable."""
    entry: Entry
    """The first file that has it."""


def blob_name(entry: Entry) -> str:
    """Return the name of a file's content in the store."""
    return entry.sha256 + ("x" if entry.executable else "")


def blobs_of(item: Item) -> list[Blob]:
    """Return the contents of an item, each once, in the order of the files."""
    first: dict[str, Entry] = {}
    for entry in item.manifest.files:
        first.setdefault(blob_name(entry), entry)
    return [Blob(name, entry) for name, entry in first.items()]


def weight(item: Item) -> str:
    """Return what `weigh` prints of the item's tree."""
    links = [e.target.encode("utf-8", "surrogateescape") for e in item.manifest.entries if e.target]
    count = len(item.manifest.entries)
    return f"{count} {item.manifest.size + sum(map(len, links))}" if count else "0 0"
