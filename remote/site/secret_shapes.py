"""The shapes of keys, a table with sources, and a search for them that reads in pieces.

Only shapes are in it that are hard to meet by chance: a prefix of the service and enough characters
after it. Words like `password =` count only in files of settings, since code is full of them.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LEAKS = "gitleaks, config/gitleaks.toml"
_DETECT = "Yelp/detect-secrets, plugins"
_HOG = "trufflesecurity/trufflehog, detectors"

_DATABASES = (
    b"postgres", b"postgresql", b"psycopg", b"psycopg2", b"asyncpg", b"mysql", b"mariadb",
    b"pymysql", b"aiomysql", b"mysqldb", b"mysqlconnector", b"mongodb", rb"mongodb\+srv", b"redis",
    b"rediss", b"amqp", b"amqps", b"mssql", b"pyodbc", b"pymssql", b"clickhouse", b"cockroachdb",
)  # fmt: skip
_WORDS_FOR_PASSWORDS = (
    rb"(?i:my|the|a|some|db)?[-_]?(?i:pass|password|passwd|pwd|secret|secretpassword|changeme|user"
    rb"|username|root|admin|postgres|mysql|guest|test|testing|default)"
)
"""Placeholders for a password in documentation."""

# What follows `TOKEN=`: no variable, path or sentence, and both letters and digits.
_MIXED = rb"(?![/.~])(?=[^\s\"']{0,200}?[0-9])(?=[^\s\"']{0,200}?[A-Za-z])"
_LONG = _MIXED + rb"([A-Za-z0-9+/=_.~-]{16,200})"
# Tokenizers have words like special_token_250: here nothing may join words.
_UNJOINED = _MIXED + rb"([A-Za-z0-9+/=]{20,200})"
_PASSWORD = _MIXED + rb"([^\s\"'$<>{}()\[\]`,;\\|]{10,200})"
_END = rb"(?![^\s\"',;}\]])"
_SETTINGS = (
    ("API_KEY", _LONG),
    ("api_key", _LONG),
    ("TOKEN", _LONG),
    ("token", _UNJOINED),
    ("PASSWORD", _PASSWORD),
    ("password", _PASSWORD),
)


@dataclass(frozen=True)
class KeyShape:
    """The pattern of one kind of key."""

    id: str
    what: str
    """Its name, as the end of a sentence."""
    source: str
    expression: bytes
    """Begins with a plain character; its first group must not be a placeholder."""
    keyword: bytes = b""
    """A rarer part of it, for shapes that begin with a character common in files."""
    within: bool = False
    """Whether a letter or digit may come before it."""
    settings_only: bool = False
    """Whether it counts only in files of settings."""


SHAPES: tuple[KeyShape, ...] = (
    KeyShape("private-key", "a private key", f"{_LEAKS}, private-key; {_DETECT}/private_key.py",
          # The mere header is in many programs that read keys: a line of the key must follow.
          rb"----(?:-| )BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?(?:-| )----"
          rb"(?:(?!-BEGIN )[\s\S]){1,600}?[A-Za-z0-9+/=]{32}", b"PRIVATE KEY"),
    KeyShape("aws", "an AWS access key", f"{_LEAKS}, aws-access-token",
          rb"A(?:KIA|SIA|BIA|CCA)([A-Z0-9]{16})(?![A-Za-z0-9])"),
    KeyShape("aws-secret", "an AWS secret access key", f"{_DETECT}/aws.py",
          rb"ACCESS_KEY[\"'\]\) \t]*[=:,][\"' \t]*([A-Za-z0-9/+=]{40})(?![A-Za-z0-9/+=])"),
    KeyShape("aws-secret-setting", "an AWS secret access key", f"{_DETECT}/aws.py",
          rb"secret_access_key[\"' \t]*[=:][\"' \t]*([A-Za-z0-9/+=]{40})(?![A-Za-z0-9/+=])",
          b"secret_access_key"),
    KeyShape("wandb", "a Weights & Biases API key",
          "docs.wandb.ai, wandb login: the key is 40 hexadecimal digits",
          rb"API_KEY[\"'\]\) \t]*[=:,][\"' \t]*((?:local-)?[0-9a-f]{40})(?![0-9a-f])"),
    KeyShape("wandb-login", "a Weights & Biases API key",
          "docs.wandb.ai, wandb login: the key is 40 hexadecimal digits",
          rb"login\([^)\n]{0,80}[\"']((?:local-)?[0-9a-f]{40})[\"']", b"wandb.login("),
    KeyShape("google", "a Google API key", f"{_LEAKS}, gcp-api-key",
          rb"AIza([A-Za-z0-9_-]{35})(?![A-Za-z0-9_-])"),
    KeyShape("google-access", "a Google access token", f"{_HOG}/googleoauth2",
          rb"ya29\.([A-Za-z0-9_-]{20,})", b"ya29."),
    KeyShape("azure-storage", "an Azure account key", f"{_DETECT}/azure_storage_key.py",
          rb"AccountKey=([A-Za-z0-9+/]{86}==)"),
    KeyShape("github", "a GitHub token",
          f"{_LEAKS}, github-pat and its neighbours; {_DETECT}/github_token.py",
          rb"gh[pousr]_([A-Za-z0-9]{36,})"),
    KeyShape("github-fine-grained", "a GitHub token", f"{_LEAKS}, github-fine-grained-pat",
          rb"github_pat_([A-Za-z0-9_]{60,})"),
    KeyShape("gitlab", "a GitLab token", f"{_LEAKS}, gitlab-pat and its neighbours",
          rb"gl(?:pat|dt|rt|ptt|oas|soat|ft|imt|agent)-([A-Za-z0-9_-]{20,})"),
    KeyShape("huggingface", "a Hugging Face token",
          f"{_LEAKS}, huggingface-access-token; trufflesecurity/trufflehog, detectors/huggingface",
          rb"hf_([A-Za-z0-9]{30,})"),
    KeyShape("openai", "an API key (OpenAI, Anthropic or similar)",
          f"{_LEAKS}, openai-api-key and anthropic-api-key; {_DETECT}/openai.py",
          # A digit: class names of web pages have the same characters.
          rb"sk-((?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{32,})"),
    KeyShape("slack", "a Slack token",
          f"{_LEAKS}, slack-bot-token and its neighbours; {_DETECT}/slack.py",
          rb"xox[abeoprs]-([A-Za-z0-9-]{10,})"),
    KeyShape("slack-webhook", "a Slack webhook", f"{_LEAKS}, slack-webhook-url",
          rb"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{40,60})"),
    KeyShape("stripe", "a Stripe key", f"{_LEAKS}, stripe-access-token; {_DETECT}/stripe.py",
          rb"sk_live_([A-Za-z0-9]{10,})"),
    KeyShape("vault", "a HashiCorp Vault token",
          f"{_LEAKS}, vault-service-token and vault-batch-token",
          rb"hv[sb]\.([A-Za-z0-9_-]{24,})"),
    KeyShape("age", "an age private key", f"{_LEAKS}, age-secret-key",
          rb"AGE-SECRET-KEY-1([0-9A-Z]{58})"),
    KeyShape("jwt", "a signed token (JWT)", f"{_LEAKS}, jwt; {_DETECT}/jwt.py",
          rb"eyJ(?<=[A-Za-z0-9_-]{17}\.eyJ)[A-Za-z0-9_-]{14,}\.([A-Za-z0-9_-]{20,})", b".eyJ"),
    KeyShape("aws-secret-answer", "an AWS secret access key",
          "AWS CLI manual, sts get-session-token",
          rb"ecretAccessKey[\"' \t]*[=:][\"' \t]*([A-Za-z0-9/+=]{40})(?![A-Za-z0-9/+=])",
          b"ecretAccessKey", within=True),
    KeyShape("npm", "an npm token", f"{_LEAKS}, npm-access-token",
          rb"npm_([A-Za-z0-9]{36})(?![A-Za-z0-9])", b"npm_"),
    KeyShape("pypi", "a PyPI token", f"{_LEAKS}, pypi-upload-token",
          rb"pypi-Ag(?:EIcHlwaS5vcmc|ENdGVzdC5weXBpLm9yZw)([A-Za-z0-9_-]{50,})", b"pypi-Ag"),
    KeyShape("sendgrid", "a SendGrid API key", f"{_LEAKS}, sendgrid-api-token",
          rb"SG\.([A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50})(?![A-Za-z0-9_-])", b"SG."),
    KeyShape("groq", "a Groq API key", f"{_HOG}/groq", rb"gsk_([A-Za-z0-9]{48,})", b"gsk_"),
    KeyShape("replicate", "a Replicate token", f"{_HOG}/replicate",
          rb"r8_([A-Za-z0-9_-]{37})(?![A-Za-z0-9_-])", b"r8_"),
    KeyShape("digitalocean", "a DigitalOcean token",
          f"{_LEAKS}, digitalocean-pat and its neighbours",
          rb"do[opr]_v1_([a-f0-9]{64})(?![a-f0-9])", b"_v1_"),
    KeyShape("databricks", "a Databricks token", f"{_LEAKS}, databricks-api-token",
          rb"dapi([a-f0-9]{32})(?:-[0-9])?(?![A-Za-z0-9])", b"dapi"),
    KeyShape("discord-webhook", "a Discord webhook", f"{_HOG}/discordwebhook",
          rb"discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/[0-9]{17,20}/([A-Za-z0-9_-]{60,})",
          b"/webhooks/"),
    KeyShape("telegram", "a Telegram bot token", f"{_LEAKS}, telegram-bot-api-token",
          rb":(?<=[0-9]{8}:)(A[A-Za-z0-9_-]{34})(?![A-Za-z0-9_-])", b":A", within=True),
    KeyShape("database-address", "a database address with its password",
          f"{_HOG}/postgres, mongodb, redis; {_DETECT}/basic_auth.py",
          b":(?:" + b"|".join(b"(?<=" + word + b":)" for word in _DATABASES) + b")//"
          rb"[^\s:/@'\"$<>{}\[\]]{0,80}:(?!" + _WORDS_FOR_PASSWORDS + rb"@)"
          rb"((?:%[0-9A-Fa-f]{2}|[^\s:/@'\"$<>{}()\[\]*%\\]){6,200})@[A-Za-z0-9\[]", b"://",
          within=True),
    KeyShape("wandb-v1", "a Weights & Biases API key",
          "docs.wandb.ai, API keys: newer ones begin with wandb_v1_",
          rb"wandb_v1_([A-Za-z0-9_-]{30,})", b"wandb_v1_"),
    KeyShape("wandb-api-key", "an API key (Weights & Biases or similar)",
          "docs.wandb.ai, wandb login: the key is 40 hexadecimal digits",
          rb"api_key[\"'\]\) \t]*[=:,][\"' \t]*((?:local-)?[0-9a-f]{40})(?![0-9a-f])", b"api_key"),
    *(
        KeyShape(
            f"wandb-near-{word}",
            "a Weights & Biases API key",
            "docs.wandb.ai, wandb login: the key is 40 hexadecimal digits",
            word.encode() + rb"(?:(?!" + word.encode() + rb")[\s\S]){0,200}?"
            rb"(?i:key|token|secret|password)"
            rb"[\"'\]\)]{0,2}[=:, \t][\"'=:, \t]{0,8}((?:local-)?[0-9a-f]{40})(?![0-9a-f])",
            word.encode(),
        )
        for word in ("wandb", "WANDB", "Wandb")
    ),
    *(
        KeyShape(
            f"setting-{word}",
            f"a value of {word}",
            f"{_LEAKS}, generic-api-key; {_DETECT}/keyword.py",
            word.encode() + rb"[\"']?[ \t]{0,20}[=:][ \t]{0,20}[\"']?" + value + _END,
            word.encode(),
            settings_only=True,
        )
        for word, value in _SETTINGS
    ),
)  # fmt: skip


@dataclass(frozen=True)
class KeyMark:
    """One place in a file that has the shape of a key."""

    shape: str
    """The id of the shape."""
    line: int
    """Counted from 1."""


_AROUND = 1024
"""Bytes of the last piece that are searched again with the next one: no shape needs more."""
_MOST_MARKS = 5
_BY_ID = {shape.id: shape for shape in SHAPES}


def is_shape(name: str) -> bool:
    """Whether `name` is the id of a shape."""
    return name in _BY_ID


def shape_of(mark: KeyMark) -> KeyShape:
    """Return the shape for a mark."""
    return _BY_ID[mark.shape]


@dataclass(frozen=True)
class _Group:
    """Shapes that begin with one character: one search finds all of them.

    A search for one character jumps from one to the next. Where any of several may come, the
    same search took ten times as long, and the words of detect-secrets a thousand times.
    """

    keyword: bytes
    anywhere: re.Pattern[bytes]
    shapes: tuple[tuple[re.Pattern[bytes], KeyShape], ...]

    @staticmethod
    def of(shapes: Sequence[KeyShape]) -> "_Group":
        first, rest = shapes[0].expression[:1], [shape.expression[1:] for shape in shapes]
        anywhere = re.compile(re.escape(first) + b"(?:" + b"|".join(rest) + b")")
        return _Group(
            shapes[0].keyword,
            anywhere,
            tuple((re.compile(shape.expression), shape) for shape in shapes),
        )

    def places(self, data: bytes) -> Iterator[tuple[int, KeyShape]]:
        """Yield where the shapes of the group are."""
        for place in self.anywhere.finditer(data):
            at = place.start()
            before = data[at - 1 : at]  # the n of a newline in quotes is not a letter
            inside = before.isalnum() and data[max(at - 2, 0) : at] not in (rb"\n", rb"\t", rb"\r")
            for pattern, shape in self.shapes:
                if inside and not shape.within:
                    continue
                match = pattern.match(data, at)
                if match and not (match.lastindex and _is_placeholder(match[1])):
                    yield at, shape


def _grouped() -> tuple[_Group, ...]:
    groups: dict[bytes, list[KeyShape]] = {}
    for shape in SHAPES:
        groups.setdefault(shape.keyword or shape.expression[:1], []).append(shape)
    return tuple(map(_Group.of, groups.values()))


_GROUPS = _grouped()
RULES_ID = hashlib.sha256(repr(SHAPES).encode()).hexdigest()[:16]
"""Version of this table: results of a different one are ignored."""


_EXAMPLE = re.compile(rb"example|your|x{6}|\*{3}|\.{3}|<|dummy|placeholder", re.IGNORECASE)


def _is_placeholder(secret: bytes) -> bool:
    """Whether a user wrote it to show where a key goes: `hf_xxxxxxxx`, `AKIA…EXAMPLE`."""
    return _EXAMPLE.search(secret) is not None or len(set(secret.strip(b"-_."))) <= 2


def marks_in(text: bytes) -> tuple[KeyMark, ...]:
    """Return where a short text, which is not a file of settings, has the shape of a key."""
    search = ShapeSearch()
    search.feed(text)
    return tuple(mark for mark in search.marks if not shape_of(mark).settings_only)


def key_spans(text: bytes) -> list[tuple[int, int]]:
    """Return where the keys are in a text, in order and without overlaps."""
    spans: list[tuple[int, int]] = []
    for group in _GROUPS:
        for at, shape in group.places(text) if group.keyword in text else ():
            match = re.compile(shape.expression).match(text, at)
            if match and not shape.settings_only:
                spans.append(match.span(1) if match.lastindex else match.span())
    apart: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if not apart or start >= apart[-1][1]:
            apart.append((start, end))
    return apart


class ShapeSearch:
    """Searches for key patterns in a file read piece by piece."""

    def __init__(self) -> None:
        """Nothing was read yet."""
        self._last = b""  # what was searched last
        self._line = 1
        self._wide = False
        self._found: dict[str, KeyMark] = {}

    def feed(self, piece: bytes) -> None:
        """Search the next piece."""
        if not self._last and piece[:2] in (b"\xff\xfe", b"\xfe\xff"):
            self._wide = True
        if self._wide:  # UTF-16, as Windows writes it: keys are ASCII, so half of it is zeros
            piece = piece.replace(b"\0", b"")
        data = self._beginning() + piece
        for group in _GROUPS:
            if group.keyword and group.keyword not in data:
                continue
            for at, shape in group.places(data):
                if shape.id not in self._found and len(self._found) < _MOST_MARKS:
                    line = self._line + data.count(b"\n", 0, at)
                    self._found[shape.id] = KeyMark(shape.id, line)
        self._last = data

    def _beginning(self) -> bytes:
        """Return the end of the last piece; the lines before it are counted."""
        passed = max(len(self._last) - _AROUND, 0)
        self._line += self._last.count(b"\n", 0, passed)
        return self._last[passed:]

    @property
    def marks(self) -> tuple[KeyMark, ...]:
        """The first place of each shape that was found, in the order of the lines."""
        return tuple(sorted(self._found.values(), key=lambda mark: mark.line))
