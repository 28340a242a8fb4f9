"""The snapshots on a site: how a run copies one.

A snapshot is `<id>/` with its checksums in `<id>.sums`, or one archive `<id>.tar.gz` with its hash
in `<id>.tar.gz.sha256`. Runs have copies: with hard links one run's writes would change another's.
"""

import re

from lumitui.remote.run_folder import CODE_ARCHIVE
from lumitui.remote.transport.fields import last_words
from lumitui.remote.transport.protocol import Result
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


def reason(result: Result) -> str:
    """Return the line of standard error that says why; tar's own last line never does."""
    lines = result.err.decode("utf-8", "replace").strip().splitlines()
    reasons = [line for line in lines if "xiting with failure" not in line]
    full = [line for line in reasons if re.search("space|quota", line, re.IGNORECASE)]
    if not full and any("Wrote only" in line for line in reasons):
        full = ["no space left, or the quota is used up: tar wrote only a part of a file"]
    return last_words((full or reasons[-1:] or [""])[0], default=f"exit status {result.code}")


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
