"""Words and fragments for every site's POSIX sh: GNU, busybox and BSD (macOS)."""

import re
import shlex

from lumitui.remote.site.errors import InputError

SHA = """\
sha() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum "$@"; else shasum -a 256 "$@"; fi
}
"""
"""Defines `sha [FILE...]`: SHA-256 of files or of standard input, as sha256sum prints it."""

REFLINK = "reflink=; cp --reflink=auto --version >/dev/null 2>&1 && reflink=--reflink=auto"
"""Sets `$reflink` where cp can share blocks until one side writes (GNU coreutils)."""

_COMMENT = re.compile(r"(?<=[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])(?=[ \t]*#)")
"""Where a line of a text begins with a comment, such as `#SBATCH`."""


def quote(text: str) -> str:
    """Return `text` as exactly one word of a shell; the only quoting function there is.

    No line of it begins with `#`: sbatch reads no directive below the first command, but a site's
    filter, or a user, might. ANSI-C quotes would be shorter, but POSIX sh has none.

    Raises:
        InputError: the text has a NUL, which no argument of a process can carry.
    """
    if "\0" in text:
        raise InputError(
            f"The text {text!r} has a NUL character, which cannot be passed to a command.",
            "Remove it from the job file.",
        )
    # The quotes are closed and opened again. Only what is in them has ends of lines.
    return _COMMENT.sub("''", shlex.quote(text))


def fill(template: str, **values: str | int) -> str:
    """Return `template` with `values` for `{name}`; other braces belong to the shell."""
    return re.sub(
        r"\{(\w+)\}", lambda match: str(values.get(match[1], match[0])), template, flags=re.ASCII
    )
