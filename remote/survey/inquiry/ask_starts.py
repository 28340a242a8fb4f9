"""Queries a site when jobs would start and how many wait there, in one request."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lumitui.remote.scheduler.slurm import CLEAN
from lumitui.remote.site.answer_fields import lines
from lumitui.remote.survey.inquiry.answers import Trial, trial
from lumitui.remote.survey.inquiry.ask_inquiry import SECONDS, TEST_ONLY
from lumitui.remote.transport.questions import Question, ask
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

MOST_SCRIPTS = 16
"""Most scripts of one request: each costs slurmctld a short command."""


@dataclass(frozen=True)
class ExpectedStarts:
    """When jobs would start at a site, and how many wait there."""

    trials: tuple[Trial | None, ...]
    """In the order of the scripts; None: Slurm did not answer."""
    waiting: Mapping[str, int] | None
    """Waiting jobs of all users by Slurm's partition; None: unknown."""


@purpose("inquiry")
def ask_starts(transport: Transport, scripts: Sequence[str]) -> ExpectedStarts:
    """Return when a job of each of `scripts` (at most MOST_SCRIPTS) would start. One request.

    Raises:
        LinkError: the site cannot be reached, or its answer is unusable.
    """
    trials = [
        Question(f"trial-{number}", TEST_ONLY, trial, "sbatch --test-only", given=script)
        for number, script in enumerate(scripts[:MOST_SCRIPTS])
    ]
    waiting = Question("waiting", "squeue -h -a -t pending -o %P", _waiting, "squeue")
    answers = ask(transport, CLEAN, (*trials, waiting), timeout=SECONDS)
    knows = waiting.name in answers.texts
    return ExpectedStarts(tuple(map(answers.of, trials)), answers.of(waiting) if knows else None)


def _waiting(text: str) -> Mapping[str, int]:
    """Return how many jobs wait in each partition; a job may wait in several."""
    return Counter(name for line in lines(text) for name in line.strip().split(",") if name)
