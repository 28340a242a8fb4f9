"""Why a run failed, its overview and its figures, and runs beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message
from textual.message_pump import MessagePump

from lumitui.app.tui.messages.common import Answer

if TYPE_CHECKING:
    from lumitui.app.follow.results.comparison import CodeChange, Comparison
    from lumitui.app.follow.results.log_patterns import LogFigures
    from lumitui.app.follow.results.run_figures import Figures
    from lumitui.app.history.listing.metrics_preview import Key
    from lumitui.app.knowledge.failure.diagnosis import Diagnosis
    from lumitui.app.scale.lineage_overview import Overview


@dataclass(eq=False, repr=False)
class WhyWanted(Message):
    """Find out why a run failed."""

    reply_to: MessagePump
    run_id: str


@dataclass(eq=False, repr=False)
class WhyFound(Answer, bubble=False):
    """Why a run failed, the likeliest cause first; None: the search failed."""

    diagnoses: Sequence[Diagnosis] | None


@dataclass(eq=False, repr=False)
class FiguresWanted(Message):
    """Summarise a run's metrics."""

    reply_to: MessagePump
    run_id: str
    offset: int
    """Bytes of metrics.jsonl in history; the answer for fewer bytes is dropped."""
    with_log: bool
    """Whether to search the log too, for the job file's `metrics:`; that asks the site."""


@dataclass(eq=False, repr=False)
class FiguresFound(Answer, bubble=False):
    """The summary of a run's metrics."""

    offset: int
    figures: Figures


@dataclass(eq=False, repr=False)
class LogFiguresFound(Answer, bubble=False):
    """What the job file's `metrics:` found in the log."""

    found: LogFigures


@dataclass(eq=False, repr=False)
class OverviewWanted(Message):
    """Gather what a run and its relatives have measured; no site is asked."""

    reply_to: MessagePump
    run_id: str


@dataclass(eq=False, repr=False)
class OverviewFound(Answer, bubble=False):
    """What a run and its relatives have measured; None: it failed, and the error is shown."""

    run_id: str
    overview: Overview | None


@dataclass(eq=False, repr=False)
class GlancesWanted(Message):
    """Look at the metrics of runs, for their rows."""

    reply_to: MessagePump
    keys: tuple[Key, ...]


@dataclass(eq=False, repr=False)
class GlancesFound(Answer, bubble=False):
    """The looks have been taken."""


@dataclass(eq=False, repr=False)
class CompareWanted(Message):
    """Show two to four runs beside each other."""

    run_ids: tuple[str, ...]


@dataclass(eq=False, repr=False)
class ComparisonWanted(Message):
    """Compare runs; a site may be asked which files their code has."""

    reply_to: MessagePump
    run_ids: tuple[str, ...]


@dataclass(eq=False, repr=False)
class ComparisonMade(Answer, bubble=False):
    """What differs between runs; None: it failed, and the error is shown."""

    comparison: Comparison | None


@dataclass(eq=False, repr=False)
class CodeCompared(Answer, bubble=False):
    """In which files the code of runs differs."""

    changes: Sequence[CodeChange]
