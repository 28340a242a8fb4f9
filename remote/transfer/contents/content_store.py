"""A store of contents on a site: its layout, and the sh that works in it.

    <folder>/<id>/              one tree, read-only: of hard links, visible when it is whole
    <folder>/<id>.facts         how many files and bytes it has, and what it is called
    <folder>/<id>.sealed        as old as the tree: a file that is younger, or writable, was changed
    <folder>/<id>.sums          of code: the hash of each file, by which every copy is checked
    <folder>/blobs/<sha256>     each content once (with an `x` at the end: executable)
    <folder>/parts/<blob>-<offset>-<random>   a piece of a large blob, from that offset on
    <folder>/.in-<random>/      what arrives now; `.left-...`: what a cut link left
    <folder>/.suspect           the tree of which a copy was found wrong

A blob gets its name only after the site has checked its hash, so partial data is never used.
Concurrent sends write different files, and each may join the parts of a large file sent by another.
If such a part disappears, either the content exists or the file is sent again.
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
"""Minimum bytes of a file sent separately, which resumes after a cut link."""
BATCH = 256 << 20
"""Bytes of small files per request: complete files are kept even after a cut link."""

# `sums [FILE...]`: hash and name, from openssl if it works, which uses the CPU's hash instructions.
# `named FOLDER 1`: the contents in it whose hash is their name; with 0, the others. `weigh FOLDER`:
# the number of files and links, their bytes, and the number of executables, from stat alone.
# `broken ID`: the changed files of a tree. `clean ID`: discard changed contents, so that they are
# sent again; without a seal, this file system's modes prove nothing. `discard` changes no file
# modes, because other trees share the files.
_BASE = """\
umask 077
sums() { {sums}; }
named() { (
  cd "$1" && find . -type f -exec sh -c 'sums() { {sums}; }; sums "$@"' x {} + |
    awk -v right="$2" '{n=substr($2, 3); h=n; sub(/x$/, "", h); if ((h == $1) == right) print n}'
) }
q=q; ls -q / >/dev/null 2>&1 || q=  # a newline in a name as ?; busybox does so without
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

# Remove a tree that has a wrong copy, and every stored file whose hash differs from its name.
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

# Complete contents from a cut link become blobs. An `.in-` without a new file for ten minutes
# belongs to a dead process. This runs before anything is created, because it may free a full disk.
# Links need space too: everything except the contents is removed first.
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

# Other sends may join, finish or remove the same parts at any time. `stored`: the content exists,
# from any send. `again`: a part is missing; unless the content exists, the file is sent again.
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

# The other parts are appended to the first. A part longer than when the site was queried still has
# a sender, so it is copied.
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
# Only the differences from another tree follow; its contents are assumed to exist.
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
    """Return sh that runs `steps` in the store at `folder`, with `values` filled in."""
    # The sums first: their braces belong to awk and the shell.
    text = "".join((_BASE, *steps)).replace("{sums}", _SUMS)
    return SHA + fill(text, folder=quote(folder), **values)


@dataclass(frozen=True)
class Item:
    """The files of one tree, with their hashes."""

    name: str
    """Its name in messages."""
    manifest: Manifest
    sources: Mapping[str, Path] = field(repr=False)
    seen: Mapping[str, FileState] = field(repr=False)
    """The stat of each file when it was read; files without one are hashed again."""
    single: str = ""
    """The name of the single file; "" for a folder."""
    sums: bytes | None = None
    """For code: the hash of each file, with which each copy of the tree is checked."""

    @property
    def is_code(self) -> bool:
        """Whether each run gets a copy; otherwise runs share the tree."""
        return self.sums is not None

    def unchanged(self, path: str) -> bool:
        """Return whether stat shows no change of the file at `path` since it was read."""
        try:
            state = file_state(os.lstat(self.sources[path]))
        except OSError:
            return False
        return self.seen.get(path, state) == state

    def changed(self, path: str) -> InputError:
        """Return the error for a file that changed while it was read or sent."""
        return stage_changed(self.name, path) if self.seen else changed(path)


def stage_changed(name: str, path: str) -> InputError:
    """Return the error for a file of the item `name` that changed during the send."""
    return InputError(
        f"stage: {name}: the file {path!r} changed while it was sent.",
        "Wait until no program writes to it, then send again: lumitui does not upload the same "
        "data twice.",
    )


@dataclass(frozen=True)
class Blob:
    """One content to send."""

    name: str
    """Its hash, with a trailing `x` if it is executable."""
    entry: ManifestEntry
    """The first file with this content."""


@dataclass(frozen=True)
class Store:
    """A store on a site."""

    folder: str
    site: str
    """The site's name for messages; "" for advice about code."""
    group: str = ""
    """The group of the files; "": the user's default."""


def opened(store: Store) -> str:
    """Return sh that creates `store` if missing."""
    return fill(_OPEN, folder=quote(store.folder), group=quote(store.group))


def blob_name(entry: ManifestEntry) -> str:
    """Return the name of a file's content in the store."""
    return entry.sha256 + ("x" if entry.executable else "")


def blobs_of(item: Item) -> list[Blob]:
    """Return the distinct contents of an item, in the order of the files."""
    first: dict[str, ManifestEntry] = {}
    for entry in item.manifest.files:
        first.setdefault(blob_name(entry), entry)
    return [Blob(name, entry) for name, entry in first.items()]


def short_name(blob: Blob) -> str:
    """Return a sufficient prefix of a content's name."""
    return blob.name[:16] + blob.name[64:]


def values(item: Item, base: str = "") -> dict[str, str | int]:
    """Return the scripts' variables for an item and the tree it is based on."""
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
