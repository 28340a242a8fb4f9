"""Plain processes on this machine, queried like a scheduler: the embedded site.

The submit step and the poll of files are the same as Slurm's; only the submit command, the queue
and cancel are the supervisor's. There is no accounting: a run's record stays in its folder.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lumitui.remote.scheduler.cancelling import NEXT
from lumitui.remote.scheduler.cluster_overview import ClusterOverview
from lumitui.remote.scheduler.evidence import settle_by_evidence, submit_once
from lumitui.remote.scheduler.job_step import GpuReading, StepCall, place_step
from lumitui.remote.scheduler.run_files import files_script, parse_files
from lumitui.remote.scheduler.scheduler_protocol import (
    MOST_WORDS,
    STATES,
    Answer,
    JobStatus,
    Poll,
    State,
    Submission,
    Watch,
)
from lumitui.remote.site.answer_fields import json_of, last_words, lines, moment, short
from lumitui.remote.site.errors import OutcomeUnknown, RefusedError
from lumitui.remote.site.run_folder import POLL_SECONDS, STATE
from lumitui.remote.site.shell_text import quote
from lumitui.remote.transport.records import new_marker, parse_records, record_functions
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

if TYPE_CHECKING:
    # It imports pydantic, which a poll does not need.
    from lumitui.remote.site.meters import GpuReadings

# Isolated and without site-packages: the job's environment must not change the supervisor.
_CALL = f"{quote(sys.executable)} -I -S {quote(str(Path(__file__).with_name('supervisor.py')))}"

SUBMIT = f'{_CALL} submit --job-name="$NAME" "$RUN"'
"""Prints the job's id, like `sbatch --parsable`; the limits are in the script's #SBATCH lines."""

# The record in a folder is its only queue entry: each folder has one job. There is no accounting.
_EVIDENCE = rf"""mine() {{
[ ! -f "$RUN/{STATE}" ] ||
sed -n 's/^{{"job": "\([0-9]*\)".*/\1/p' "$RUN/{STATE}"
}}
accounted() {{ :; }}
drop() {{ {_CALL} cancel "$1" "$RUN" "$NAME" >/dev/null 2>&1 </dev/null; }}"""

_KEYS = {"job", "name", "word", "reason", "submitted", "started", "ended", "nodes"}
_KEYS |= {"exit_code", "partition"}
"""The fields to read of a record; job_store writes them."""


class Process:
    """Scheduler over one transport, which must lead to this machine."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.commands = 0
        """Slurm commands run so far, for the footprint: none."""

    def submit(self, submission: Submission) -> Answer:
        """See Scheduler.submit."""
        return submit_once(self._transport, submission, SUBMIT, _EVIDENCE).answer

    def settle(
        self, submission: Submission, *, deep: bool, void: bool, grace: float = 0.0
    ) -> Answer:
        """See Scheduler.settle; without accounting, `deep` has no effect."""
        return settle_by_evidence(
            self._transport, submission, _EVIDENCE, deep=deep, void=void, grace=grace
        ).answer

    @purpose("poll")
    def poll(self, watches: Sequence[Watch]) -> Poll:
        """See Scheduler.poll."""
        marker = new_marker()
        result = self._transport.run(poll_script(marker, watches), timeout=POLL_SECONDS)
        return parse_poll(result.out, marker, watches)

    @purpose("cancel")
    def cancel(self, watches: Sequence[Watch]) -> Mapping[str, str]:
        """See Scheduler.cancel; a job's supervisor checks its owner."""
        arguments = " ".join(
            quote(word) for watch in watches for word in (watch.job_id, watch.folder, watch.run)
        )
        result = self._transport.run(f"{_CALL} cancel {arguments} 2>&1")
        if result.code:
            ids = " ".join(watch.job_id for watch in watches)
            raise RefusedError(
                f"The jobs {ids} could not be cancelled: {last_words(result.out)}.",
                "Run `lumitui status` to see their state.",
            )
        answers = set(lines(result.out))
        if any(f"open {watch.run}" in answers for watch in watches):
            words = "It has no known job, or its folder is not writable."
            raise OutcomeUnknown(words, NEXT)
        words = "This machine no longer has its job, so nothing was cancelled."
        return {watch.run: words for watch in watches if f"gone {watch.run}" in answers}

    def gpus(self, job_id: str, nodes: int, readings: "GpuReadings") -> tuple[GpuReading, ...]:
        """See Scheduler.gpus."""
        raise RefusedError("Jobs on this machine have no GPUs.", "Choose a run on a cluster.")

    def place_step(self, call: StepCall) -> str:
        """See Scheduler.place_step."""
        return place_step(self._transport, call, "")

    def node_of(self, call: StepCall) -> str:
        """See Scheduler.node_of."""
        return "127.0.0.1"

    def overview(self, budget: str) -> ClusterOverview:
        """See Scheduler.overview; sends no query."""
        here = "This machine has no Slurm: its jobs are in the list of runs."
        return ClusterOverview(
            faults=dict.fromkeys(("nodes", "queue", "reservations", "budget"), here)
        )


def poll_script(marker: str, watches: Sequence[Watch]) -> str:
    """Return the one request of a poll: the records, checked for supervisors, and the files."""
    folders = " ".join(quote(watch.folder) for watch in watches)
    return f"""
LC_ALL=C; export LC_ALL
{record_functions(marker)}
begin clock; date +%s; finish
queue=$({_CALL} queue {folders} 2>&1); rc=$?
begin queue $rc; printf '%s\\n' "$queue"; finish
{files_script(watches)}
exit 0
"""


def parse_poll(output: bytes, marker: str, watches: Sequence[Watch]) -> Poll:
    """Return the answer of `poll_script`."""
    jobs: dict[str, JobStatus] = {}
    warning, clock = "", None
    gone: frozenset[str] = frozenset()
    for words, content in parse_records(output, marker):
        text = content.decode("utf-8", "replace")
        match words:
            case ["clock"]:
                clock = moment(text.strip())
            case ["queue", "0"]:
                records = [job for job in map(parse_record, lines(text)) if job]
                by_key = {(job.job_id, job.signs): job for job in records}
                keys = {watch.run: (watch.job_id, watch.run) for watch in watches}
                jobs = {run: by_key[key] for run, key in keys.items() if key in by_key}
                gone = frozenset(set(keys) - set(jobs))
            case ["queue", _]:
                warning = text.strip()[-300:] or "the supervisor's script failed"
    return Poll(jobs, parse_files(output, marker, watches), warning, clock, gone)


def parse_record(line: str) -> JobStatus | None:
    """Return the job of one record; None if the line is not a record."""
    data = json_of(line)
    if not isinstance(data, dict) or not data.keys() >= _KEYS:
        return None
    fields = {key: short(data[key], MOST_WORDS) for key in _KEYS}
    return JobStatus(
        job_id=fields["job"],
        state=STATES.get(fields["word"], State.UNKNOWN),
        word=fields["word"][:40],
        reason=fields["reason"],
        submitted=moment(data["submitted"]),
        started=moment(data["started"]),
        ended=moment(data["ended"]),
        nodes=fields["nodes"],
        exit_code=fields["exit_code"][:40],
        partition=fields["partition"],
        signs=fields["name"],
    )
