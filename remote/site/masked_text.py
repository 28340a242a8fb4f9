"""A text without the values that look like secrets, for reports, excerpts and diffs."""

import re
from collections.abc import Callable

from lumitui.remote.site.secret_shapes import key_spans

_QUOTED = r"\\?\"[^\"]*\"|\\?'[^']*'"
_VALUE = rf"(?:\w*\((?=[\"']))?(?:[bfru]{{1,2}}(?=[\"']))?(?P<value>{_QUOTED}|[^\s\"';)]+)"
_WORD = rf"(?P<value>{_QUOTED}|[^\s\"']+)"
_MIXED = r"(?=[\"']?[^\s\"']*\d)(?=[\"']?\S{8})"  # a digit, and long enough
_NAME = r"(?:key|token|secret|password|passwd|passphrase)s?"
_PASSWORDS = (r"(?:secret|password|passwd|pwd|passphrase|passcode|credential"
              r"|(?:api|access|secret|private|encryption|account|storage)[-_ ]?key)s?")  # fmt: skip
_AHEAD = r"\b[\w-]{0,60}"  # bounded, as is all before a value: a long line must not take minutes
_LATER = r"\b[^\n]{0,400}?[\s\"']"
_IMAGES = r"(?:docker|podman|apptainer|singularity|nerdctl|helm|oras)"
_IS = r"[\\\"'\])]*\s*(?:=>|[:=])\s*"
_TO = r"[\s\"',=]+"  # between an option and its value, also in a printed list of words
_SECRETS = tuple(map(re.compile, (
    rf"(?i)(?P<name>\b\w{{0,60}}{_NAME}(?:_\w+)?=>?){_VALUE}",
    rf"(?i)(?P<name>(?:--{_AHEAD}(?:{_NAME}|\bpass)|\s-(?:token|password))(?:=|\s+|[\"'],\s*(?=[\"']))){_VALUE}",
    rf"(?P<name>\blogin(?:\s+--?[\w-]+)*\s+(?!(?:node|host|shell|file)s?(?:[\s,.;:]|$))){_VALUE}",
    r"(?P<name>\b)(?P<value>(?:hf_|gh[oprsu]_|github_pat_|sk-|glpat-|dckr_pat_|api_org_)[\w-]{12,}"
    r"|[0-9a-f]{40})\b",
    # As a log writes them: `password: x`, `{"token": "x1"}`, headers and addresses.
    rf"(?i)(?P<name>{_AHEAD}{_PASSWORDS}(?: provided)?{_IS})(?![\"']?/){_VALUE}",
    rf"(?i)(?P<name>{_AHEAD}tokens?{_IS}){_MIXED}{_VALUE}",
    rf"(?i)(?P<name>[\"']{_AHEAD}(?:{_PASSWORDS}|token)[\"'],\s*)(?=[\"']){_MIXED}{_VALUE}",
    rf"(?i)(?P<name><{_AHEAD}(?:{_PASSWORDS}|token)>)(?P<value>[^<]+)(?=</)",
    rf"(?i)(?P<name>\b(?:api[- ]key|token|password)\s+(?:is\s+)?){_MIXED}(?=\S*[a-z])"
    r"(?P<value>[\w+/=~-]{10,})(?![\w.(])",
    rf"(?P<name>\b(?:[A-Z\d_]{{1,60}}_(?:PASS|AUTH)|SSHPASS){_IS}){_VALUE}",
    r"(?i)(?P<name>\bbearer\s+|\bbasic\s+(?-i:(?![A-Z]?[a-z-]+\b(?![\d=+/]))))"
    r"(?P<value>[\w.+/=~-]{8,})",
    rf"(?i)(?P<name>\bauthorization{_IS})(?P<value>{_QUOTED}|(?:digest|aws4\S*)\s[^\n]+)",
    rf"(?i)(?P<name>\bauthorization:\s*(?!bearer|basic)(?:\w+\s+)?){_WORD}",
    rf"(?i)(?P<name>\bcookie{_IS}[\"']?)(?P<value>[^\s=\"']+=[^\n\"']+)",
    r"(?P<name>://[^\s:/@\"']*:)(?!\d{1,5}/)(?P<value>[^\s\"'<>]{1,200})(?=@)",
    r"(?P<name>://)(?P<value>(?=[^\s/@:]*\d)[\w-]{20,200})(?=@)",
    # A channel of conda; a forum's topic has its number after its title.
    r"(?P<name>://[\w.:-]{0,200}/t/)(?P<value>(?=[^\s/]*\d)[\w-]{8,200})(?=/(?!\d+\b)\w|[\s\"',;]|$)",
    rf"(?i)(?P<name>[?&](?:sig|auth|{_AHEAD}(?:signature|credential|token))=)"
    r"(?P<value>[^\s&\"']+)",
    rf"(?i)(?P<name>[\"'](?:auth|key)[\"']:\s*[\"']){_MIXED}(?P<value>[\w+/-]{{16,}}=*)(?=[\"'])",
    r"(?P<name>\bauth[\"']?[=:]\s*(?:\w*\()?[\"'][^\"'\n]*[\"'],\s*"
    r"|\b(?i:identified by|password)\s+)(?P<value>\"[^\"]*\"|'[^']*')",
    r"(?P<name>-----BEGIN [A-Z ]*PRIVATE KEY-----)(?P<value>[\s\S]+?)(?=-----END|\Z)",
    # Options of programs, and files such as ~/.netrc.
    rf"(?P<name>\bcurl{_LATER}(?:-\w*u|--user)[\s\"',=]*[^\s:\"']+:(?!//)){_WORD}",
    rf"(?P<name>\b(?:mysql|mariadb|7z|sshpass)[\w-]*{_LATER}-p(?=[\"']?[^\s\"',])){_WORD}",
    rf"(?P<name>\b(?:sshpass|mongo\w*|{_IMAGES}{_LATER}login){_LATER}-p{_TO}"
    rf"|\bredis-cli{_LATER}-a{_TO}|\b(?:un)?zip{_LATER}-P{_TO}|\bldap\w+{_LATER}-w{_TO}"
    rf"|\bopenssl{_LATER}(?:\bpass:|-k{_TO})|\b(?:requirepass|masterauth|mysqladmin{_LATER}password)\s+"
    rf"|\b(?:setenv|set -\w+|config(?:ure)? set)\s+[\w.-]*(?i:{_NAME})\s+"
    r"|\blogin\s+\S+\s+password\s+|(?:^|\n)[ \t]*password[ \t]+(?=\S*\d\S*[ \t]*(?:\n|$))"
    # What rclone's configuration calls a password.
    r"|(?:^|\n)[ \t]*(?:\w{1,40}_)?pass(?:word2)?[ \t]*=[ \t]*(?=\S{4,400}[ \t]*(?:\n|$)))"
    rf"{_WORD}",
    r"(?P<name>\becho\s+)(?P<value>\S+)(?=\s*\|[^\n]*(?:--password-stdin|--with-token|sudo -S))",
)))  # fmt: skip
_PLAIN = re.compile(r"(?i)\$|--|(?:[\d_.,]{1,18}[kmbt]?|true|false|none|null|yes|no"
                    r"|\[[\w ]*\]|<[\w|/ ]*>|\{[\w.]*\}),?$")  # fmt: skip
"""`$TOKEN`, the next option, a number of tokens, a placeholder: not secrets."""


def masked(text: str, stand_in: Callable[[str], str] = lambda value: "…") -> str:
    """Return a text with `stand_in` in place of each value that looks like a secret."""

    def replaced(match: re.Match[str]) -> str:
        plain = _PLAIN.match(match["value"].strip("\\\"'"))
        before = match.string[match.start() : match.start("value")]
        return match[0] if plain else f"{before}{stand_in(match['value'])}"

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
