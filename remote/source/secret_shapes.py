"""Contents that have the shape of a key: a table with sources, and a search that reads in pieces.

Only shapes are in the table that are hard to meet by chance: a prefix of the service and enough
characters after it. Words like `password =` are not, since code is full of them.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LEAKS = "gitleaks, config/gitleaks.toml"
_DETECT = "Yelp/detect-secrets, plugins"


@dataclass(frozen=True)
class Shape:
    """What one kind of key looks like."""

    id: str
    what: str
    """What it is, as the end of a sentence."""
    source: str
    expression: bytes
    """Begins with a plain character; its first group must not be a placeholder."""
    keyword: bytes = b""
    """A rarer part of it, where it begins with a character that files are full of."""


@dataclass(frozen=True)
class Mark:
    """One place in a file that has the shape of a key."""

    shape: str
    """The id of the shape."""
    line: int
    """Counted from 1."""


SHAPES: tuple[Shape, ...] = (
    Shape(
        "private-key",
        "a private key",
        f"{_LEAKS}, private-key; {_DETECT}/private_key.py",
        # The mere header is in many programs that read keys: a line of the key must follow.
        rb"----(?:-| )BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?(?:-| )----"
        rb"[\s\S]{1,600}?[A-Za-z0-9+/=]{32}",
        b"PRIVATE KEY",
    ),
    Shape(
        "aws",
        "an access key of AWS",
        f"{_LEAKS}, aws-access-token",
        rb"A(?:KIA|SIA|BIA|CCA)([A-Z0-9]{16})(?![A-Za-z0-9])",
    ),
    Shape(
        "aws-secret",
        "a secret access key of AWS",
        f"{_DETECT}/aws.py",
        rb"ACCESS_KEY[\"'\]\) \t]*[=:,][\"' \t]*([A-Za-z0-9/+=]{40})(?![A-Za-z0-9/+=])",
    ),
    Shape(
        "aws-secret-setting",
        "a secret access key of AWS",
        f"{_DETECT}/aws.py",
        rb"secret_access_key[\"' \t]*[=:][\"' \t]*([A-Za-z0-9/+=]{40})(?![A-Za-z0-9/+=])",
        b"secret_access_key",
    ),
    Shape(
        "wandb",
        "an API key of Weights & Biases",
        "docs.wandb.ai, wandb login: the key is 40 hexadecimal digits",
        rb"API_KEY[\"'\]\) \t]*[=:,][\"' \t]*((?:local-)?[0-9a-f]{40})(?![0-9a-f])",
    ),
    Shape(
        "wandb-login",
        "an API key of Weights & Biases",
        "docs.wandb.ai, wandb login: the key is 40 hexadecimal digits",
        rb"login\([^)\n]{0,80}[\"']((?:local-)?[0-9a-f]{40})[\"']",
        b"wandb.login(",
    ),
    Shape(
        "google",
        "an API key of Google",
        f"{_LEAKS}, gcp-api-key",
        rb"AIza([A-Za-z0-9_-]{35})(?![A-Za-z0-9_-])",
    ),
    Shape(
        "azure-storage",
        "an account key of Azure",
        f"{_DETECT}/azure_storage_key.py",
        rb"AccountKey=([A-Za-z0-9+/]{86}==)",
    ),
    Shape(
        "github",
        "a token of GitHub",
        f"{_LEAKS}, github-pat and its neighbours; {_DETECT}/github_token.py",
        rb"gh[pousr]_([A-Za-z0-9]{36,})",
    ),
    Shape(
        "github-fine-grained",
        "a token of GitHub",
        f"{_LEAKS}, github-fine-grained-pat",
        rb"github_pat_([A-Za-z0-9_]{60,})",
    ),
    Shape(
        "gitlab",
        "a token of GitLab",
        f"{_LEAKS}, gitlab-pat and its neighbours",
        rb"gl(?:pat|dt|rt|ptt|oas|soat|ft|imt|agent)-([A-Za-z0-9_-]{20,})",
    ),
    Shape(
        "huggingface",
        "a token of Hugging Face",
        f"{_LEAKS}, huggingface-access-token; trufflesecurity/trufflehog, detectors/huggingface",
        rb"hf_([A-Za-z0-9]{30,})",
    ),
    Shape(
        "openai",
        "an API key of OpenAI, Anthropic or a service with the same shape",
        f"{_LEAKS}, openai-api-key and anthropic-api-key; {_DETECT}/openai.py",
        # A digit: class names of web pages have the same characters.
        rb"sk-((?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{32,})",
    ),
    Shape(
        "slack",
        "a token of Slack",
        f"{_LEAKS}, slack-bot-token and its neighbours; {_DETECT}/slack.py",
        rb"xox[abeoprs]-([A-Za-z0-9-]{10,})",
    ),
    Shape(
        "slack-webhook",
        "a webhook of Slack",
        f"{_LEAKS}, slack-webhook-url",
        rb"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{40,60})",
    ),
    Shape(
        "stripe",
        "a key of Stripe",
        f"{_LEAKS}, stripe-access-token; {_DETECT}/stripe.py",
        rb"sk_live_([A-Za-z0-9]{10,})",
    ),
    Shape(
        "vault",
        "a token of HashiCorp Vault",
        f"{_LEAKS}, vault-service-token and vault-batch-token",
        rb"hv[sb]\.([A-Za-z0-9_-]{24,})",
    ),
    Shape(
        "age",
        "a private key of age",
        f"{_LEAKS}, age-secret-key",
        rb"AGE-SECRET-KEY-1([0-9A-Z]{58})",
    ),
    Shape(
        "jwt",
        "a signed token (JWT)",
        f"{_LEAKS}, jwt; {_DETECT}/jwt.py",
        rb"eyJ[A-Za-z0-9_-]{14,}\.eyJ[A-Za-z0-9_-]{14,}\.([A-Za-z0-9_-]{20,})",
        b".eyJ",
    ),
)

_AROUND = 1024
"""Bytes of the last piece that are searched again with the next one: no shape needs more."""
_MOST_MARKS = 5
_BY_ID = {shape.id: shape for shape in SHAPES}


def is_shape(name: str) -> bool:
    """Whether `name` is the id of a shape."""
    return name in _BY_ID


def shape_of(mark: Mark) -> Shape:
    """Return what the mark shows."""
    return _BY_ID[mark.shape]


@dataclass(frozen=True)
class _Group:
    """Shapes that begin with one character: one search finds all of them.

    A search for one character jumps from one to the next. Where any of several may come, the
    same search took ten times as long, and the words of detect-secrets a thousand times.
    """

    keyword: bytes
    anywhere: re.Pattern[bytes]
    shapes: tuple[tuple[re.Pattern[bytes], Shape], ...]

    @staticmethod
    def of(shapes: Sequence[Shape]) -> "_Group":
        first, rest = shapes[0].expression[:1], [shape.expression[1:] for shape in shapes]
        anywhere = re.compile(re.escape(first) + b"(?:" + b"|".join(rest) + b")")
        return _Group(
            shapes[0].keyword,
            anywhere,
            tuple((re.compile(shape.expression), shape) for shape in shapes),
        )

    def places(self, data: bytes) -> Iterator[tuple[int, Shape]]:
        """Yield where the shapes of the group are."""
        for found in self.anywhere.finditer(data):
            at = found.start()
            if _inside_a_word(data, at):
                continue
            for pattern, shape in self.shapes:
                match = pattern.match(data, at)
                if match and not (match.lastindex and _is_placeholder(match[1])):
                    yield at, shape


def _grouped() -> tuple[_Group, ...]:
    groups: dict[bytes, list[Shape]] = {}
    for shape in SHAPES:
        groups.setdefault(shape.keyword or shape.expression[:1], []).append(shape)
    return tuple(map(_Group.of, groups.values()))


_GROUPS = _grouped()
RULES_ID = hashlib.sha256(repr(SHAPES).encode()).hexdigest()[:16]
"""Names this table: what was found with another one is not believed."""


def _inside_a_word(data: bytes, at: int) -> bool:
    """Whether a letter or digit comes before, as in `task-…`."""
    before = data[at - 1 : at]  # the n of a line end in quotes is no letter
    return before.isalnum() and data[max(at - 2, 0) : at] not in (rb"\n", rb"\t", rb"\r")


_EXAMPLE = re.compile(rb"example|your|x{6}|\*{3}|\.{3}|<|dummy|placeholder", re.IGNORECASE)


def _is_placeholder(secret: bytes) -> bool:
    """Whether a person wrote it to show where a key goes: `hf_xxxxxxxx`, `AKIA…EXAMPLE`."""
    return _EXAMPLE.search(secret) is not None or len(set(secret.strip(b"-_."))) <= 2


def marks_in(text: bytes) -> tuple[Mark, ...]:
    """Return where a short text has the shape of a key."""
    search = ShapeSearch()
    search.feed(text)
    return search.marks


class ShapeSearch:
    """Looks for shapes of keys in a file that is read piece by piece."""

    def __init__(self) -> None:
        """Nothing was read yet."""
        self._last = b""  # what was searched last
        self._line = 1
        self._wide = False
        self._found: dict[str, Mark] = {}

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
                    self._found[shape.id] = Mark(shape.id, line)
        self._last = data

    def _beginning(self) -> bytes:
        """Return the end of the last piece; the lines before it are counted."""
        passed = max(len(self._last) - _AROUND, 0)
        self._line += self._last.count(b"\n", 0, passed)
        return self._last[passed:]

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The first place of each shape that was found, in the order of the lines."""
        return tuple(sorted(self._found.values(), key=lambda mark: mark.line))
