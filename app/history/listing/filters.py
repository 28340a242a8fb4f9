"""The language of filters: `failed`, `state:!done site:lumi nodes>=4 !vit age<2d #best`.

A run passes if all terms match. A word is searched in id, name, job id, note, cause and state;
`2x8` also in the column Size, `--epochs` also in the arguments. `!` negates a term, commas separate
alternatives, and quotes make any text a word, blanks included. The SQL conditions use the list's
index where possible.
"""

import math
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from lumitui.app.history.listing.state_filter import (
    STATE_GROUPS,
    WENT_WRONG,
    states_like,
    states_named,
)
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.states import State

_LONGEST = 1000
"""Maximum characters of a filter; SQLite refuses patterns of 50,000 bytes, and 1,000 terms."""


class FilterError(InputError):
    """An invalid filter, with its position."""

    def __init__(self, message: str, hint: str, begin: int, end: int) -> None:
        """Mark the characters from `begin` to `end` as invalid."""
        super().__init__(message, hint)
        self.begin = begin
        self.end = end


@dataclass(frozen=True)
class WordTerm:
    """Text in id, name, job id, note, cause or state."""

    text: str


@dataclass(frozen=True)
class In:
    """Text in one part of a run: `name`, `job`, `note` or `args`."""

    part: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class States:
    """One of these states."""

    states: frozenset[State]


@dataclass(frozen=True)
class SiteTerm:
    """One of these sites, by full name."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class SizeTerm:
    """The job's total number of nodes or GPUs, in one of these inclusive ranges."""

    of: str
    """`nodes` or `gpus`."""
    ranges: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class IdleTerm:
    """A share of the GPUs' time below 10 % use; runs without readings have none."""

    above: bool
    share: float
    """0 to 1, inclusive."""


@dataclass(frozen=True)
class ShapeTerm:
    """A size as in the column Size, or that text as a word."""

    text: str
    nodes: int
    each: int
    ranks: bool
    """Whether `each` counts the ranks of a node without GPUs."""


@dataclass(frozen=True)
class Made:
    """Created since a time, or until then."""

    since: bool
    moment: float
    """Epoch seconds; for an `age`, seconds before now."""
    age: bool

    def at(self, now: float) -> float:
        """Return the time in epoch seconds."""
        return now - self.moment if self.age else self.moment


@dataclass(frozen=True)
class Tag:
    """One of these tags in the note."""

    names: tuple[str, ...]


Test = WordTerm | In | States | SiteTerm | SizeTerm | IdleTerm | ShapeTerm | Made | Tag


@dataclass(frozen=True)
class FilterTerm:
    """One part of a filter."""

    typed: str
    """The typed text."""
    negated: bool
    test: Test


def parse_filter(text: str) -> tuple[FilterTerm, ...]:
    """Return the terms of a filter; FilterError if a term is invalid."""
    terms, error = parse_typed_filter(text)
    if error is not None:
        raise error
    return terms


def parse_typed_filter(text: str) -> tuple[tuple[FilterTerm, ...], FilterError | None]:
    """Return the terms of an unfinished filter, and the error of the first invalid one.

    The valid terms still count.
    """
    if len(text) > _LONGEST:
        message = f"The filter is longer than {_LONGEST:,} characters."
        return (), FilterError(message, "Shorten it.", 0, len(text))
    terms: list[FilterTerm] = []
    first: FilterError | None = None
    for begin, end in _split(text):
        try:
            terms.append(_term(text, begin, end))
        except FilterError as error:
            first = first or error
    return tuple(terms), first


def _split(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each term; blanks separate terms, except within quotes."""
    spans, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        begin, quoted = at, False
        while at < len(text) and (quoted or not text[at].isspace()):
            quoted ^= text[at] == '"'
            at += 1
        spans.append((begin, at))
    return spans


def _term(text: str, begin: int, end: int) -> FilterTerm:
    typed = text[begin:end]
    if typed.count('"') % 2:
        raise FilterError(
            "A quote is not closed.", 'End it with a ".', begin + typed.rindex('"'), end
        )
    rest, negated = _turned(typed)
    match = _KEY.match(rest)
    key_kind = _KEYS.get(match[1].casefold()) if match else None
    if match is None or (key_kind is None and match[2] == "="):
        return FilterTerm(typed, negated, _bare(rest, begin, end))
    key, sign = match[1], match[2]
    if key_kind is None:
        raise FilterError(
            *_no_filter(key, sign), begin, begin + len(typed) - len(rest) + match.end()
        )
    read, example = key_kind
    # `nodes>=4` is `nodes:>=4`, and `state=failed` is `state:failed`.
    value = rest[match.end() if sign in ":=" else match.end(1) :]
    value, turned = _turned(value)
    values = tuple(part for part in value.replace('"', "").split(",") if part.strip())
    if not values:
        raise FilterError(f"{key}: needs a value.", f"Type one such as {example}.",
                          begin, end)  # fmt: skip
    try:
        return FilterTerm(typed, negated != turned, read(key.casefold(), values))
    except InputError as error:
        raise FilterError(error.message, error.hint, end - len(value), end) from error


def _no_filter(key: str, sign: str) -> tuple[str, str]:
    """Return the error for an unknown key."""
    if sign != ":":
        ordered = "Only nodes, gpus, idle and age accept < and >"
        return f"{key}{sign} is not a filter.", f'{ordered}; quote text: "{key}{sign}…".'
    names = ", ".join(f"{name}:" for name in _KEYS)
    return f"{key}: is not a filter.", f'Quote text: "{key}:…", or use {names}.'


def _turned(text: str) -> tuple[str, bool]:
    rest = text.lstrip("!")
    return rest, (len(text) - len(rest)) % 2 == 1


_KEY = re.compile(r"([A-Za-z]+)(:|<=|>=|<|>|=)")
_SHAPE = re.compile(r"(\d{1,5})[xX](\d{1,5})(r?)")


def _bare(rest: str, begin: int, end: int) -> Test:
    if shape := _SHAPE.fullmatch(rest):
        return ShapeTerm(rest, int(shape[1]), int(shape[2]), bool(shape[3]))
    word = rest.replace('"', "")
    if not word:
        raise FilterError("A word is missing.", "Type a search term after the `!`.", begin, end)
    if re.match(r"-[A-Za-z#]", rest):
        raise FilterError(
            f"{rest} is not a filter.", f'Negate with `!`: !{rest[1:]}; quote text: "{rest}".',
            begin, end,
        )  # fmt: skip
    if word.startswith("#") and len(word) > 1:
        return Tag((word[1:],))
    return WordTerm(word)


def _states(key: str, values: tuple[str, ...]) -> Test:
    states: set[State] = set()
    for value in values:
        named = states_named(value)
        if not named:
            raise InputError(
                f"{value!r} is not a state.",
                "Use running, queued, done, failed, cancelled, timeout, oom, unknown, or a group: "
                "waiting, unfinished, ended.",
            )
        states |= named
    return States(frozenset(states))


_RANGE = re.compile(r"(<=|>=|<|>|=)?(\d{1,9})|(\d{1,9})(?:-|\.\.)(\d{1,9})")


def _size(key: str, values: tuple[str, ...]) -> Test:
    return SizeTerm(key, tuple(_range(key, value.strip()) for value in values))


def _range(key: str, value: str) -> tuple[float, float]:
    match = _RANGE.fullmatch(value)
    if match is None:
        raise InputError(
            f"{value!r} is not a number of {key}.", f"Type {key}:4, {key}:>=4 or {key}:2-8."
        )
    if match[3]:
        return int(match[3]), int(match[4])
    number = int(match[2])
    ends = {">": (number + 1, math.inf), ">=": (number, math.inf), "<": (0, number - 1)}
    return (ends | {"<=": (0, number)}).get(match[1], (number, number))


_SHARE = re.compile(r"([<>])=?(\d{1,3})%?")


def _idle(key: str, values: tuple[str, ...]) -> Test:
    match = _SHARE.fullmatch(values[0].strip())
    if len(values) > 1 or match is None:
        raise InputError(
            f"{','.join(values)!r} is not > or < followed by a percentage.",
            "Type idle:>30% or idle<10%.",
        )
    return IdleTerm(match[1] == ">", int(match[2]) / 100)


_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_AGE = re.compile(r"(\d{1,6})(s|m|min|h|d|w)")


def _made(key: str, values: tuple[str, ...]) -> Test:
    value = ",".join(values).strip()
    if age := _AGE.fullmatch(value):
        return Made(key == "since", int(age[1]) * _UNITS[age[2]], age=True)
    with suppress(ValueError, OverflowError):
        return Made(key == "since", time.mktime(time.strptime(value, "%Y-%m-%d")), age=False)
    raise InputError(
        f"{','.join(values)!r} is not a time.", f"Type {key}:2d, {key}:12h or {key}:2026-11-20."
    )


def _age(key: str, values: tuple[str, ...]) -> Test:
    value = values[0].strip()
    age = _AGE.fullmatch(value.lstrip("<>="))
    if len(values) > 1 or age is None or value.startswith("="):
        raise InputError(f"{','.join(values)!r} is not an age.", "Type age<2d, age<30m or age>12h.")
    return Made(not value.startswith(">"), int(age[1]) * _UNITS[age[2]], age=True)


_KEYS: dict[str, tuple[Callable[[str, tuple[str, ...]], Test], str]] = {
    "state": (_states, "state:failed"),
    "site": (lambda key, values: SiteTerm(values), "site:lumi"),
    "nodes": (_size, "nodes>=4"),
    "gpus": (_size, "gpus:8-64"),
    "idle": (_idle, "idle:>30%"),
    "since": (_made, "since:2d"),
    "until": (_made, "until:2026-11-20"),
    "age": (_age, "age<2d"),
    "tag": (lambda _, values: Tag(tuple(one.strip().lstrip("#") for one in values)), "tag:best"),
    "name": (In, "name:vit"),
    "job": (In, "job:8123"),
    "note": (In, "note:baseline"),
    "args": (In, "args:adamw"),
}
"""The parsers of each key's values, with an example."""
FILTER_EXAMPLES = " ".join(
    ("failed", "state:!done", "site:lumi", "nodes>=4", "2x8", "age<2d", "--lr", "!vit", "#best")
)
"""The placeholder of an empty field."""


Value = str | float
Condition = tuple[str, Sequence[Value]]
"""A condition and the values of its placeholders."""
CAUSED = WENT_WRONG | STATE_GROUPS["waiting"] | STATE_GROUPS["unknown"]
"""Only runs in these states have a cause to search; for the others, the index suffices."""
_PARTS = {"name": "r.name", "job": "coalesce(r.job_id, '')", "note": "r.note"}


def condition_of(term: FilterTerm, now: float) -> Condition:
    """Return the condition of a term; ages are relative to `now`."""
    condition, values = _test(term, now)
    return (f"NOT ({condition})" if term.negated else f"({condition})"), values


def _test(term: FilterTerm, now: float) -> Condition:
    match term.test:
        case WordTerm(text):
            return _word(text)
        case In("args", texts):
            return " OR ".join(map(_in_arguments, texts)), list(map(_containing, texts))
        case In(part, texts):
            # The words first: they are in the index and rule out most runs.
            each = (f"({_like('r.words', one)} AND {_like(_PARTS[part], one)})" for one in texts)
            values = [pattern for text in texts for pattern in [_containing(text)] * 2]
            return " OR ".join(each), values
        case States(states):
            return _one_of("r.state", sorted(state.value for state in states))
        case SiteTerm(names):
            return _one_of("r.site COLLATE NOCASE", names)
        case SizeTerm(of, ranges):
            size = "r.nodes" if of == "nodes" else "r.nodes * r.gpus"
            bounds = [bound for each in ranges for bound in each]
            return " OR ".join(f"{size} BETWEEN ? AND ?" for _ in ranges), bounds
        case IdleTerm(above, share):
            holds = f"json_extract(r.gpu_use, '$.low') {'>=' if above else '<='} ?"
            return f"coalesce({holds}, 0)", [share]
        case ShapeTerm(text, nodes, share, ranks):
            named, patterns = _word(text)
            shape = [nodes, 0, share] if ranks else [nodes, share]
            columns = "(r.nodes, r.gpus, r.ranks)" if ranks else "(r.nodes, r.gpus)"
            return f"{named} OR {columns} = ({', '.join('?' for _ in shape)})", [*patterns, *shape]
        case Made(since, _, _) as made:
            return f"r.created {'>=' if since else '<'} ?", [made.at(now)]
        case Tag(names):
            # The note is the end of the words, and nothing before it can contain a `#`.
            each = (_like("r.words || ' '", name) for name in names)
            return " OR ".join(each), [_containing(f" #{name} ") for name in names]


def _word(text: str) -> Condition:
    pattern = _containing(text)
    caused, states = _one_of("r.state", sorted(state.value for state in CAUSED))
    cause = _like("r.cause || ' ' || r.reason", text)
    condition = f"{_like('r.words', text)} OR ({caused} AND {cause})"
    values: list[Value] = [pattern, *states, pattern]
    if text.startswith("--"):  # only then, because each job file must be read
        condition, values = f"{condition} OR {_in_arguments(text)}", [*values, pattern]
    if meant := states_like(text):
        also, words = _one_of("r.state", sorted(state.value for state in meant))
        return f"{condition} OR {also}", [*values, *words]
    return condition, values


def _in_arguments(text: str) -> str:
    found = _like("arguments(packed)", text)
    return f"EXISTS (SELECT 1 FROM blobs WHERE id = r.spec AND {found})"


def _like(expression: str, text: str) -> str:
    """Return the condition that `expression` contains `text`, in any case."""
    # LIKE ignores the case of ASCII letters only, but is faster than a function.
    folded = expression if text.isascii() else f"folded({expression})"
    return f"{folded} LIKE ? ESCAPE '\\'"


def _containing(text: str) -> str:
    escaped = text.casefold().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _one_of(expression: str, values: Sequence[Value]) -> Condition:
    return f"{expression} IN ({', '.join('?' for _ in values)})", values
