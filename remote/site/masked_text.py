"""A text without the values that look like secrets, for reports, excerpts and diffs."""

import re
from collections.abc import Callable

from lumitui.remote.site.secret_shapes import key_spans

_VALUE = r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"';)]+)"
_NAME = r"(?:key|token|secret|password|passwd)s?"
_SECRETS = (
    re.compile(rf"(?i)(?P<name>\b\w*{_NAME}(?:_\w+)?=){_VALUE}"),
    re.compile(rf"(?i)(?P<name>--[\w-]*{_NAME}(?:=|\s+)){_VALUE}"),
    re.compile(rf"(?P<name>\blogin(?:\s+--?[\w-]+)*\s+(?!nodes?(?:[\s,.;:]|$))){_VALUE}"),
    re.compile(r"(?P<name>\b)(?P<value>(?:hf_|gh[opsu]_|sk-|glpat-)[\w-]{12,}|[0-9a-f]{40})\b"),
)


def masked(text: str, stand_in: Callable[[str], str] = lambda value: "…") -> str:
    """Return a text with `stand_in` in place of each value that looks like a secret."""

    def replaced(match: re.Match[str]) -> str:
        # `$TOKEN`, the next option and a number of tokens are not secrets.
        bare = match["value"].strip("\"'")
        plain = re.match(r"\$|--|[\d_.]{1,18}$", bare)
        return match[0] if plain else f"{match['name']}{stand_in(match['value'])}"

    for pattern in _SECRETS:
        text = pattern.sub(replaced, text)
    data = text.encode("utf-8", "surrogateescape")
    for start, end in reversed(key_spans(data)):
        value = data[start:end].decode("utf-8", "surrogateescape")
        data = data[:start] + stand_in(value).encode() + data[end:]
    return data.decode("utf-8", "surrogateescape")


def starred(text: str) -> str:
    """Return the same with an asterisk for each character, so that columns stay."""
    return masked(text, lambda value: "*" * len(value))
