"""Records in the output of a script: content between two lines with a random marker.

Content cannot be mistaken for structure, because it cannot contain the marker:

    MARKER exit 0 1
    {"rc": 0, ...}
    MARKER end

A record without its closing line is dropped: the script ended within it.
"""

import secrets
from typing import NamedTuple

from lumitui.remote.site.errors import AnswerUnusable

MOST_RECORDS = 100_000
"""Maximum records of one answer. A poll of 1,000 runs has about 4,000. The limit is needed because
the site knows the marker and could print any number."""
MOST_OPENING = 1_000
"""Maximum bytes of a record's opening line; scripts write about 40."""


class AnswerRecord(NamedTuple):
    """One record of an answer."""

    words: list[str]
    """The words of the opening line after the marker; the first is the kind of record."""
    content: bytes


def new_marker() -> str:
    """Return a marker for the records of one request."""
    return f"lumitui-{secrets.token_hex(8)}"


def record_functions(marker: str) -> str:
    """Return sh that defines `begin KIND [WORD...]` and `finish`; output between them is a record.

    The content must end with a newline. Both only call the builtin `echo`, which starts no
    process.
    """
    # Not `end`, which is a reserved word in zsh, the sh of some Macs.
    return f'begin() {{ echo {marker} "$@"; }}\nfinish() {{ echo {marker} end; }}'


def parse_records(output: bytes, marker: str) -> list[AnswerRecord]:
    """Return the records of `output`; AnswerUnusable if there are more than MOST_RECORDS."""
    entries: list[AnswerRecord] = []
    begin = f"{marker} ".encode()
    position = 0
    while (start := output.find(begin, position)) >= 0:
        line_end = output.find(b"\n", start)
        close = output.find(begin + b"end\n", line_end)
        if line_end < 0 or close < 0:
            break
        position = close + len(begin) + 4
        if line_end - start > MOST_OPENING:
            continue
        words = output[start + len(begin) : line_end].decode("utf-8", "replace").split()
        entries.append(AnswerRecord(words, output[line_end + 1 : close]))
        if len(entries) > MOST_RECORDS:
            raise AnswerUnusable(
                f"The site's answer has more than {MOST_RECORDS} records.",
                "A command on the site prints without end; log in and check its output.",
            )
    return entries
