"""What the answers of a site say against a job, as the adviser's findings. Pure."""

from collections.abc import Iterator

from lumitui.app.explain.words import clock
from lumitui.app.knowledge.rule import Finding
from lumitui.app.survey.inquiry.job_paths import Wanted
from lumitui.app.survey.inquiry.path_findings import path_findings, quota_findings
from lumitui.app.survey.inquiry.slurm_findings import (
    account_findings,
    budget_findings,
    job_findings,
    partition_findings,
)
from lumitui.app.survey.inquiry.topics import finding
from lumitui.remote.survey.inquiry.ask_inquiry import Answers

_OF_SLURM = ("cluster-account", "cluster-partition", "cluster-jobs")
"""What explains a refusal of sbatch better than its own words do."""
_BUSY = ("unable to contact", "timed out", "connection refused", "try again", "communication")


def findings(wanted: Wanted, found: Answers, now: float) -> tuple[Finding, ...]:
    """Return what is wrong with a job by what the site answered at `now`, in epoch seconds."""
    said = [
        *path_findings(wanted, found),
        *quota_findings(wanted, found),
        *account_findings(wanted, found),
        *partition_findings(wanted, found),
        *job_findings(wanted, found),
        *budget_findings(wanted, found),
    ]
    explained = any(one.rule in _OF_SLURM and one.severity == "error" for one in said)
    return (*said, *_trial(found, now, explained=explained), *_silent(found))


def _trial(found: Answers, now: float, *, explained: bool) -> Iterator[Finding]:
    tried = found.trial
    if tried is None:
        return
    if not tried.accepted:
        if not explained:
            yield from _refused(tried.words)
    elif tried.start is not None:
        wait = tried.start - now
        when = f"about {clock(tried.start)[:16]}, in {_about(wait)}" if wait > 90 else "at once"
        yield finding(
            "cluster-start", f"By Slurm's estimate the job would start {when}.",
            "Submit it; the estimate changes with the queue.",
        )  # fmt: skip


def _refused(words: str) -> Iterator[Finding]:
    if any(word in words.lower() for word in _BUSY):
        yield finding("cluster-silent", f"Slurm could not try the script: {words}.",
                       "Ask again in a minute.")  # fmt: skip
        return
    yield finding(
        "cluster-refused", f"sbatch refuses the script: {words}.",
        "Change what it names; `lumitui site show SITE` shows what the partitions allow.",
    )  # fmt: skip


def _about(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes / 60:.0f} h" if minutes < 48 * 60 else f"{minutes / 1440:.0f} days"


def _silent(found: Answers) -> Iterator[Finding]:
    said = list(dict.fromkeys(found.faults.values()))
    if said:
        more = f" And {len(said) - 3} more." if said[3:] else ""
        yield finding(
            "cluster-silent", f"{' '.join(said[:3])}{more}",
            "Go on: the rest was answered, and none of this is an error of the job.",
        )  # fmt: skip
