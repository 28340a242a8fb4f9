"""Names of variables: where a script reads them, whether it sets them, which are alike. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.source_position import Position

_USE = re.compile(r"(?<!\\)\$(?:([A-Za-z_]\w*)|\{([#!]?)([A-Za-z_]\w*)(?:\[[^]]*\])?(:?[-=?+])?)")
_BARE = re.compile(r"(?<![\w$])(?<!\$\{)(?<!\$\{[#!])[A-Za-z_]\w*")
_SHORTEST = 6
"""Letters of a name that can be taken for another; `DATA` and `DATE` are two words."""


@dataclass(frozen=True)
class Use:
    """A place where a script reads a variable."""

    name: str
    at: Position
    guarded: bool
    """Whether it says what to do where the variable is not set: `${X:-1}`, `${X:?}`."""
    in_single_quotes: bool
    """Whether another program may read it: awk, perl, or a shell within the job."""


def uses(job: ScriptJob) -> Iterator[Use]:
    """Yield the variables that a script reads, outside of comments, in its own lines."""
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
    """Whether the script has a name otherwise than to read it: `X=1`, `read X`, `for X in`.

    A comment counts, too: it may say that `sbatch --export=X=1` gives it.
    """
    return name in _mentioned(job.text)


@lru_cache(maxsize=2)
def _mentioned(text: str) -> frozenset[str]:
    return frozenset(_BARE.findall(text))


def alike(name: str, names: Collection[str]) -> str | None:
    """Return the one of `names` that a slip of one or two letters makes of `name`; None: none."""
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
    """Return how many letters are to be put in, left out, changed, or swapped with the next."""
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
