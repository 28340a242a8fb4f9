"""The lines of a log that say most, where no rule names the cause. Pure."""

import re
from collections.abc import Sequence

from lumitui.app.knowledge.log.log_lines import LogLine

_WORDS = re.compile(
    r"(?i)error|fatal|exception|abort|fail|cannot|can't|killed|denied|not found|refus"
)
_HARMLESS = re.compile(
    r"(?i)\bwarn(?:ing)?\b|^Traceback|^\s*(?:File |frame #|at )|\b0 (?:failed|errors)"
)
_MOST = 3


def telling_of(lines: Sequence[LogLine]) -> tuple[str, ...]:
    """Return up to three lines, in their order: the last ones that speak of trouble.

    Where none does, they are the last lines that are not empty.
    """
    written = list(dict.fromkeys(text for line in lines if (text := line.text.strip())))
    trouble = [text for text in written if _WORDS.search(text) and not _HARMLESS.search(text)]
    return tuple((trouble or written)[-_MOST:])
