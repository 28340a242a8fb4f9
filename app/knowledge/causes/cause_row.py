"""A row of the tables of what a log's lines mean."""

import re
from dataclasses import dataclass

from lumitui.app.knowledge.causes.meanings import Meaning


@dataclass(frozen=True)
class LogRule(Meaning):
    """A meaning, and the line that shows it."""

    pattern: re.Pattern[str]


def log_rule(name: str, pattern: str, sentence: str, do: str) -> LogRule:
    """Return a rule; `{what}` in `sentence` is what the groups of `pattern` found."""
    return LogRule(name, sentence, do, re.compile(pattern))
