"""Whether this machine's clock and a site's differ, which makes lengths and ages wrong."""

from lumitui.app.explain.words import length

_TOLERATED = 60.0
"""Seconds that clocks may differ: what is shown has minutes."""


def clock_words(clock: float | None, began: float, ended: float) -> str:
    """Return what to say of a site's `clock`, read between two moments of this machine's; or "".

    Epoch seconds; None: the site did not say.
    """
    if clock is None:
        return ""
    ahead, behind = began - clock, clock - ended
    if max(ahead, behind) <= _TOLERATED:
        return ""
    how = f"{length(ahead)} ahead of" if ahead > behind else f"{length(behind)} behind"
    return (
        f"This machine's clock is {how} the site's, so that lengths and ages shown here are wrong. "
        "Let it follow a time server."
    )
