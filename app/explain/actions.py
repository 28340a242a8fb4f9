"""Next steps after a failure: a resubmission that may help, and a text for the helpdesk. Pure."""

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from lumitui.app.explain.words import count
from lumitui.app.history.run import Run
from lumitui.app.job.setting import half_batch, without_nodes
from lumitui.app.knowledge.failure.diagnosis import Diagnosis
from lumitui.remote.site import walltime
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.safe_text import plain

_OF_A_NODE = frozenset({
    "gpu-hardware", "gpu-driver", "gpu-busy", "node-failed", "launch-failed", "hung", "preflight",
})  # fmt: skip
_NOT_OF_THE_PROGRAM = frozenset({
    "preempted", "port-in-use", "partial-topology", "rendezvous", "network", "file-system",
    "stopped-early", "chain-used-up", "chain-refused", "cancelled",
})  # fmt: skip
_OF_TIME = frozenset({"time-limit", "chain-late"})
# GPU faults that count as the program's unless a run with serialized kernels shows otherwise.
_OF_A_KERNEL = frozenset({"gpu-fault", "gpu-error", "gpu-assert"})
_ONE_BY_ONE = {False: "AMD_SERIALIZE_KERNEL=3", True: "CUDA_LAUNCH_BLOCKING=1"}
"""By vendor (True: NVIDIA), the variable that makes a GPU error name its line of code."""
_NVIDIA = re.compile(r"(?i)cuda|\bxid\b|nvrm|nvidia")
_UTC = "%Y-%m-%d %H:%M:%S UTC"
_DATE = re.compile(r"(?<!\d)20\d\d([-_.]?)[01]\d\1[0-3]\d([-_T]\d\d([-_:.]?\d\d){1,2})?(?!\d)")
_JOB_ID = re.compile(r"(?<![A-Za-z\d])[eo]?(\d{5,8}(?:_\d+)?)(?![A-Za-z\d])")
"""Of a log with any name. Slurm's ids have at most eight digits; a short number may be a size."""
_LINES = 10
_NO_LINE = "no line that shows the cause"


@dataclass(frozen=True)
class HelpfulResubmission:
    """A resubmission that may help."""

    words: str
    """Its effect, as shown on a key or button."""
    options: tuple[str, ...] = ()
    """Of `lumitui resubmit`."""
    settings: tuple[str, ...] = ()
    """The same as `key=value`."""

    def command(self, run_id: str) -> str:
        """Return the command for this resubmission."""
        return " ".join(("lumitui", "resubmit", run_id, *self.options))


def action_of(causes: Sequence[Diagnosis], run: Run) -> HelpfulResubmission | None:
    """Return the resubmission for the likeliest cause; None if the job or its code must change.

    If possible, it resumes from the last checkpoint.
    """
    first = next(iter(causes), None)
    if first is None:
        return None
    if first.id in _OF_A_NODE:
        with suppress(InputError):
            if first.node:
                setting = without_nodes(run.spec, first.node)
                words = f"Resubmit without {first.node}"
                return HelpfulResubmission(words, ("--exclude", first.node), (setting,))
        return HelpfulResubmission("Resubmit")
    if first.id in _OF_A_KERNEL:
        setting = f"env.{_ONE_BY_ONE[_NVIDIA.search(first.line) is not None]}"
        words = f"Resubmit with {setting.removeprefix('env.').replace('=', ' ')}"
        return HelpfulResubmission(words, ("--set", setting), (setting,))
    if first.id in ("gpu-memory", "gpu-library"):
        with suppress(InputError):
            setting = half_batch(run.spec)
            words = f"Resubmit with {setting.replace('=', ' ')}"
            return HelpfulResubmission(words, ("--batch", "half"), (setting,))
        return None
    if first.id in _OF_TIME:
        with suppress(ValueError):
            time = walltime.text_of(2 * walltime.seconds_of(run.spec.time))
            return HelpfulResubmission(
                f"Resubmit with {time}", ("--set", f"time={time}"), (f"time={time}",)
            )
    return HelpfulResubmission("Resubmit") if first.id in _NOT_OF_THE_PROGRAM else None


def log_lines(causes: Sequence[Diagnosis], run: Run) -> list[str]:
    """Return the lines of the log that show the causes, without the scheduler's own words."""
    words = plain(f"{run.word} {run.reason}".strip())
    lines = [text for item in causes for text in (item.line, *item.telling) if text.strip()]
    return [line for line in lines if line not in (words, f"exit code {run.rc}")]


def letter(causes: Sequence[Diagnosis], run: Run) -> str:
    """Return a text for the site's helpdesk: the job, its nodes, and its messages.

    It contains log lines that name a cause, with secrets masked (see `diagnose`), and nothing from
    the environment or the code.
    """
    first = next(iter(causes), None)
    said = (run.word or str(run.state), run.reason)
    times = (("submitted", run.submitted), ("started", run.started), ("ended", run.ended))
    known = ", ".join(f"{word} {time.strftime(_UTC, time.gmtime(at))}" for word, at in times if at)
    return "\n".join([
        f"Subject: job {run.job_id or 'without an id'} on {run.site}: "
        f"{first.sentence if first else 'it failed'}",
        "",
        f"Job:        {run.job_id or 'none'} ({' '.join(filter(None, said))})",
        f"Account:    {run.spec.account}",
        f"Partition:  {run.spec.partition}, {count(run.layout.nodes, 'node')}",
        f"Nodes:      {run.nodes_used or 'unknown'}",
        f"Folder:     {run.folder}",
        f"Times:      {known or 'unknown'}",
        _bad_node(first),
        f"Exit code:  {'unknown' if run.rc is None else run.rc}",
        *_from_the_log(log_lines(causes, run)),
    ])  # fmt: skip


def letter_of_log(causes: Sequence[Diagnosis], log: str) -> str:
    """Return a text for the site's helpdesk about a job of which only the log is known."""
    first = next(iter(causes), None)
    name = log.rpartition("/")[2]
    named = re.findall(r"^slurm-(\d+(?:_\d+)?)", name) or _JOB_ID.findall(_DATE.sub("", name))
    lines = [text for item in causes for text in (item.line, *item.telling) if text.strip()]
    return "\n".join([
        f"Subject: a job failed: {first.sentence if first else 'the cause is unknown'}",
        "",
        f"Job:        {named[0] if len(named) == 1 else 'write its ID here'}",
        f"Log:        {log}",
        _bad_node(first),
        *_from_the_log(lines),
    ])  # fmt: skip


def _bad_node(first: Diagnosis | None) -> str:
    node = first.node if first and first.node else "not named in the log"
    # A node is not bad because a program ran out of memory there.
    label = "Bad node:" if first and first.id in _OF_A_NODE else "Ended on:"
    return f"{label:<12}{node}"


def _from_the_log(lines: Sequence[str]) -> list[str]:
    shown = list(dict.fromkeys(plain(line.strip(), 300) for line in lines))[:_LINES]
    return ["", "From the log:", *(f"  {line}" for line in shown or [_NO_LINE])]
