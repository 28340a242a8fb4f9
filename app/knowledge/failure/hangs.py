"""What a bundled trainer says of a rank that does not move, in its log and before it ends. Pure.

The sentences are those of trainers/engine/heartbeat/judge.py and watch.py.
"""

import re
from collections.abc import Sequence

from lumitui.app.knowledge.causes.meanings import Meaning
from lumitui.app.knowledge.failure.straggler import Straggler
from lumitui.app.knowledge.log.log_lines import LogLine

HUNG = 88
"""The bundled trainers' exit code when they ended because a rank hung (`hang:`)."""
HANG = Meaning(
    "hung",
    "A rank did not move for as long as `hang:` allows, and the training ended itself.",
    "Resubmit from the checkpoint; if the same node hangs again, exclude it with "
    "`sbatch: [--exclude=NODE]`.",
)
WAITING = "If it does not resume, cancel the job and resubmit from its checkpoint."
"""What to do while something hangs."""
_NAMED = re.compile(
    r"^(?P<sentence>Ranks? (?P<rank>\d{1,6})\b.{1,200} not moved for \d{1,9} s\b.{0,200})"
)
_AGAIN = re.compile(r"^(?:Rank \d{1,6} on \S{1,100} moves|The ranks move) again\.$")
_ENDS = " The training ends, as `hang` says."


def hung(lines: Sequence[LogLine]) -> Straggler | None:
    """Return the rank that was named last; None where it moved again."""
    for line in reversed(lines):
        if _AGAIN.match(line.text):
            return None
        if match := _NAMED.match(line.text):
            sentence = match["sentence"].removesuffix(_ENDS).strip()
            return Straggler(int(match["rank"]), sentence)
    return None


def ended(lines: Sequence[LogLine]) -> bool:
    """Whether the training ended because something hung; torchrun loses its exit code."""
    return any(line.text.endswith(_ENDS) and " moved for " in line.text for line in lines)
