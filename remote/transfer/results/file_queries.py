"""One query about files of a site's folder: records in the answer, bounded before they are kept.

The script prints records `KIND REST`, each ended by a NUL, and last `end`. A NUL is in no name, so
no name can be taken for the end of a record. What the site's commands write to standard error comes
as one record `said WORDS`, cut there to SAID_BYTES: who complains without end costs nothing, and is
ended after COMPLAINTS_BYTES. `whole` comes before them, when nothing ended the commands from
outside.
"""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress

from lumitui.remote.site.answer_fields import last_words
from lumitui.remote.site.errors import AnswerUnusable, LumiError, RefusedError
from lumitui.remote.site.run_folder import LISTING_SECONDS
from lumitui.remote.site.shell_text import fill, quote
from lumitui.remote.transport.answer_limits import limited
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

LONGEST_RECORD = 1 << 16
"""Most bytes of one record. Linux allows 4,096 in a path (PATH_MAX); what is longer up to this is
reported as one file's name, and beyond it the answer is not a list of files."""
SAID_BYTES = 2000
"""Most bytes of the site's own words that are kept: about twenty messages of `find`."""
COMPLAINTS_BYTES = 4 << 20
"""Bytes of complaints after which their writer is ended (SIGPIPE): 20,000 long names."""
SILENT_SECONDS = 120.0
"""Seconds without a byte after which a list is given up. `find` prints after a hundred names at the
least, for which a busy Lustre takes seconds; a site that hangs says nothing for ever."""

_ENDING_SECONDS = 0.5

_SCRIPT = """\
why=$(cd {folder} 2>&1) || { printf 'shut %s\\0' "$why"; exit 0; }
cd {folder}
exec 4>&1
said=$( {
{body}
printf 'whole\\0'
} 2>&1 >&4 4>&- | { head -c {most}; head -c {complaints} >/dev/null; } )
[ -z "$said" ] || printf 'said %s\\0' "$said"
printf 'end\\0'
"""


def ask(
    transport: Transport,
    folder: str,
    body: str,
    stop: Callable[[], bool],
    *,
    most: int,
    hashed: float = 0.0,
) -> Generator[tuple[str, bytes], None, None]:
    """Yield the kind and the rest of each record; a stopped query ends early, without error.

    Args:
        transport: the site.
        folder: the folder there that `body` runs in.
        body: sh that prints records; its standard error is for messages.
        stop: ends the query when it returns true.
        most: most bytes of the whole answer.
        hashed: seconds that the site may hash, during which nothing comes.

    Raises:
        RefusedError: the folder cannot be entered.
        AnswerUnusable: the answer is not a list of records, too long, or not whole in time.
        LinkError, LinkLost: as `Transport.stream`.
    """
    script = fill(
        _SCRIPT,
        folder=quote(folder),
        body=body,
        most=SAID_BYTES,
        complaints=COMPLAINTS_BYTES,
    )
    whole = False
    with purpose("list files"):
        stream = transport.stream(script, stop=stop)
    with ended(limited(stream, most=most, seconds=LISTING_SECONDS + hashed)) as chunks:
        for record in _records(chunks, SILENT_SECONDS + hashed):
            kind, _, rest = record.partition(b" ")
            if kind == b"end" and whole:
                return
            if kind == b"end":
                raise _unusable("the commands there were ended before they had finished")
            if kind == b"whole":
                whole = True
                continue
            if kind == b"shut":
                raise RefusedError(f"The site could not read {folder}: {last_words(rest)}.", "")
            yield kind.decode("ascii", "replace"), rest
    if not stop():
        raise _unusable("it ends in the middle")


@contextmanager
def ended(chunks: Iterator[bytes]) -> Iterator[Iterator[bytes]]:
    """End a stream when the block ends: an error that is kept keeps no process on the site.

    After its last record a script ends by itself in a moment, which is quicker than to end it.
    """
    try:
        yield chunks
        deadline = time.monotonic() + _ENDING_SECONDS
        with suppress(LumiError):
            while time.monotonic() < deadline and not next(chunks, b"over"):
                pass
    finally:
        if isinstance(chunks, Generator):
            chunks.close()


def said_lines(words: bytes) -> list[str]:
    """Return the site's own words as lines that are not blank; at least one."""
    text = words[:SAID_BYTES].decode("utf-8", "replace")
    return [line.strip() for line in text.splitlines() if line.strip()] or ["no reason given"]


def _records(chunks: Iterator[bytes], silence: float) -> Iterator[bytes]:
    held, heard = b"", time.monotonic()
    for chunk in chunks:
        now = time.monotonic()
        if not chunk and now - heard > silence:
            raise _unusable(f"nothing came for {now - heard:.0f} s")
        heard = now if chunk else heard
        *whole, held = (held + chunk).split(b"\0")
        yield from whole
        if len(held) > LONGEST_RECORD:
            raise _unusable(f"a record in it is longer than {LONGEST_RECORD:,} bytes")


def _unusable(why: str) -> AnswerUnusable:
    return AnswerUnusable(
        f"The site's list of files cannot be used: {why}.",
        "Try again; if it happens again, check what `sh`, `find` and `sha256sum` do there.",
    )
