"""Numbers and times in a site's answers; nothing that a site prints makes these raise."""


def moment(value: object) -> float | None:
    """Return epoch seconds from digits or a number; None where `value` is no time.

    The latest is in the year 5138: no clock shows a year beyond 9999, and a column of the history
    holds only what is finite.
    """
    if isinstance(value, str):
        value = count(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e11:
        return None
    return float(value)


def count(text: str) -> int | None:
    """Return the number that at most 15 plain digits spell; None for any other text."""
    return int(text) if 0 < len(text) < 16 and text.isascii() and text.isdecimal() else None
