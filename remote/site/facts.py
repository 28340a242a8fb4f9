"""Basis of all parts of a profile: frozen models, and checked text."""

import re
import string
from datetime import date
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from lumitui.remote.site import walltime
from lumitui.remote.site.core_sets import parse_cores


def _time(text: str) -> str:
    walltime.seconds_of(text)
    return text


def _core_list(value: object) -> object:
    # A single core reads as a number; everything else is text.
    text = str(value) if type(value) is int else value
    if isinstance(text, str):
        parse_cores(text)
    return text


def _is_pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{text[:60]!r} is not a regular expression: {error}") from error
    return text


def fills(*names: str) -> AfterValidator:
    """Return the check that braces contain only `names`."""

    def check(text: str) -> str:
        listed = ", ".join(f"{{{name}}}" for name in names)
        try:
            parts = list(string.Formatter().parse(text))
        except ValueError as error:
            raise ValueError(
                f"its braces are invalid: {error}; the valid fields are {listed}"
            ) from error
        for _, field, form, conversion in parts:
            if field is not None and (field not in names or form or conversion):
                raise ValueError(f"{{{field}}} is not a field; the valid fields are {listed}")
        return text

    return AfterValidator(check)


def _formed(pattern: str, words: str) -> AfterValidator:
    """Return the check that a text has the form `pattern`; `words` end the error."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{text!r} {words}")
        return text

    return AfterValidator(check)


def _day(text: str) -> str:
    try:
        date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a date like 2026-07-31") from error
    return text


Day = Annotated[str, AfterValidator(_day)]
"""A date as text, `YYYY-MM-DD`."""
OneWord = Annotated[str, _formed(r"[A-Za-z0-9_][\w.,+-]*", "must be one word, without spaces")]
"""A name that Slurm knows, like that of a partition."""
Variable = Annotated[str, _formed(
    r"[A-Za-z_][A-Za-z0-9_]*", "is not the name of a variable, like LOCAL_SCRATCH"
)]  # fmt: skip
"""The name of a variable of the shell, without its `$`."""
WholePath = Annotated[str, _formed(r"(?s)/.*[^/].*", "must be a full path, starting with /")]
"""A path from /: `~` would not be expanded, but become a folder of that name."""
NodePath = Annotated[str, _formed(
    r"(?s)[/$].*", "must be a full path, starting with / or a variable like $TMPDIR"
)]  # fmt: skip
"""A path from / or from a variable, which the job expands."""
WorkPath = Annotated[str, _formed(
    r"(?s)\{home\}(?:/.*)?|/.*[^/].*", "must be a full path, starting with / or {home}/"
), fills("account", "user", "home")]  # fmt: skip
"""A path from / or `{home}`, with placeholders."""
Pattern = Annotated[str, AfterValidator(_is_pattern)]
"""A regular expression."""
Time = Annotated[str, AfterValidator(_time)]
"""A wall-clock limit in one of Slurm's forms, as text."""
Cores = Annotated[str, BeforeValidator(_core_list)]
"""Core numbers as a list of ranges, like `1-7,9`."""


Count = Annotated[int, Field(ge=1, le=100_000)]
"""How many there are of something that a site has, or of GiB: at least one."""
Rate = Annotated[float, Field(ge=0, le=1e6)]
"""The price of an hour."""
Share = Annotated[float, Field(ge=0.001, le=1e6)]
"""How much of something a slice has."""


class Facts(BaseModel):
    """The base of every part of a profile: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
