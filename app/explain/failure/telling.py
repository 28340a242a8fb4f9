"""The lines of a log that say most, where no rule names the cause. Pure."""

import re
from collections.abc import Sequence

from lumitui.app.explain.log.lines import log_of

_WORDS = re.compile(
    r"(?i)error|fatal|exception|abort|fail|cannot|can't|killed|denied|not found|refus"
)
_HARMLESS = re.compile(
    r"(?i)\bwarn(?:ing)?\b|^Traceback|^\s*(?:File |frame #|at )|\b0 (?:failed|errors)"
)
_MOST = 3


def telling_lines(tail: str) -> Sequence[str]:
    """Return up to three lines, in their order: the last ones that speak of trouble.

    Where none does, they are the last lines that are not empty.
    """
    texts = list(dict.fromkeys(line.text.strip() for line in log_of(tail).lines))
    written = [text for text in texts if text]
    trouble = [text for text in written if _WORDS.search(text) and not _HARMLESS.search(text)]
    return (trouble or written)[-_MOST:]
