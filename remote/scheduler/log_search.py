"""Searching the log of an attempt on the site: one request per page of matches."""

from dataclasses import dataclass

from lumitui.remote.site.answer_fields import count, last_words
from lumitui.remote.site.errors import AnswerUnusable, RefusedError
from lumitui.remote.site.shell_text import quote
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

MOST_MATCHES = 500
"""Matches of one request."""
WIDTH = 300
"""Maximum bytes of a line in a match."""
_SECONDS = 120.0
"""Time limit in seconds: grep reads a gigabyte in a second or two, from a shared file system."""
_NO_LOG, _NO_GREP = 44, 46
# A line may be as long as the log, and grep keeps it in memory. busybox's grep lacks -b.
_FIND = f"""\
[ -f {{path}} ] || exit {_NO_LOG}
export LC_ALL=C; ulimit -v 2000000 2>/dev/null
echo x | grep -ab x >/dev/null 2>&1 || exit {_NO_GREP}
{{source}} | grep -ab {{how}} -e {{words}} | {{part}} -n {MOST_MATCHES} | cut -b 1-{WIDTH}"""


@dataclass(frozen=True)
class Match:
    """A matching line."""

    offset: int
    """Where it begins."""
    text: bytes
    """Its beginning."""


@dataclass(frozen=True)
class Sought:
    """The search."""

    words: str
    """Literal text, or a POSIX extended expression."""
    is_pattern: bool = False

    @property
    def any_case(self) -> bool:
        """Whether the search ignores case, because the text has no capital letter."""
        return not self.is_pattern and self.words == self.words.lower()


@purpose("log")
def find(
    transport: Transport, path: str, sought: Sought, at: int, *, forward: bool
) -> list[Match] | None:
    """Return the lines with `sought` nearest to byte `at`, after or before it; None: no log.

    Raises:
        RefusedError: the site's grep cannot count bytes, or the log cannot be read.
        LinkError: the site cannot be reached, or its answer is invalid.
    """
    script = _FIND.format(
        path=quote(path),
        source=f"tail -c +{at + 1} {quote(path)}" if forward else f"head -c {at} {quote(path)}",
        how=("-E" if sought.is_pattern else "-F") + ("i" if sought.any_case else ""),
        words=quote(sought.words),
        part="head" if forward else "tail",
    )
    result = transport.run(script, timeout=_SECONDS)
    if result.code == _NO_LOG:
        return None
    if result.code == _NO_GREP:
        raise RefusedError(
            "The site's grep does not report positions in a file.",
            "Press P to search the part of the log on the laptop.",
        )
    if result.code or (result.err.strip() and not result.out):
        words = last_words(result.err, result.out, default=f"exit status {result.code}")
        raise RefusedError(
            f"lumitui cannot search the log at the site: {words}.", f"The log is {path}."
        )
    base = at if forward else 0
    return [_match(line, base) for line in result.out.removesuffix(b"\n").split(b"\n") if line]


def _match(line: bytes, base: int) -> Match:
    number, _, text = line.partition(b":")
    offset = count(number[:20].decode("ascii", "replace"))
    if offset is None:
        raise AnswerUnusable(
            f"The site answered with {last_words(line)} instead of positions in the log.",
            "Try again; if it happens again, check your shell startup files on the site.",
        )
    return Match(base + offset, text)
