"""The regular expressions of `metrics:`, checked before anything compiles them.

`regex` unrolls counted repeats when it compiles, without a time limit: `a{100000}` takes 0.05 s and
10 MB, and `((a{1000}){1000}){1000}` would take a day.
"""

import re

MOST_CHARACTERS = 1000
"""Per pattern; a line of a log is seldom longer."""
MOST_COPIES = 20_000
"""Most characters and groups of a pattern with its repeats written out."""

_TOKEN = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:[^\]\\]|\\.)*\])|(?P<open>\()|(?P<close>\))"
    r"|\{(?P<least>[0-9]*)(?:,(?P<most>[0-9]*))?\}|(?P<space>\s)|(?P<other>.)",
    re.DOTALL,
)
_COUNTED = re.compile(r"\{([0-9]*)(?:,([0-9]*))?\}")
# Verbose patterns have comments, and version 1 nests sets: only a full parser finds their groups.
_UNCLEAR = re.compile(r"\(\?(?:#|[a-zA-Z0-9-]*[Vx])")


def check_log_pattern(pattern: str) -> None:
    """Check that `pattern` is a regular expression with one group that compiles quickly.

    Raises:
        ValueError: it is not; the message continues a sentence.
    """
    if len(pattern) > MOST_CHARACTERS:
        raise ValueError(f"the pattern has more than {MOST_CHARACTERS} characters")
    if _copies(pattern) > MOST_COPIES:
        raise ValueError(
            f"its counted repeats make more than {MOST_COPIES} copies; use * or + instead of {{…}}"
        )
    import regex  # late: few job files have patterns

    try:
        groups = regex.compile(pattern).groups
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression: {error}") from error
    if groups != 1:
        raise ValueError("the pattern needs exactly one (group)")


def _copies(pattern: str) -> int:
    """Return an upper bound on the items of `pattern` with its repeats written out."""
    if _UNCLEAR.search(pattern):
        product = len(pattern)
        for match in _COUNTED.finditer(pattern):
            product = min(product * _times(match[1], match[2]), MOST_COPIES + 1)
        return product
    sums, last = [0], 0  # of each open group, and of the item that a repeat would copy
    for token in _TOKEN.finditer(pattern):
        match token.lastgroup:
            case "open":
                sums.append(1)
            case "close" if len(sums) > 1:
                last = sums.pop()
                sums[-1] += last
            case "least" | "most":
                more = last * (_times(token["least"], token["most"]) - 1)
                sums[-1] += more
                last += more
            case "space":
                sums[-1] += 1
            case _:
                last = 1
                sums[-1] += 1
        if sums[-1] > MOST_COPIES:
            return sums[-1]
    return sum(sums)


def _times(least: str, most: str | None) -> int:
    # Nine digits exceed the limit, and int() refuses thousands of digits.
    return max(1, *(int(text[:9]) for text in (least, most) if text))
