"""A text without the values that look like secrets, for reports, excerpts and diffs."""

import re
from collections.abc import Callable

from lumitui.remote.site.secret_shapes import key_spans

_VALUE = r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"';)]+)"
_NAME = r"(?:key|token|secret|password|passwd|passphrase)s?"
_PASSWORDS = r"(?:secret|password|passwd|pwd|passphrase|credential|api[-_]?key)s?"
_IS = r"[\"'\])]*\s*(?:=>|[:=])\s*"
_SECRETS = (
    re.compile(rf"(?i)(?P<name>\b\w*{_NAME}(?:_\w+)?=){_VALUE}"),
    re.compile(rf"(?i)(?P<name>--[\w-]*{_NAME}(?:=|\s+)){_VALUE}"),
    re.compile(rf"(?P<name>\blogin(?:\s+--?[\w-]+)*\s+(?!nodes?(?:[\s,.;:]|$))){_VALUE}"),
    re.compile(r"(?P<name>\b)(?P<value>(?:hf_|gh[opsu]_|sk-|glpat-|dckr_pat_|api_org_)[\w-]{12,}"
               r"|[0-9a-f]{40})\b"),
    # As a log writes them: `password: x`, `{"token": "x1"}`, headers and addresses.
    re.compile(rf"(?i)(?P<name>\b[\w-]*{_PASSWORDS}{_IS})(?![\"']?/){_VALUE}"),
    re.compile(rf"(?i)(?P<name>\b[\w-]*tokens?{_IS})(?=[\"']?[^\s\"']*\d)(?=[\"']?\S{{8}}){_VALUE}"),
    re.compile(r"(?i)(?P<name>\b(?:bearer|basic)\s+)(?P<value>[\w.+/=~-]{8,})"),
    re.compile(r"(?i)(?P<name>\bauthorization:\s*(?!bearer|basic)(?:\w+\s+)?)(?P<value>\S+)"),
    re.compile(r"(?i)(?P<name>\bcookie:\s*)(?P<value>[^\n]+)"),
    re.compile(r"(?P<name>://[^\s:/@\"']*:)(?P<value>[^\s/@\"']+)(?=@)"),
    re.compile(r"(?i)(?P<name>[?&](?:sig|[\w-]*(?:signature|credential|token))=)"
               r"(?P<value>[^\s&\"']+)"),
    re.compile(r"(?P<name>\bsshpass\s+-p\s*|\bcurl\b[^\n]*?\s(?:-u|--user)\s+[^\s:]+:)"
               r"(?P<value>\S+)"),
)  # fmt: skip


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
