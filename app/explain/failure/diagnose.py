"""Why a run failed, by rules over Slurm's words and the end of the log. Pure.

A rule is one row of a table (rules.py). The log is remote text: it is data, shown without its
control characters, and nothing in it can make this raise. A wrong cause is worse than none:
trouble that a rank printed and got over counts only where no exception says more.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lumitui.app.explain.failure.hangs import HANG, HUNG, WAITING, ended, hung
from lumitui.app.explain.failure.log_rule import LogRule
from lumitui.app.explain.failure.meanings import EXIT_CODES, STATE_RULES, Meaning
from lumitui.app.explain.failure.rules import CONSEQUENCES, RULES, SCARCE
from lumitui.app.explain.failure.straggler import straggler
from lumitui.app.explain.failure.tracebacks import Culprit, culprit
from lumitui.app.explain.log.lines import LogLine, log_of
from lumitui.app.explain.safe_text import plain
from lumitui.app.history.run import HANGS
from lumitui.app.job.spec import JobSpec
from lumitui.remote.scheduler.states import State

STOPPED_EARLY = 85
"""The bundled trainers' exit code when they saved on a signal (trainers/engine/stop_request.py)."""
_OF_TRAINERS = (STOPPED_EARLY, 86, 87, HUNG)

CHAIN_ENDS: Mapping[str, Meaning] = {
    "used-up": Meaning(
        "chain-used-up",
        "The run has had all its time limits; its checkpoint is saved and nothing is lost.",
        "Resubmit from the checkpoint, with a longer `chain:` if it needs more.",
    ),
    "no-progress": Meaning(
        "chain-no-progress",
        "An attempt trained nothing new, so that another time limit would have changed nothing.",
        "Give it more `time:`, or look in the log for what took it; then resubmit from the "
        "checkpoint.",
    ),
    "refused": Meaning(
        "chain-refused",
        "The job could not go back into the queue; its checkpoint is saved and nothing is lost.",
        "Resubmit from the checkpoint.",
    ),
}
"""Why a chain ended although the training did not, by `AttemptRecord.end`."""

_STRICT = 78
"""job.sh's own exit code when `proof: strict` launched nothing."""
_CRASHED = (135, 137, 139)
"""No exception of Python ends like this: one that the log shows was handled."""

_NOT_STARTED = (126, 127)
"""Exit codes of a shell that could not start a program (bash(1), EXIT STATUS)."""

# slurmstepd adds its node where it writes into a labelled log.
_SLURM = re.compile(r"^(?:srun|slurmstepd(?:-\S+)?): ")
_ENDED_BY_SLURM = ("time-limit", "node-failed", "host-memory")
_STEP_REFUSED = "step-refused"
_TASK_ENDED = re.compile(r"^srun: error: [^:]*: tasks? \d")
# A warning is about something that the program survives: Python's, logging's, and PyTorch's
# `[W… file.cpp:1]` and `W1121 … file.py:1]`. Not NCCL's: it warns about what ends the program.
_WARNING = re.compile(r"^\[W[ \d]|^W\d{4} |\b(?<!NCCL )WARN(?:ING)?\b|\b[A-Z]\w*Warning: ")


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
    """The line of the person's code that raised it: `train.py:88 (forward)`."""

    @property
    def cause(self) -> str:
        """What happened, with the rank it happened to and the line of code."""
        place = self.place.partition(" (")[0]
        at = f"at {place}" if place and place not in self.sentence else ""
        known = self.rank is None or f"Rank {self.rank} " in self.sentence
        who = "" if known else f"rank {self.rank}"
        both = ", ".join(part for part in (who, at) if part)
        return f"{self.sentence.removesuffix('.')} ({both})." if both else self.sentence

    @property
    def brief(self) -> str:
        """The same in a few words, what tells runs apart first, as a row has room for it."""
        rank = "" if self.rank is None else f"rank {self.rank}"
        where = " ".join(part for part in (rank, self.place.partition(" (")[0]) if part)
        raised = _RAISED.match(self.line.strip()) if self.id == "exception" else None
        what = raised[1] if raised else self.sentence.partition(". ")[0].removesuffix(".")
        return f"{where}: {what}" if where and where not in what else what


_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?::|$)")
"""The last line of a traceback, as `torch.OutOfMemoryError: …`."""


@dataclass(frozen=True)
class Ending:
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
    spec: JobSpec | None = None
    world_size: int | None = None
    chain_end: str = ""
    """How the last attempt of a run with `chain:` ended, see `AttemptRecord.end`."""


@dataclass(frozen=True)
class _Evidence:
    """The log, and what is known of its ranks."""

    lines: Sequence[LogLine]
    failed_rank: int | None
    world_size: int | None


def diagnose(ending: Ending) -> list[Diagnosis]:
    """Return why a run failed, the likeliest reason first; nothing for one that did not fail.

    First comes what the scheduler decided, then the exception of the rank that failed first, in
    the words of the rule that knows it. Without an exception: causes in the order in which the
    log shows them. Last come what is usually a consequence of another rank's end, and the exit
    code. The codes 85 to 88 and 78 are lumitui's own only in jobs of which `ending.spec` says so.
    """
    state, rc = ending.state, ending.rc
    if state is State.RUNNING and HANGS.match(ending.reason):
        return [Diagnosis(HANG.id, ending.reason, WAITING)]
    if state is State.DONE or not (state.is_final or state is State.UNKNOWN):
        return []
    log = log_of(ending.log)
    # Without a rank in the label, what srun named is a node's launcher.
    failed_rank = ending.failed_rank if log.label_is_rank else None
    evidence = _Evidence(log.lines, failed_rank, ending.world_size)
    known_rc = rc if _is_ours(rc, failed_rank, ending.spec) else None
    stop = CHAIN_ENDS.get(ending.chain_end, EXIT_CODES[STOPPED_EARLY])
    found = [_LATE] if _was_late(ending) else []
    found += list(_of_state(state, ending.word, ending.reason, known_rc, failed_rank, stop))
    found += _of_hang(known_rc, evidence)
    ended_by = culprit(log.lines, failed_rank)
    crashed = rc in _CRASHED and log.label_is_rank
    if ended_by is not None and ended_by.its_own and not crashed:
        found += _matches(RULES, evidence, only_slurm=True)
        found += _exceptions(ended_by, evidence)
        found += _matches(CONSEQUENCES, evidence)
    else:
        found += _matches(RULES, evidence)
        if ended_by is not None and not crashed:
            found += _exceptions(ended_by, evidence)
        found += _matches(CONSEQUENCES, evidence)
    if known_rc and known_rc not in (1, STOPPED_EARLY, HUNG):
        found += _of_code(known_rc, failed_rank)
    return _distinct(found) or [_nothing_known(state, rc, failed_rank, log.lines)]


_LATE = Diagnosis(
    "chain-late",
    "The attempt did not end before its time limit, so that no other one followed.",
    "Let its program end earlier, with more seconds in `signal:` if it is your own; then resubmit "
    "from the checkpoint.",
)


def _was_late(ending: Ending) -> bool:
    return ending.state is State.TIMEOUT and ending.spec is not None and ending.spec.chain > 1


def _is_ours(rc: int | None, failed_rank: int | None, spec: JobSpec | None) -> bool:
    """Return whether the table of exit codes holds: a script of the user's may end with any."""
    if rc in _OF_TRAINERS:
        chained = spec is not None and spec.chain > 1 and rc == STOPPED_EARLY
        return chained or (spec is not None and spec.trainer is not None)
    if rc == _STRICT:
        return spec is not None and spec.proof == "strict" and failed_rank is None
    return True


def _of_state(
    state: State, word: str, reason: str, rc: int | None, failed_rank: int | None, stop: Meaning
) -> Iterator[Diagnosis]:
    words = plain(" ".join(part for part in (word, reason) if part))
    if rc == STOPPED_EARLY and state is State.FAILED:
        whose = failed_rank if stop.id == "stopped-early" else None
        yield Diagnosis(stop.id, stop.sentence, stop.do, words, whose)
    if (rule_of_state := STATE_RULES.get(state)) is not None:
        yield Diagnosis(rule_of_state.id, rule_of_state.sentence, rule_of_state.do, words)


def _of_hang(rc: int | None, evidence: _Evidence) -> Iterator[Diagnosis]:
    late = hung(evidence.lines)
    if rc == HUNG or (late and ended(evidence.lines)):
        sentence = f"{HANG.sentence} {late.sentence}" if late else HANG.sentence
        yield Diagnosis(HANG.id, sentence, HANG.do, "", late.rank if late else None)


def _of_code(rc: int, failed_rank: int | None) -> list[Diagnosis]:
    who = "The program" if failed_rank is None else f"Rank {failed_rank}"
    rule = EXIT_CODES.get(rc)
    if rule is None:
        return []
    # What cannot be started is the program that the rank should become.
    sentence = rule.sentence if rc in _NOT_STARTED else rule.sentence.replace("The program", who, 1)
    return [Diagnosis(rule.id, sentence, rule.do, f"exit code {rc}", failed_rank)]


def _matches(
    rules: Sequence[LogRule], evidence: _Evidence, *, only_slurm: bool = False
) -> list[Diagnosis]:
    """Return a diagnosis for each rule that fits, in the order in which the log shows them.

    Lines of the rank that failed first, and lines without a rank, go before the others.
    """
    first: list[tuple[bool, int, int, Diagnosis]] = []
    for order, rule in enumerate(rules):
        best: tuple[bool, int, re.Match[str]] | None = None
        for number, line in enumerate(evidence.lines):
            other = evidence.failed_rank is not None and line.rank not in (
                None,
                evidence.failed_rank,
            )
            if best is not None and (best[0], best[1]) < (other, number):
                continue
            if (match := rule.pattern.search(line.text)) and _counts(
                rule, number, evidence, only_slurm=only_slurm
            ):
                best = (other, number, match)
        if best is not None:
            found = _diagnosis(rule, best[2], evidence.lines[best[1]], evidence)
            first.append((best[0], best[1], order, found))
    return [diagnosis for *_, diagnosis in sorted(first, key=lambda item: item[:3])]


def _counts(rule: LogRule, number: int, evidence: _Evidence, *, only_slurm: bool) -> bool:
    """Return whether a line that fits a rule is about what ended the job."""
    text = evidence.lines[number].text
    if only_slurm:
        return rule.id in _ENDED_BY_SLURM and _SLURM.match(text) is not None
    if rule.id == _STEP_REFUSED:
        # A step after the ranks have run is not theirs.
        before = evidence.lines[:number]
        return not any(line.source or _TASK_ENDED.match(line.text) for line in before)
    return _WARNING.search(text) is None


def _diagnosis(
    rule: LogRule, match: re.Match[str], line: LogLine, evidence: _Evidence
) -> Diagnosis:
    groups = match.groupdict()
    named = groups.pop("rank", None)
    rank = int(named) if named else line.rank
    what = next((text for text in groups.values() if text), "see the line")
    sentence = rule.sentence.replace("{what}", what.strip().rstrip(".")[:120])
    if rule.id == "collective-timeout" and (
        late := hung(evidence.lines) or straggler(evidence.lines, evidence.world_size)
    ):
        rank = late.rank
        sentence = f"{sentence} {late.sentence}"
    return Diagnosis(rule.id, sentence, rule.do, line.text, rank)


def _exceptions(ended_by: Culprit, evidence: _Evidence) -> list[Diagnosis]:
    """Return what had run out while the exception was raised, if anything, and the exception."""
    scarce = [rule for rule in RULES if rule.id in SCARCE]
    handled = [
        replace(_diagnosis(rule, match, line, evidence), rank=line.rank)
        for line in ended_by.raised.handled
        for rule in scarce
        if (match := rule.pattern.search(line.text))
    ]
    return [*handled[:1], _exception(ended_by, evidence)]


def _exception(ended_by: Culprit, evidence: _Evidence) -> Diagnosis:
    """Return what the exception means, in the words of the rule that knows it, or in its own."""
    raised = ended_by.raised
    rank = ended_by.rank if raised.line.rank is None else raised.line.rank
    for line in (raised.line, *raised.causes):
        for rule in RULES:
            if match := rule.pattern.search(line.text):
                known = _diagnosis(rule, match, line, evidence)
                return replace(known, rank=rank, place=raised.place)
    who = "The program" if rank is None else f"Rank {rank}"
    if raised.place:
        where = f" at {raised.place}"
        do = "Look at that line of the code; in the log, the traceback shows how it was reached."
    else:
        where, do = "", "Read the traceback above this line in the log."
    return Diagnosis(
        "exception",
        f"{who} raised an exception{where}.",
        do,
        raised.line.text,
        rank,
        raised.place,
    )


def _distinct(found: Sequence[Diagnosis]) -> list[Diagnosis]:
    """Return the first diagnosis of each id and of each line of the log."""
    ids: set[str] = set()
    lines: set[str] = set()
    kept = []
    for item in found:
        text = item.line.strip()
        if item.id in ids or (text and text in lines):
            continue
        ids.add(item.id)
        lines.add(text)
        kept.append(item)
    return kept


def _nothing_known(
    state: State, rc: int | None, failed_rank: int | None, lines: Sequence[LogLine]
) -> Diagnosis:
    last = next((line for line in reversed(lines) if line.text.strip()), LogLine("", None, ""))
    code = "" if rc is None else f" with exit code {rc}"
    return Diagnosis(
        "unknown",
        f"The job is {state}{code}, and nothing at the end of its log says why.",
        "Read the whole log, from where the program began.",
        last.text,
        failed_rank,
    )
