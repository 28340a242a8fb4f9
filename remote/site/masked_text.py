"""A text without the values that look like secrets, for reports, excerpts and diffs."""

import re
from collections.abc import Callable

from lumitui.remote.site.secret_shapes import key_spans

_QUOTED = r"\\?\"[^\"]*\"|\\?'[^']*'"
_VALUE = rf"(?:\w{{0,60}}\((?=[\"']))?(?:[bfru]{{1,2}}(?=[\"']))?(?P<value>{_QUOTED}|[^\s\"';)]+)"
_WORD = rf"(?P<value>{_QUOTED}|[^\s\"']+)"
_MIXED = r"(?=[\"']?[^\s\"']{0,200}?\d)(?=[\"']?\S{8})"  # a digit, and long enough
_KEYED = (r"(?:(?=[\w-]{0,200}[A-Z])(?=[\w-]{0,200}[a-z])(?=[\w-]{0,200}\d)[\w+/-]{8,}=*"
          r"|[\da-f]{32,}(?!\w))")  # fmt: skip
"""What an unqualified `key` must have: a sort key, a dictionary's or a random number's has not."""
_PASSWORDS = (r"(?:secret|password|passwd|pwd|passphrase|passcode|credential|(?:api|access|secret"
              r"|private|encryption|account|storage|auth|master|signing|deploy|license"
              r"|wandb|comet|openai|hf)[-_ ]?key)s?\d?")  # fmt: skip
_LOGIN = r"login(?:[\s\"',]+--?[\w-]+(?:=[^\s\"',]{0,200}+)?){0,6}[\s\"',]+"
_NAME = rf"(?!pwd)(?:token|{_PASSWORDS})"
_AHEAD = r"\b[\w-]{0,60}"  # bounded, as is all before a value: a long line must not take seconds
_IMAGES = "docker|podman|apptainer|singularity|nerdctl|helm|oras"
_IS = r"[\\\"'\])]*\s*(?:=>|[:=])[\s\\]*"  # a shell writes `Authorization:\ Bearer\ x`
_TO = r"[\s\"',=]+"  # between an option and its value, also in a printed list of words


def _after(programs: str) -> str:
    """Return the pattern of a program and what follows it, up to the program's next name."""
    return rf"\b(?:{programs})[\w-]{{0,20}}(?:(?!\b(?:{programs}))[^\n]){{0,400}}?[\s\"']"


_HARMLESS = re.compile(
    r"(?i)(?<![a-z\d])(?:(?:bos|class|cls|end|eos|image|label|mask|next|pad|pool|sep|special|start"
    r"|stop|text|unk)[-_]?tokens?(?:[-_]ids?)?|(?:cache|caption|column|dataset|feature|field|group"
    r"|image|index|input|label|loss|metric|output|partition|primary|prompt|response|sort|target"
    r"|text)[-_]?keys?|(?:max|min|new|num|total|train)[-_]tokens|\w{1,40}[-_](?:dir|file|path)"
    r")\W{0,10}$"
)
"""The end of a name that has `token` or `key` in it but is a model's, a table's or a file's."""
_RANDOM = re.compile(_KEYED)
_SECRETS = tuple((needles.split(), re.compile(pattern)) for needles, pattern in (
    ("token pass pwd key secret credential",
     rf"(?i)(?P<name>{_NAME}(?:_\w{{1,60}})?=>?){_VALUE}"),
    ("key", rf"(?P<name>(?:\b[A-Z\d_]{{0,60}}KEYS?=|(?i:(?:keys?="
     rf"|(?<![\w-])--{_AHEAD}keys?(?:=|\s+)|[\"']key[\"']:\s*))(?=[\"']?{_KEYED}))){_VALUE}"),
    ("token pass pwd key secret credential",
     rf"(?i)(?P<name>(?:(?<![\w-])--[\w-]{{0,60}}?(?:{_NAME}|\bpass)|\s-(?:token|password))"
     rf"(?:=|\s+|[\"'],\s*(?=[\"']))){_VALUE}"),
    ("login", rf"(?P<name>\bwandb[\s\"',]+{_LOGIN}(?=[\w-]{{12}})|\b{_LOGIN}(?=\S{{0,200}}\d)"
     r"(?=[\w-]{20}))(?P<value>[\w-]+)"),
    ("wandb key", r"(?i)(?P<name>\b(?:wandb|api[-_ ]?key)\b(?:(?!\b(?:wandb|api)\b|commit)[^\n])"
     r"{0,120}?(?<![\w/@=-]))(?P<value>(?-i:[\da-f]{40}))(?![\w/])"),
    ("hf_ gh github_pat_ sk- glpat- dckr_pat_ api_org_", r"(?P<name>\b)"
     r"(?P<value>(?:hf_|gh[oprsu]_|github_pat_|sk-|glpat-|dckr_pat_|api_org_)[\w-]{12,})\b"),
    # As a log writes them: `password: x`, `{"token": "x1"}`, headers and addresses.
    ("pass pwd key secret credential",
     rf"(?i)(?P<name>{_PASSWORDS}(?: provided)?{_IS})(?![\"']?/){_VALUE}"),
    ("token", rf"(?i)(?P<name>tokens?{_IS}){_MIXED}{_VALUE}"),
    ("pass pwd key secret credential token",
     rf"(?i)(?P<name>(?:{_PASSWORDS}|token)[\"'],\s*)(?=[\"']){_MIXED}{_VALUE}"),
    ("</", rf"(?i)(?P<name>(?:{_PASSWORDS}|token)>)(?P<value>[^<]{{1,400}})(?=</)"),
    ("key token password", rf"(?i)(?P<name>\b(?:api[- ]key|token|password)\s+(?:is\s+)?){_MIXED}"
     r"(?=\S{0,200}?[a-z])(?P<value>[\w+/=~-]{10,})(?![\w.(])"),
    ("pass auth", rf"(?P<name>(?:[A-Z\d]_(?:PASS|AUTH)|SSHPASS){_IS}){_VALUE}"),
    ("bearer basic",
     r"(?i)(?P<name>\bbearer[\s\\]+|\bbasic[\s\\]+(?-i:(?![A-Z]?[a-z-]+\b(?![\d=+/]))))"
     r"(?P<value>[\w.+/=~-]{8,})"),
    ("authorization",
     rf"(?i)(?P<name>\bauthorization{_IS})(?P<value>{_QUOTED}|(?:digest|aws4\S*)\s[^\n]+)"),
    ("authorization", r"(?i)(?P<name>\bauthorization:[\s\\]*+(?!bearer|basic)(?:\w+[\s\\]++)?)"
     rf"{_WORD}"),
    ("cookie", rf"(?i)(?P<name>\bcookie{_IS}[\"']?)(?P<value>[^\s=\"']{{1,200}}=[^\n\"']+)"),
    ("://", r"(?P<name>://[^\s:/@\"']*:)(?!\d{1,5}/)"
     r"(?P<value>(?:(?!://)[^\s\"'<>]){1,200})(?=@)"),
    ("://", r"(?P<name>://)(?P<value>(?=[^\s/@:]*\d)[\w-]{20,200})(?=@)"),
    # A channel of conda; a forum's topic has its number after its title.
    ("/t/", r"(?P<name>://[\w.:-]{0,200}/t/)"
     r"(?P<value>(?=[^\s/]*\d)[\w-]{8,200})(?=/(?!\d+\b)\w|[\s\"',;]|$)"),
    ("?sig &sig ?auth &auth signature= credential= token=",
     rf"(?i)(?P<name>[?&](?:sig|auth|{_AHEAD}(?:signature|credential|token))=)"
     r"(?P<value>[^\s&\"']+)"),
    ("auth", rf"(?i)(?P<name>[\"']auth[\"']:\s*[\"']){_MIXED}(?P<value>[\w+/-]{{16,}}=*)(?=[\"'])"),
    ("auth password identified",
     r"(?P<name>\bauth[\"']?[=:]\s*(?:\w*\()?[\"'][^\"'\n]*[\"'],\s*"
     r"|\b(?i:identified by|password)\s+)(?P<value>\"[^\"]*\"|'[^']*')"),
    ("private", r"(?P<name>-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)"
     r"(?P<value>[\s\S]+?)(?=-----END|\Z)"),
    # Options of programs, and files such as ~/.netrc.
    ("curl lftp", rf"(?P<name>{_after('curl|lftp')}(?:-\w{{0,20}}u|--user)[\s\"',=]*[^\s:,\"']+[:,]"
     rf"(?!//)){_WORD}"),
    ("mysql mariadb 7z sshpass",
     rf"(?P<name>{_after('mysql|mariadb|7z|sshpass')}-p(?=[\"']?[^\s\"',])){_WORD}"),
    ("sshpass mongo redis-cli zip ldap openssl mysqladmin anaconda",
     rf"(?P<name>{_after('sshpass|mongo')}-p{_TO}|{_after('redis-cli')}-a{_TO}"
     rf"|{_after('zip|unzip')}-P{_TO}|{_after('ldap')}-w{_TO}"
     rf"|{_after('openssl')}(?:\bpass:|-k{_TO})|{_after('mysqladmin')}password\s+"
     rf"|{_after('anaconda')}-t{_TO}){_WORD}"),
    ("smb rpcclient", rf"(?P<name>{_after('smbclient|smbget|rpcclient')}(?:-U|--user)[\s\"',=]*"
     rf"[^\s%\"']{{1,200}}%){_WORD}"),
    *(("ssh-keygen", rf"(?P<name>{_after('ssh-keygen')}-{option}(?:[\"'],)?+\s*+(?![\"']{{2}}))"
       rf"{_WORD}") for option in "NP"),
    ("login", rf"(?P<name>{_after(_IMAGES)}login\b[^\n]{{0,400}}?[\s\"']-p{_TO}){_WORD}"),
    ("requirepass masterauth setenv set login",
     r"(?P<name>\b(?:requirepass|masterauth)\s+|\blogin\s+\S+\s+password\s+"
     rf"|\b(?:setenv|set -\w+|config(?:ure)? set)\s+[\w.-]{{0,60}}?(?i:{_NAME}|key)\s+){_WORD}"),
    # What rclone's configuration and its remotes on a command line call a password.
    ("pass", r"(?P<name>(?m:^[ \t]*+(?:password[ \t]+(?=\S*\d)(?=\S+[ \t]*+$)"
     r"|(?:\w{1,40}_)?pass(?:word2)?[ \t]*=[ \t]*(?=\S{4,400}[ \t]*+$)))"
     rf"|:\w{{1,40}},(?:(?!:\w{{1,40}},)[^\s:]){{0,400}}?\bpass=){_WORD}"),
    ("echo", r"(?P<name>\becho\s+)(?P<value>\S+)"
     r"(?=\s*\|(?:(?!\becho\s)[^\n]){0,400}?(?:--password-stdin|--with-token|sudo -S))"),
))  # fmt: skip
"""Each pattern, with words in lower case of which a text must contain one."""
_PLAIN = re.compile(r"(?i)[$▁Ġ]|--|[\w.]*(?:\[(?!\S{16})|\((?![\"']))|lambda\b"
                    r"|(?:[\d_.,]{1,18}[kmbt]?(?:/[\d_.,]{1,18}[kmbt]?)?|true|false|none|null|yes|no"
                    r"|\[[\w ]*\]|<[\w|/ ]*>|\{[\w.]*\}),?$")  # fmt: skip
"""`$TOKEN`, the next option, a call, a number of tokens, a placeholder: not secrets."""


def masked(text: str, stand_in: Callable[[str], str] = lambda value: "…") -> str:
    """Return a text with `stand_in` in place of each value that looks like a secret."""

    def replaced(match: re.Match[str]) -> str:
        value, start = match["value"].strip("\\\"'"), match.start("value")
        plain = _PLAIN.match(value) or (
            is_harmless(match.string[max(start - 80, 0) : start]) and not _RANDOM.match(value)
        )
        before = match.string[match.start() : start]
        return match[0] if plain else f"{before}{stand_in(match['value'])}"

    for needles, pattern in _SECRETS:
        low = text.lower()
        if any(needle in low for needle in needles):
            text = pattern.sub(replaced, text)
    data = text.encode("utf-8", "surrogateescape")
    pieces, last = [], 0
    for start, end in key_spans(data):
        value = data[start:end].decode("utf-8", "surrogateescape")
        pieces += [data[last:start], stand_in(value).encode()]
        last = end
    return b"".join([*pieces, data[last:]]).decode("utf-8", "surrogateescape")


def is_harmless(name: str) -> bool:
    """Return whether a name like SORT_KEY only sounds like a secret's."""
    return _HARMLESS.search(name) is not None


def starred(text: str) -> str:
    """Return the same with an asterisk for each character, so that columns stay."""
    return masked(text, lambda value: "*" * len(value))
