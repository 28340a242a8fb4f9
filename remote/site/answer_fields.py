"""The typed reader of a site's answers: numbers, times, lines, JSON and words, all with limits.

Used by every parser of a site's output. None of them raises anything but AnswerUnusable, whatever
the bytes are. A text that is not a number gives None, and the parser decides what that means.
"""

import json
import math
import re
from collections.abc import Iterator

from lumitui.remote.site.errors import AnswerUnusable

MOST_LINES = 200_000
"""Maximum lines of one list. A fetch may list 100,000 files; no user has as many jobs."""
LONGEST_LINE = 65_536
"""Maximum characters of a line. A path has at most 4,096 bytes, and the longest line of `scontrol
show` about 10,000; a longer line is cut, so it matches no pattern."""
MOST_JSON = 4 << 20
"""Maximum bytes of a JSON text that are parsed. The report of 128 ranks has some 40,000."""
MOST_WORDS = 300
"""Maximum characters of a site's message: two or three lines of a terminal."""
_DIGITS = 15  # below 2**53: exact as a float, and in every column of the history
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LATEST = 1e11  # the year 5138: no clock shows a year beyond 9999


def count(text: str) -> int | None:
    """Return the number if the text is at most 15 plain digits; otherwise None."""
    digits = 0 < len(text) <= _DIGITS and text.isascii() and text.isdecimal()
    return int(text) if digits else None


def moment(value: object) -> float | None:
    """Return epoch seconds from digits or a number; None if `value` is not a time."""
    if isinstance(value, str):
        value = count(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LATEST:
        return None
    return float(value)


def whole(value: object, least: int, most: int) -> int | None:
    """Return an integer of a JSON text (2 or 2.0) from `least` to `most`; None for another value.

    True is not a number, and neither is the text "2".
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
        return None
    return int(value) if least <= value <= most else None


def short(value: object, most: int) -> str:
    """Return a text or a number of a JSON text as text, at most `most` characters; else ""."""
    return str(value)[:most] if isinstance(value, str | int | float) else ""


def lines(text: str | bytes, *, most: int = MOST_LINES) -> Iterator[str]:
    """Yield the lines of `text`, one at a time; a line longer than LONGEST_LINE is cut.

    A line ends only with a line feed: other characters that Python takes for a newline may
    be in a name. Bytes that are not UTF-8 become replacement characters.

    Raises:
        AnswerUnusable: there are more than `most` lines.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    start = number = 0
    while start < len(data):
        number += 1
        if number > most:
            raise AnswerUnusable(
                f"The site's answer has more than {most} lines.",
                "A command on the site prints without end; log in and check its output.",
            )
        line_feed = data.find(b"\n", start)
        end = len(data) if line_feed < 0 else line_feed
        yield data[start : min(end, start + LONGEST_LINE)].decode("utf-8", "replace")
        start = end + 1


def json_of(data: bytes | str, *, most: int = MOST_JSON) -> object:
    """Return the content of a JSON text; None if it is invalid, too long or nested too deeply.

    NaN, Infinity and numbers beyond a float's range (1e999) are no JSON; so is an integer of more
    than 4,300 digits, which Python does not read, and half a surrogate pair, which no file takes.
    """
    if len(data) > most:
        return None
    try:
        text = data if isinstance(data, str) else data.decode()
        value: object = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except (ValueError, RecursionError):  # a UnicodeError is a ValueError
        return None


def last_words(*texts: bytes | str, default: str = "no reason given") -> str:
    """Return the last line that says something of the first text that has one, for a message.

    At most MOST_WORDS characters, without the full stop: the message continues after it.
    """
    for text in texts:
        end = text[-4 * MOST_WORDS :]
        plain = end.decode("utf-8", "replace") if isinstance(end, bytes) else end
        rows = [row.strip() for row in plain.splitlines() if row.strip()]
        said = [row for row in rows if not row.startswith(("tar: Exiting", "tar: Error is not"))]
        if rows:
            return (said or rows)[-1][-MOST_WORDS:].rstrip(".")
    return default


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is beyond the range of a number")
    return value
