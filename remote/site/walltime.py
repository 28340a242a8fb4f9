"""Wall-clock limits in Slurm's forms.

sbatch accepts `minutes`, `minutes:seconds`, `hours:minutes:seconds`, `days-hours`,
`days-hours:minutes` and `days-hours:minutes:seconds` (sbatch(1), `--time`).
"""

import re

_FORM = re.compile(r"^(?:(?P<days>\d{1,4})-)?(?P<rest>\d{1,7}(?::\d{1,7}){0,2})$", re.ASCII)
_UNITS = re.compile(
    r"(?:(\d{1,4})d)?(?:(\d{1,6})h)?(?:(\d{1,7})m(?:in)?)?(?:(\d{1,9})s)?", re.ASCII
)
_MOST = 10_000 * 86_400
"""More days than `text_of` could write in a form that can be read again."""


def seconds_of(text: str) -> int:
    """Return the seconds in `text`; ValueError, for a user, if it has none of Slurm's forms."""
    seconds = _seconds(text.strip())
    if seconds is None or seconds >= _MOST:
        raise ValueError(
            f"{text!r} is not a time; write hours:minutes:seconds, like 01:00:00, or days-hours, "
            "like 2-00"
        )
    return seconds


def _seconds(text: str) -> int | None:
    """Return the seconds; None if the text is invalid."""
    match = _FORM.match(text)
    if not match:
        return None
    parts = [int(part) for part in match["rest"].split(":")]
    if match["days"] is not None:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
        return ((int(match["days"]) * 24 + hours) * 60 + minutes) * 60 + seconds
    if len(parts) == 1:
        return parts[0] * 60
    if len(parts) == 2:
        return parts[0] * 60 + parts[1]
    return (parts[0] * 60 + parts[1]) * 60 + parts[2]


def in_slurms_form(text: str) -> str:
    """Return a duration like `10m`, `1h30m` or `2d` in Slurm's form, and any other text unchanged.

    Slurm's own forms have no letters, so that no text has two meanings.
    """
    match = _UNITS.fullmatch(text)
    if match is None or not any(match.groups()):
        return text
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return text_of(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def text_of(seconds: int) -> str:
    """Return `seconds` as `D-HH:MM:SS`, or `HH:MM:SS` below a day."""
    days, rest = divmod(int(seconds), 86400)
    clock = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else clock
