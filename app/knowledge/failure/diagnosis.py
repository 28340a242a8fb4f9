"""A reason why a run failed, and the facts of a run's end. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lumitui.remote.site.safe_text import plain
from lumitui.remote.site.states import State


@dataclass(frozen=True)
class Diagnosis:
    """A reason why a run failed."""

    id: str
    sentence: str
    """What happened."""
    do: str
    """What to try."""
    line: str = ""
    """The line of the log, or the scheduler's words, as evidence."""
    rank: int | None = None
    place: str = ""
    """The line of the user's code that raised it: `train.py:88 (forward)`."""
    node: str = ""
    """The node on which it happened; "" if the log does not name it."""
    number: int | None = None
    """Line number of `line` in the log, from 1; None if it is not a line of the log."""
    telling: Sequence[str] = ()
    """The most telling lines, if no cause is known."""

    @property
    def cause(self) -> str:
        """What happened, with the rank, the node and the line of code."""
        place = self.place.partition(" (")[0]
        at = f"at {place}" if place and place not in self.sentence else ""
        known = self.rank is None or f"Rank {self.rank} " in self.sentence
        who = "" if known else f"rank {self.rank}"
        where = f"on {self.node}" if self.node and self.node not in self.sentence else ""
        both = ", ".join(part for part in (who, where, at) if part)
        return f"{self.sentence.removesuffix('.')} ({both})." if both else self.sentence

    @property
    def brief(self) -> str:
        """A short form for a table row, beginning with the part that distinguishes runs."""
        raised = _RAISED.match(self.line.strip()) if self.id == "exception" else None
        named = not raised and self.sentence.startswith(f"Rank {self.rank} ")
        rank = "" if self.rank is None or named else f"rank {self.rank}"
        where = " ".join(part for part in (rank, self.place.partition(" (")[0]) if part)
        what = raised[1] if raised else self.sentence.partition(". ")[0].removesuffix(".")
        if self.telling:
            what = plain(self.telling[-1].strip(), _ROW)
        return f"{where}: {what}" if where and where not in what else what


_ROW = 120
"""Maximum length of a log line in a row, in characters."""
_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?::|$)")
"""The last line of a traceback, like `torch.OutOfMemoryError: …`."""


class JobKeys(Protocol):
    """The keys of a job file that affect a diagnosis; `JobSpec` implements them."""

    @property
    def launcher(self) -> str:
        """The launcher of the ranks."""

    @property
    def trainer(self) -> str | None:
        """A bundled trainer, whose exit codes are known."""

    @property
    def proof(self) -> str:
        """Whether a wrong binding ends the job."""

    @property
    def chain(self) -> int:
        """Maximum number of time limits for the training."""

    @property
    def memory(self) -> str | None:
        """The requested memory per node; None for the site's default."""

    @property
    def resume(self) -> Sequence[str]:
        """The arguments with which a user's own script resumes."""


@dataclass(frozen=True)
class RunEnd:
    """The facts of a run's end."""

    state: State
    word: str = ""
    """The scheduler's own word for the state."""
    reason: str = ""
    rc: int | None = None
    """Exit code of the first failed rank; STOPPED_EARLY if its last event was a stop."""
    failed_rank: int | None = None
    log: str = ""
    """The end of the log."""
    before: int | None = field(default=0, kw_only=True)
    """Number of lines before `log` in the file; None if unknown."""
    spec: JobKeys | None = None
    world_size: int | None = None
    node_gib: int | None = None
    """Main memory of each node for jobs, in GiB; None if unknown."""
    chain_end: str = ""
    """The end of the last attempt of a run with `chain:`; see `AttemptRecord.end`."""
    site: str = ""
    """The name of its site, for commands in the fixes; "" if unknown."""
