"""The snapshots on a site: how a run copies one.

A snapshot is `<id>/` with its checksums in `<id>.sums`. Runs have copies: with hard links one run's
writes would change another's. A copy that is wrong marks its snapshot, and the next send mends it.
"""

from lumitui.remote.site.shell_text import REFLINK, SHA, fill, quote

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

# 4: the snapshot is not there (a prune may take it at any moment), 5: it is not whole. The
# checksums are copied first, so that the copy is checked whatever happens to the original. Equal
# files of a snapshot are one file. busybox's cp leaves them so: a write would change both.
_COPY = """\
(
{sha}umask 077
s={snapshot}; t={target}; w=$t.part-$$
[ -d "$t" ] && exit 0
gone() { [ -d "$s" ] || { echo no-snapshot; exit 4; }; exit 1; }
damaged() { echo damaged-snapshot; exit 5; }
trap 'rm -rf "$w" "$w.sums" "$w.own"' EXIT
[ -d "$s" ] || gone
[ -f "$s.sums" ] || damaged
cp "$s.sums" "$w.sums" || gone
{reflink}
cp -PR $reflink "$s" "$w" || gone
chmod -R u+w "$w" || exit 1
find "$w" -type f -links +1 -exec sh -c '
  own=$1; shift
  for f; do cp "$f" "$own" && mv -f "$own" "$f" || exit 1; done' x "$w.own" {} + || exit 1
( cd "$w" && verified "$w.sums" &&
  [ $(( $(find . -type f | wc -l) )) -eq $(( $(wc -l <"$w.sums") )) ]
) || { printf '%s\\n' "${s##*/}" 2>/dev/null >"${s%/*}/.suspect"; damaged; }
mv "$w" "$t"
)"""


def copy_script(snapshot: str, target: str) -> str:
    """Return one shell command that gives a run its own writable, checked copy of `snapshot`.

    When it fails it leaves nothing at `target`: with status 4 it prints `no-snapshot`, with 5
    `damaged-snapshot`. When `target` is there it does nothing, so that it may be repeated.
    """
    return fill(
        _COPY,
        sha=SHA + VERIFIED,
        reflink=REFLINK,
        snapshot=quote(snapshot),
        target=quote(target),
    )
