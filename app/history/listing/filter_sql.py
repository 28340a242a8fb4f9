"""Filters as conditions of SQL. They read the index of the list wherever it has what they ask."""

from collections.abc import Sequence

from lumitui.app.history.listing.filter_syntax import (
    FilterTerm,
    IdleTerm,
    In,
    Made,
    ShapeTerm,
    SiteTerm,
    SizeTerm,
    States,
    Tag,
    WordTerm,
)
from lumitui.app.history.listing.state_filter import STATE_GROUPS, WENT_WRONG, states_like

Value = str | float
Condition = tuple[str, Sequence[Value]]
"""A condition, and the values of its marks."""
CAUSED = WENT_WRONG | STATE_GROUPS["waiting"] | STATE_GROUPS["unknown"]
"""Only runs in these states have a cause that a word may be found in: of the others, which are
most of a history, the index says enough."""
_LIKE = r"{} LIKE ? ESCAPE '\'"
_PARTS = {"name": "r.name", "job": "coalesce(r.job_id, '')", "note": "r.note"}


def condition_of(term: FilterTerm, now: float) -> Condition:
    """Return the condition of a term; `now` is what its ages count from."""
    condition, values = _test(term, now)
    return (f"NOT ({condition})" if term.negated else f"({condition})"), values


def _test(term: FilterTerm, now: float) -> Condition:
    match term.test:
        case WordTerm(text):
            return _word(text)
        case In(part, texts):
            # The words first: the index has them, and most runs end there.
            both = f"{_LIKE.format('r.words')} AND {_LIKE.format(_PARTS[part])}"
            values = [pattern for text in texts for pattern in [_containing(text)] * 2]
            return " OR ".join(f"({both})" for _ in texts), values
        case States(states):
            return _one_of("r.state", sorted(state.value for state in states))
        case SiteTerm(names):
            return _one_of("r.site COLLATE NOCASE", names)
        case SizeTerm(of, ranges):
            size = "r.nodes" if of == "nodes" else "r.nodes * r.gpus"
            bounds = [bound for each in ranges for bound in each]
            return " OR ".join(f"{size} BETWEEN ? AND ?" for _ in ranges), bounds
        case IdleTerm(above, share):
            return f"json_extract(r.gpu_use, '$.low') {'>=' if above else '<='} ?", [share]
        case ShapeTerm(text, nodes, share, ranks):
            named, patterns = _word(text)
            shape = [nodes, 0, share] if ranks else [nodes, share]
            columns = "(r.nodes, r.gpus, r.ranks)" if ranks else "(r.nodes, r.gpus)"
            return f"{named} OR {columns} = ({', '.join('?' for _ in shape)})", [*patterns, *shape]
        case Made(since, _, _) as made:
            return f"r.created {'>=' if since else '<'} ?", [made.at(now)]
        case Tag(names):
            # The note is the end of the words, and nothing before it can hold a `#`.
            each = _LIKE.format("r.words || ' '")
            return " OR ".join(each for _ in names), [_containing(f" #{name} ") for name in names]


def _word(text: str) -> Condition:
    pattern = _containing(text)
    caused, states = _one_of("r.state", sorted(state.value for state in CAUSED))
    condition = f"{_LIKE.format('r.words')} OR ({caused} AND {_LIKE.format('r.reason')})"
    values: list[Value] = [pattern, *states, pattern]
    if meant := states_like(text):
        also, words = _one_of("r.state", sorted(state.value for state in meant))
        return f"{condition} OR {also}", [*values, *words]
    return condition, values


def _containing(text: str) -> str:
    """Return the pattern of LIKE for what contains `text`."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _one_of(expression: str, values: Sequence[Value]) -> Condition:
    return f"{expression} IN ({', '.join('?' for _ in values)})", values
