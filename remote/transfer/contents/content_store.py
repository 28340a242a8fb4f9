"""A store of contents on a site: its layout, and the sh that works in it.

    <folder>/<id>/              one tree, read-only: of hard links, visible when it is whole
    <folder>/<id>.facts         how many files and bytes it has, and what it is called
    <folder>/<id>.sealed        as old as the tree: a file that is younger, or writable, was changed
    <folder>/<id>.sums          of code: the hash of each file, by which every copy is checked
    <folder>/blobs/<sha256>     each content once (with an `x` at the end: executable)
    <folder>/parts/<blob>-<offset>-<random>   a piece of a large blob, from that offset on
    <folder>/.in-<random>/      what arrives now; `.left-...`: what a cut link left
    <folder>/.suspect           the tree of which a copy was found wrong

A blob gets its name after its hash was checked on the site, so nothing half-sent is ever used. Two
sends at once write different files, and each may join what another one has sent of a large file.
When that is gone, the content is there, or the file is sent anew.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lumitui.remote.site.errors import InputError
from lumitui.remote.site.shell_text import SHA, fill, quote
from lumitui.remote.source.manifest import Manifest, ManifestEntry
from lumitui.remote.source.scan import FileState, changed, file_state

LARGE = 8 << 20
"""Minimum bytes of a file sent by itself, which resumes where a cut link left it."""
BATCH = 256 << 20
"""Bytes of small files in one request: complete ones are kept even after a cut."""

# `sums [FILE...]`: hash and name, from openssl where it works: it uses the processor's own
# instructions. `named FOLDER 1`: the contents in it whose hash is their name; with 0 the others.
# `weigh FOLDER`: how many files and links, their bytes, and how many can be executed; only stat is
# asked. `broken ID`: what somebody changed in a tree. `clean ID`: a content that was changed is
# sent again; without a seal modes say nothing on this file system. `discard` changes no mode of a
# file, as other trees have the same file.
_BASE = """\
umask 077
sums() { {sums}; }
named() { (
  cd "$1" && find . -type f -exec sh -c 'sums() { {sums}; }; sums "$@"' x {} + |
    awk -v right="$2" '{n=substr($2, 3); h=n; sub(/x$/, "", h); if ((h == $1) == right) print n}'
) }
q=q; ls -q / >/dev/null 2>&1 || q=  # a line end in a name as ?; busybox does so without
weigh() {
  find "$1" ! -type d -exec ls "-lnd$q" {} + |
    awk '{n++; s+=$5; x+=/^-..x/} END {printf "%d %.0f %d", n, s, x}'
}
broken() {
  [ ! -f "$1.sealed" ] || find "$1" \\( -type f -perm -200 -o ! -type d -newer "$1.sealed" \\) \
    -exec ls "-lnid$q" {} +
}
has() {
  case $(weigh "$1" 2>/dev/null) in
  '{weight} {executables}') ;;
  '{weight} '*) [ ! -f "$1.sealed" ] ;;
  *) return 1 ;;
  esac
}
clean() {
  ls ./*.sealed >/dev/null 2>&1 || return 0
  { broken "$1" | sed 's/^ */t /'; ls -lni blobs | sed 's/^ */b /'; } |
    awk '$1 == "t" {bad[$2] = 1}
      $1 == "b" && $3 ~ /^-/ && (($2 in bad) || $3 ~ /^-.w/ || ($NF ~ /x$/) != ($3 ~ /^-..x/)) {
        print "blobs/" $NF }' |
    xargs rm -f
}
discard() { find "$@" -type d -exec chmod u+w {} + 2>/dev/null; rm -rf "$@"; }
cd {folder} || exit 73
"""

_OPEN = """\
umask 077
[ -d {folder} ] || {
  mkdir -p {folder} && cd {folder} || exit 73
  chmod 700 . 2>/dev/null  # a default ACL above outweighs the umask
}
cd {folder} || exit 73
if [ -n {group} ]; then chgrp {group} . && chmod g+s . || exit 73; fi
[ -d blobs ] && [ -d parts ] || mkdir -p blobs parts || exit 73
"""

# A tree of which a copy was wrong goes, and each content whose hash is another one than its name.
_STANDS = """\
if [ -f .suspect ]; then
  s=$(cat .suspect); rm -f .suspect
  case $s in ''|*[!0-9a-f]*) ;; *)
    rm -f "$s.facts" "$s.sealed"
    mv "$s" ".gone-$s-$$" 2>/dev/null && discard ".gone-$s-$$" ;;
  esac
  named blobs 0 | ( cd blobs && xargs rm -f )
fi
if [ -f {id}.facts ] && [ -d {id} ] && {listed} && has {id} && [ -z "$(broken {id})" ]; then
  touch {id}.facts; echo stands; exit 0
fi
"""

# What a cut link left whole becomes blobs. `.in-` of ten minutes ago without a new file is of a
# process that nobody feeds any more. This comes before anything is created: a disk that such a
# send filled has room again only afterwards. The links need room: all but the contents goes first.
ASK = (
    _STANDS
    + """\
clean {id}
find . -maxdepth 2 -path './.in-*/new' -mmin +10 | while IFS= read -r old; do
  d=${old%/new}; mv "$d" ".left-${d#./.in-}"
done
for d in .left-*; do
  [ -d "$d/new" ] || continue
  for o in "$d"/*; do [ "$o" = "$d/new" ] || discard "$o"; done
  named "$d/new" 1 |
    ( cd "$d/new" && xargs sh -c '[ $# -eq 0 ] || ln "$@" ../../blobs/ 2>/dev/null' x )
  discard "$d"
done
: >.try-$$ || exit 74
e=$(ln .try-$$ blobs/.try-$$ 2>&1) || {
  rm -f .try-$$
  case $e in *space*|*uota*) printf '%s\\n' "$e" >&2; exit 74;; esac
  echo no-links; exit 0
}
rm -f .try-$$ blobs/.try-$$
{ ls -ln blobs | sed 's/^/b /'; ls -ln parts | sed 's/^/p /'; echo asked; gzip -dc; } | awk '
  function key(name) { return substr(name, 1, 16) substr(name, 65) }
  asked {
    n++; want = !($1 in blob) || size[$1] != $2
    if (want && $1 in blob) system("rm -f blobs/" blob[$1])  # damaged: its size is another one
    if (want) { wanted[$1] = 1; if (!from) from = n }
    else if (from) { print "m", from, n - 1; from = 0 }
    next
  }
  $1 == "asked" { asked = 1; next }
  $1 == "b" { blob[key($10)] = $10; size[key($10)] = $6 }
  $1 == "p" && $6 > 0 { split($10, at, "-"); part[$10] = $6; of[$10] = key(at[1]) }
  END {
    if (from) print "m", from, n
    for (p in part) if (of[p] in wanted) print "p", p, part[p]
    print "asked"
  }'
"""
)

# Other sends may join, finish or remove the same parts at any time. `stored`: the content is there,
# from any send. `again`: a part has gone; without the content the file is sent anew.
PARTS = """\
cd parts || exit 73
own={own}
to={place}
stored() { [ -f $to ] && has=$(wc -c <$to) && [ "$((has + 0))" -eq {size} ]; } 2>/dev/null
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
chmod {mode} "$f" && { ln "$f" $to 2>/dev/null || stored || mv -f "$f" $to; } || {
  [ -f "$f" ] && ! stored || again
  exit 74
}
rm -f "$f" {chain}; echo made
"""
# Only what differs from another tree follows, whose contents are taken to be there.
BASED = (
    _STANDS
    + """\
[ -f {base}.facts ] && [ -d {base} ] && [ -z "$(broken {base})" ] || {
  clean {base}; echo base-gone; exit 0
}
"""
)

BATCHED = """\
w=.in-{random}
mkdir "$w" "$w/new" "$w/tree" || exit 73
trap '{leave}' EXIT
trap 'exit 74' HUP INT TERM PIPE
e=$( { {unpack} | tar xomf -; } 2>&1) || {
  case '{base} '$e in [0-9a-f]*blobs/*|[0-9a-f]*{base}/*) echo base-gone; exit 0 ;; esac
  printf '%s\\n' "$e" >&2; exit 74
}
[ "$(( $(named "$w/new" 1 | wc -l) ))" -eq {count} ] ||
  { echo 'what arrived is not what was sent' >&2; exit 74; }
# All at once where there are none yet. Otherwise not over one that another send brought: Linux
# refuses a link to a file that is being replaced.
{ mv -T "$w/new" blobs 2>/dev/null && mkdir "$w/new"; } ||
  find "$w/new" -type f -exec sh -c 'ln "$@" blobs/ 2>/dev/null' x {} + || :
for f in "$w"/new/*; do
  [ ! -f "$f" ] || [ -f "blobs/${f##*/}" ] || { [ '{base}' ] || exit 74; echo base-gone; exit 0; }
done
"""

PLACE = """\
seal=
case $(weigh "$w/tree") in
'{weight} {executables}') seal=yes ;;
'{weight} '*) ;;  # modes do not hold here
*) echo 'what arrived is not whole' >&2; exit 74 ;;
esac
find "$w/tree" -type d -exec chmod a-w {} + && chmod u+w "$w/tree" || exit 74
printf '%s\\n' {facts} >"$w/facts" && : >"$w/tree.sealed" || exit 74
[ -n "$seal" ] && [ -z "$(broken "$w/tree")" ] || rm -f "$w/tree.sealed"  # or clocks differ
placed() {
  if mv -T "$w/tree" {id} 2>/dev/null || { [ ! -e {id} ] && mv "$w/tree" {id}; }; then
    won=yes; chmod u-w {id} 2>/dev/null || :
  else has {id}; fi  # another send was first
}
won=
if [ -e {id} ] && { ! has {id} || [ -n "$(broken {id})" ]; }; then
  rm -f {id}.sealed; chmod u+w {id} 2>/dev/null
  mkdir "$w/old" && { mv {id} "$w/old/" 2>/dev/null || [ ! -e {id} ]; } || exit 74
fi
placed || placed || placed || exit 74  # another one may be replacing it
[ ! -f "$w/sums" ] || mv -f "$w/sums" {id}.sums || exit 74
mv -f "$w/facts" {id}.facts || exit 74
# Who was first seals: another one's seal may be older than these files.
[ -z "$won" ] || [ ! -f "$w/tree.sealed" ] || mv -f "$w/tree.sealed" {id}.sealed || exit 74
discard "$w"; echo made
"""
_SUMS = (
    "case $(openssl dgst -sha256 -r /dev/null 2>/dev/null) in "
    f"{hashlib.sha256().hexdigest()}\\ *) "
    'openssl dgst -sha256 -r "$@" | sed "s/ \\*/  /" ;; '
    '*) if command -v sha256sum >/dev/null 2>&1; then sha256sum "$@"; '
    'else shasum -a 256 "$@"; fi ;; esac'
)


def script(folder: str, *steps: str, **values: str | int) -> str:
    """Return sh that does `steps` in the store at `folder`, with `values` in their places."""
    # The sums first: what they print in braces is awk's and the shell's.
    text = "".join((_BASE, *steps)).replace("{sums}", _SUMS)
    return SHA + fill(text, folder=quote(folder), **values)


@dataclass(frozen=True)
class Item:
    """Files that belong together, with their hashes: the content of one tree."""

    name: str
    """Its name in messages."""
    manifest: Manifest
    sources: Mapping[str, Path] = field(repr=False)
    seen: Mapping[str, FileState] = field(repr=False)
    """The stat of each file when it was read; a file that is not in it is only hashed."""
    single: str = ""
    """The name of the single file; "" for a folder."""
    sums: bytes | None = None
    """Of code: the hash of each file, by which every copy of the tree is checked."""

    @property
    def is_code(self) -> bool:
        """Whether it is copied for each run; otherwise runs share its tree."""
        return self.sums is not None

    def unchanged(self, path: str) -> bool:
        """Whether the file at `path` is unchanged since it was read, according to stat."""
        try:
            state = file_state(os.lstat(self.sources[path]))
        except OSError:
            return False
        return self.seen.get(path, state) == state

    def changed(self, path: str) -> InputError:
        """Return the error for a file that was written to while it was read or sent."""
        return stage_changed(self.name, path) if self.seen else changed(path)


def stage_changed(name: str, path: str) -> InputError:
    """Return the error for a file of the item `name` that changed meanwhile."""
    return InputError(
        f"stage: {name}: the file {path!r} changed while it was sent.",
        "Wait until no program writes to it, then send again: lumitui does not upload the same "
        "data twice.",
    )


@dataclass(frozen=True)
class Blob:
    """One content to send."""

    name: str
    """Its hash, with an `x` at the end where it is executable."""
    entry: ManifestEntry
    """The first file that has it."""


@dataclass(frozen=True)
class Store:
    """A store on a site."""

    folder: str
    site: str
    """Its name for messages; "" if they should advise as for code."""
    group: str = ""
    """The group that the files get; "": the user's own."""


def opened(store: Store) -> str:
    """Return sh that creates `store` if it is missing."""
    return fill(_OPEN, folder=quote(store.folder), group=quote(store.group))


def blob_name(entry: ManifestEntry) -> str:
    """Return the name of a file's content in the store."""
    return entry.sha256 + ("x" if entry.executable else "")


def blobs_of(item: Item) -> list[Blob]:
    """Return the contents of an item, each once, in the order of the files."""
    first: dict[str, ManifestEntry] = {}
    for entry in item.manifest.files:
        first.setdefault(blob_name(entry), entry)
    return [Blob(name, entry) for name, entry in first.items()]


def short_name(blob: Blob) -> str:
    """Return a sufficient prefix of a content's name."""
    return blob.name[:16] + blob.name[64:]


def values(item: Item, base: str = "") -> dict[str, str | int]:
    """Return the scripts' variables for an item, and for the tree it is based on."""
    entries = item.manifest.entries
    links = [e.target.encode("utf-8", "surrogateescape") for e in entries if e.target]
    name = item.manifest.id
    listed = hashlib.sha256(item.sums or b"").hexdigest()
    hashed = f'[ "$(sha <{name}.sums | cut -c 1-64)" = {listed} ]'
    return {
        "id": name,
        "base": base,
        "weight": f"{len(entries)} {item.manifest.size + sum(map(len, links))}",
        "executables": sum(entry.executable for entry in entries),
        "listed": hashed if item.is_code else ":",
    }
