"""Variables in a text: names, the shell that expands them, similar names. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.source_position import Position

_NAME = re.compile(r"(?<!\\)(?:\\\\)*\$(?:\{[!#]?)?([A-Za-z_]\w*)")
_DEEPEST = 4
"""Maximum depth of variables that contain others; PATH contains itself."""
_LONGEST = 4_000
"""Maximum length of a path; a variable that contains itself repeatedly would grow without end."""


def names_in(text: str) -> tuple[str, ...]:
    """Return the variables in a text, each once, except escaped ones."""
    return tuple(dict.fromkeys(_NAME.findall(text)))


def put_in(job: ScriptJob, text: str) -> str:
    """Return a text with the known values of the script's own variables.

    A word's value requires all its parts to be known, but a path like `$CACHE` is useful even if
    CACHE is `/tmp/$USER`.
    """
    for _ in range(_DEEPEST):
        before = text
        for name in names_in(text):
            variable = job.variable(name, shell="batch")
            if variable is not None and "$(" not in variable.value:
                value = variable.value[:_LONGEST].replace("\\", r"\\")
                text = re.sub(rf"\$(?:\{{{name}\}}|{name}\b)", value, text)
        if text == before or len(text) > _LONGEST:
            break
    return text


def is_named(job: ScriptJob, name: str) -> bool:
    """Return whether the script itself reads a variable, like `$NAME` or `${NAME…`."""
    return re.search(rf"\$\{{?{re.escape(name)}\b", job.text) is not None


def source_at(job: ScriptJob, at: Position) -> str:
    """Return the script's text at a position, with its quotes; "" without a script."""
    if not at.line or at.file or not at.end_line:
        return ""
    lines = job.text.split("\n")[at.line - 1 : at.end_line]
    if not lines:
        return ""
    lines[-1] = lines[-1][: at.end_column - 1]
    return "\n".join(lines)[at.column - 1 :]


def outside_single_quotes(source: str) -> str:
    """Return a piece of a script without single-quoted texts, which bash does not expand.

    A single quote within double quotes is an ordinary character.
    """
    kept, inside, place = [], "", 0
    while place < len(source):
        sign = source[place]
        if sign == "\\" and inside != "'":
            kept.append(source[place : place + 2])
            place += 2
            continue
        if sign == "'" and inside != '"':
            inside = "" if inside == "'" else "'"
        elif sign == '"' and inside != "'":
            inside = "" if inside == '"' else '"'
        elif inside != "'":
            kept.append(sign)
        place += 1
    return "".join(kept)


_USE = re.compile(r"(?<!\\)\$(?:([A-Za-z_]\w*)|\{([#!]?)([A-Za-z_]\w*)(?:\[[^]]*\])?(:?[-=?+])?)")
_BARE = re.compile(r"(?<![\w$])(?<!\$\{)(?<!\$\{[#!])[A-Za-z_]\w*")
_SHORTEST = 6
"""Minimum length of names to compare, in letters; `DATA` and `DATE` are two words."""


@dataclass(frozen=True)
class Use:
    """A place where a script reads a variable."""

    name: str
    at: Position
    guarded: bool
    """Whether the script handles an unset variable here: `${X:-1}`, `${X:?}`."""
    in_single_quotes: bool
    """Whether another program may read the variable: awk, perl, or a shell inside the job."""


def uses(job: ScriptJob) -> Iterator[Use]:
    """Yield the variables that a script reads in its own lines, outside comments."""
    text, ends, quoted = job.text.replace("\r\n", "\n"), "", False
    for number, line in enumerate(text.split("\n"), 1):
        if ends and line.strip() == ends:
            ends, quoted = "", False
            continue
        if not ends and line.lstrip().startswith("#"):
            continue
        for match in _USE.finditer(line):
            inside = quoted or line[: match.start()].count("'") % 2 == 1
            at = Position(number, match.start() + 1, number, match.end() + 1)
            yield Use(match[1] or match[3], at, bool(match[4]), inside)
        started = re.search(r"<<-?\s*(['\"\\]?)([A-Za-z_]\w*)", line)
        if started and not ends and "<<<" not in line:
            ends, quoted = started[2], bool(started[1])


def is_mentioned(job: ScriptJob, name: str) -> bool:
    """Return whether the script uses a name other than to read it: `X=1`, `read X`, `for X in`.

    Comments count, because they may explain that `sbatch --export=X=1` sets it.
    """
    return name in _mentioned(job.text)


@lru_cache(maxsize=2)
def _mentioned(text: str) -> frozenset[str]:
    return frozenset(_BARE.findall(text))


def alike(name: str, names: Collection[str]) -> str | None:
    """Return the name in `names` that is one or two typos away from `name`, or None."""
    if len(name) < _SHORTEST:
        return None
    most = 1 if len(name) < 10 else 2
    best: tuple[int, str] | None = None
    for other in names:
        if abs(len(other) - len(name)) > most or len(other) < _SHORTEST or other == name:
            continue
        if re.sub(r"\d", "0", other) == re.sub(r"\d", "0", name):
            continue  # STEP1 and STEP2 are two names
        if (Counter(name) - Counter(other)).total() > most:
            continue
        found = distance(name, other)
        if found <= most and (best is None or (found, other) < best):
            best = (found, other)
    return best[1] if best else None


def distance(one: str, other: str) -> int:
    """Return the number of letters to insert, delete, change, or swap with the next letter."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        current = [row]
        for column, second in enumerate(other, 1):
            cost = min(last[column] + 1, current[-1] + 1, last[column - 1] + (letter != second))
            swapped = row > 1 and column > 1 and letter == other[column - 2]
            if swapped and one[row - 2] == second:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        before, last = last, current
    return last[-1]
