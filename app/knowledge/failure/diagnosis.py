"""One reason why a run failed, and what is known of a run's end. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lumitui.remote.site.safe_text import plain
from lumitui.remote.site.states import State


@dataclass(frozen=True)
class Diagnosis:
    """One reason why a run failed."""

    id: str
    sentence: str
    """What happened."""
    do: str
    """What to try."""
    line: str = ""
    """The line of the log, or the scheduler's words, that shows it."""
    rank: int | None = None
    place: str = ""
    """The line of the user's code that raised it: `train.py:88 (forward)`."""
    node: str = ""
    """The node it happened on, as the log says; "" where it does not."""
    number: int | None = None
    """Which line of the log `line` is, counted from 1; None: it is none of its lines."""
    telling: Sequence[str] = ()
    """Where no cause is known: the lines that say most."""

    @property
    def cause(self) -> str:
        """What happened, with the rank it happened to and the line of code."""
        place = self.place.partition(" (")[0]
        at = f"at {place}" if place and place not in self.sentence else ""
        known = self.rank is None or f"Rank {self.rank} " in self.sentence
        who = "" if known else f"rank {self.rank}"
        where = f"on {self.node}" if self.node and self.node not in self.sentence else ""
        both = ", ".join(part for part in (who, where, at) if part)
        return f"{self.sentence.removesuffix('.')} ({both})." if both else self.sentence

    @property
    def brief(self) -> str:
        """The same in a few words, what tells runs apart first, as a row has room for it."""
        rank = "" if self.rank is None else f"rank {self.rank}"
        where = " ".join(part for part in (rank, self.place.partition(" (")[0]) if part)
        raised = _RAISED.match(self.line.strip()) if self.id == "exception" else None
        what = raised[1] if raised else self.sentence.partition(". ")[0].removesuffix(".")
        if self.telling:
            what = plain(self.telling[-1].strip(), _ROW)
        return f"{where}: {what}" if where and where not in what else what


_ROW = 120
"""Characters of a line of the log that a row may show."""
_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?::|$)")
"""The last line of a traceback, as `torch.OutOfMemoryError: …`."""


class JobKeys(Protocol):
    """What an end depends on of the job file: `JobSpec` has it."""

    @property
    def launcher(self) -> str:
        """What started the ranks."""

    @property
    def trainer(self) -> str | None:
        """A bundled trainer, whose exit codes are known."""

    @property
    def proof(self) -> str:
        """Whether a wrong binding ends the job."""

    @property
    def chain(self) -> int:
        """In how many time limits it trains at most."""

    @property
    def memory(self) -> str | None:
        """The requested memory per node; None: the site's default."""

    @property
    def resume(self) -> Sequence[str]:
        """The arguments with which a script of the user's own resumes."""


@dataclass(frozen=True)
class RunEnd:
    """What is known of a run's end."""

    state: State
    word: str = ""
    """The scheduler's own word for the state."""
    reason: str = ""
    rc: int | None = None
    """Exit code of the first rank that failed; STOPPED_EARLY where its last event was a stop."""
    failed_rank: int | None = None
    log: str = ""
    """The end of the log."""
    before: int | None = field(default=0, kw_only=True)
    """How many lines of the log stand before `log`; None: it is not known."""
    spec: JobKeys | None = None
    world_size: int | None = None
    chain_end: str = ""
    """How the last attempt of a run with `chain:` ended, see `AttemptRecord.end`."""
