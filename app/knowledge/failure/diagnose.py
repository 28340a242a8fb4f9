"""Diagnosis of a failed run by rules over Slurm's reports and the end of the log. Pure.

A rule is one row of a table (cause_table.py). The log is remote text: it is treated as data, is
shown without control characters, and cannot make this module raise. A wrong cause is worse than
none, so an error that a rank survived counts only if nothing else explains the failure.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lumitui.app.knowledge.causes.cause_table import (
    CONSEQUENCES,
    EVERY,
    KILLED,
    LAST,
    LATE,
    RULES,
    SCARCE,
)
from lumitui.app.knowledge.causes.library_causes import (
    IMPORT_OF_ONE,
    IMPORTS,
    KNOWN,
    MISSPELLED,
    NAME,
)
from lumitui.app.knowledge.causes.meanings import (
    CHAIN_ENDS,
    EXIT_CODES,
    OF_THE_FIRST,
    STATE_RULES,
    LogRule,
    Meaning,
)
from lumitui.app.knowledge.causes.resource_causes import REFUSED
from lumitui.app.knowledge.causes.slurm_causes import WEAK
from lumitui.app.knowledge.failure.diagnosis import Diagnosis, JobKeys, RunEnd
from lumitui.app.knowledge.failure.hangs import HANG, HUNG, WAITING, ended, hung
from lumitui.app.knowledge.failure.matching import (
    SAYS_NOT_WHY,
    STEP_WAITED,
    TIMED_OUT,
    Evidence,
    diagnosis_of,
    matches,
    node_of,
)
from lumitui.app.knowledge.failure.message_lines import read
from lumitui.app.knowledge.failure.tracebacks import (
    LAUNCHERS,
    LIBRARY,
    Culprit,
    Raised,
    aside_lines,
    culprit,
    ended_by_signal,
    orphaned_lines,
    raised_lines,
)
from lumitui.app.knowledge.log_lines import LogLine
from lumitui.app.knowledge.program.step_program import ParserOptions
from lumitui.remote.site.masked_text import masked
from lumitui.remote.site.safe_text import plain
from lumitui.remote.site.states import BY_YOU, HANGS, State

STOPPED_EARLY = 85
"""The bundled trainers' exit code after saving on a signal (monitor/stop_request.py)."""
_OF_TRAINERS = (STOPPED_EARLY, 86, 87, HUNG)

_STRICT = 78
"""job.sh's own exit code when `proof: strict` launched nothing."""
_CRASHED = (135, 137, 139)
"""Python exceptions never end with these exit codes, so any in the log were handled."""

_SIGNAL_9, _SIGNAL_11 = 137, 139
_SEGFAULT = re.compile(r"Segmentation fault|SIGSEGV")
_BY_SIGNAL = "killed-by-signal"
_ABORT = re.compile(r"Abort|SIGABRT|-6\b")
_NOT_STARTED = (126, 127)
"""Exit codes of a shell that could not start a program (bash(1), EXIT STATUS)."""

# Exceptions that show the program's own mistake: no other line of the log explains them.
_OF_THE_CODE = re.compile(
    r"^(?:[\w.]+\.)?(?:KeyError|TypeError|AttributeError|NameError|IndexError|ValueError"
    r"|AssertionError|SyntaxError|IndentationError|UnboundLocalError|NotImplementedError"
    r"|ZeroDivisionError|ValidationError)\b"
)
# Exceptions whose meaning depends on the frame: the cause by message, the frame, the cause there.
_RAISED_IN = (
    ("no-file", re.compile(r"/subprocess\.py _execute_child$"), "no-command"),
    ("no-internet", re.compile(r"/torch/distributed/|init_process_group$"), "rendezvous"),
    ("peer-lost", re.compile(r"rendezvous\.py |_create_c10d_store$"), "rendezvous"),
)
_VERSION, _CHANGED = "package-version", "installation-changed"
_PACKAGE = re.compile(r"(?:No module named|cannot import name .+ from|Error: module) '?(\w+)")
"""The package that lacks a part; if its own code needs the part, it is not a different version."""
_BARE = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception)|Exception|StopIteration)"
    r"(?:\([\w.]+\))?(?::|$)|^(?:[a-z_]\w*\.)+error: "
)


def diagnose(ending: RunEnd) -> list[Diagnosis]:
    """Return the reasons why a run failed, the likeliest first; empty if it did not fail.

    For a running job, return the exception that ended a rank, if its log shows one.

    The scheduler's decision comes first, then the exception of the first failed rank, explained by
    the matching rule. Without an exception, causes follow in log order. The usual consequences of
    another rank's end come last, with the exit code. Exit codes 85 to 88 and 78 are lumitui's own
    only if `ending.spec` shows that the job can use them.

    Secrets that the job printed are masked in the quotes, because users paste causes into tickets
    and chats, and the history keeps them.
    """
    return [
        replace(
            one,
            sentence=masked(one.sentence),
            do=one.do.replace("bind SITE", f"bind {ending.site or 'SITE'}"),
            line=masked(one.line),
            telling=tuple(map(masked, one.telling)),
        )
        for one in _reasons(ending)
    ]


def _reasons(ending: RunEnd) -> list[Diagnosis]:
    state, rc = ending.state, ending.rc
    if state is State.RUNNING and HANGS.match(ending.reason):
        return [Diagnosis(HANG.id, ending.reason, WAITING)]
    if state in (State.RUNNING, State.FINISHING):
        return _so_far(ending)
    if state is State.DONE or not (state.is_final or state is State.UNKNOWN):
        return []
    log = read(ending.log, ending.before)
    failed_rank = ending.failed_rank if log.label_is_rank or _by_launcher(ending) else None
    if state is State.CANCELLED and ending.reason == BY_YOU:
        evidence = Evidence(log, failed_rank, ending.world_size, stopped=True)
        waited = [one for one in matches(RULES, evidence) if one.id == STEP_WAITED]
        return [*waited, replace(_YOURS, line=plain(f"{ending.word} {BY_YOU}"))]
    crashed = rc in _CRASHED and log.label_is_rank
    aside = raised_lines(log) if crashed or ended_by_signal(log) else orphaned_lines(log)
    stopped = state in (State.TIMEOUT, State.CANCELLED)
    evidence = Evidence(log, failed_rank, ending.world_size, aside | aside_lines(log), stopped)
    known_rc = rc if _is_ours(rc, failed_rank, ending.spec) else None
    stop = CHAIN_ENDS.get(ending.chain_end, EXIT_CODES[STOPPED_EARLY])
    chained = ending.spec is not None and ending.spec.chain > 1
    reasons = [_LATE] if chained and state is State.TIMEOUT else []
    reasons += list(_of_state(state, ending.word, ending.reason, known_rc, failed_rank, stop))
    reasons += _of_hang(known_rc, evidence)
    ended_by = None if crashed else culprit(log, failed_rank)
    reasons += matches(RULES, evidence, only_slurm=ended_by is not None and ended_by.its_own)
    reasons += [] if ended_by is None else _exceptions(ended_by, evidence)
    reasons += _killed(reasons, ending, evidence)
    reasons += _bare(evidence) if not reasons else []
    reasons += matches(CONSEQUENCES, evidence)
    reasons += _weak(evidence) if not reasons else []
    if _by_launcher(ending):
        reasons = [_with_rank(one, failed_rank) for one in reasons]
    if known_rc and known_rc not in (1, STOPPED_EARLY, HUNG):
        reasons += _of_code(known_rc, failed_rank, reasons)
    reasons = [one for one in reasons if not _follows(one, reasons, chained=chained)]
    reasons.sort(key=lambda one: one.id != STEP_WAITED)
    reasons = [_of_task(one, evidence) for one in reasons]
    reasons = [_with_option(_of_one_rank(one, evidence), evidence.lines) for one in reasons]
    if ending.spec is not None:
        reasons = [_with_keys(one, ending.spec) for one in reasons]
    reasons = [_with_node(one, ending) for one in reasons]
    return _after_the_first(_distinct(reasons, evidence)) or [
        _nothing_known(state, rc, failed_rank, evidence),
        *_distinct(list(_perhaps(evidence)), evidence),
    ]


def _so_far(ending: RunEnd) -> list[Diagnosis]:
    """Return the exception that ended a rank of a running job; Slurm reports the end later."""
    log = read(ending.log, ending.before)
    if (ended_by := culprit(log, None)) is None:
        return []
    evidence = Evidence(log, None, ending.world_size)
    found = _distinct(_exceptions(ended_by, evidence), evidence)
    found = [_with_node(one, ending) for one in found]
    return found if ending.spec is None else [_with_keys(one, ending.spec) for one in found]


_SPLIT = ("(`strategy: zero2` or `zero3`)", "(FSDP or DeepSpeed in your program)")
"""Ways to split the states: with a bundled trainer, and in the user's own program."""
_CONTINUE = STATE_RULES[State.TIMEOUT].do
_FROM_THE_START = (
    "Give it more `time:` or more nodes. With `resume:` in the job file, it could continue from a "
    "checkpoint."
)
_FIND = "Find the rank that ended first"


def _with_keys(one: Diagnosis, spec: JobKeys) -> Diagnosis:
    """Return a reason adapted to the job file: its memory, and its ways to split and resume."""
    sentence, do = one.sentence, one.do
    if spec.trainer is None:
        do = do.replace(*_SPLIT)
        if not spec.resume:
            do = do.replace(_CONTINUE, _FROM_THE_START)
            do = do.replace("Resubmit from the last checkpoint", "Resubmit it")
    if spec.memory and sentence == STATE_RULES[State.OUT_OF_MEMORY].sentence:
        sentence = f"{sentence.removesuffix('.')} (`memory: {spec.memory}` per node)."
    return replace(one, sentence=sentence, do=do)


def _with_node(one: Diagnosis, ending: RunEnd) -> Diagnosis:
    """Return a refused allocation with the memory that there was."""
    if not ending.node_gib or one.do != REFUSED.do:
        return one
    has = f"the node has {ending.node_gib} GiB"
    if ending.spec is not None and ending.spec.memory:
        has = f"the job requested `memory: {ending.spec.memory}` per node"
    return replace(one, sentence=f"{one.sentence.removesuffix('.')}; {has}.")


_UNKNOWN = re.compile(r"error: unrecognized arguments: (--?[A-Za-z][\w-]*)")


def _with_option(one: Diagnosis, lines: Sequence[LogLine]) -> Diagnosis:
    """Return a reason with the option that was probably meant, from argparse's usage in the log."""
    unknown = _UNKNOWN.search(one.line)
    usage = " ".join(line.text for line in lines).partition("usage: ")[2]
    flags = re.findall(r"\[(--?[A-Za-z][\w-]*)", usage)
    near = ParserOptions("", tuple(flags)).near(unknown[1]) if unknown else ""
    return replace(one, do=f"Write {near} instead of {unknown[1]}.") if unknown and near else one


_NUMBER = re.compile(r"\d+")
_IMPORT = re.compile(r"\bNo module named\b|cannot import name|cannot open shared object")


def _of_one_rank(one: Diagnosis, evidence: Evidence) -> Diagnosis:
    """Return a failed import; if only its rank failed, its node may be at fault.

    Programs import some packages on rank 0 only. Ranks that wrote no more than the failed rank may
    have been stopped before the import.
    """
    if not one.rank or one.id not in IMPORTS or not _IMPORT.search(one.line):
        return one
    if {line.rank for line in evidence.lines if _IMPORT.search(line.text)} != {one.rank}:
        return one
    own, others = set[str](), set[str]()
    for line in evidence.lines:
        if line.rank is not None and line.text.strip() and not line.text.startswith("Traceback"):
            (own if line.rank == one.rank else others).add(_NUMBER.sub("0", line.text))
    if others <= own:
        return one
    meaning = IMPORT_OF_ONE
    sentence = meaning.sentence.replace("One rank", f"Rank {one.rank} alone", 1)
    return replace(one, id=meaning.id, sentence=sentence, do=meaning.do)


_TASK = re.compile(r"^srun: error: ([\w.-]+): tasks? ([\d,-]+): (?!Terminated|.*exit code 143\b)")
_OF_MEMORY = ("gpu-memory", STATE_RULES[State.OUT_OF_MEMORY].id)


def _of_task(one: Diagnosis, evidence: Evidence) -> Diagnosis:
    """Return a cause with the only task that srun reports as failed, if no label names its rank."""
    if one.rank is not None or one.id not in _OF_MEMORY or not evidence.log.label_is_rank:
        return one
    tasks = {match.groups() for line in evidence.lines if (match := _TASK.match(line.text))}
    node, task = tasks.pop() if len(tasks) == 1 else ("", "")
    return replace(one, rank=int(task), node=node) if task.isdecimal() else one


def _follows(one: Diagnosis, reasons: Sequence[Diagnosis], *, chained: bool) -> bool:
    """Return whether a reason is normal for its job or follows from another reason."""
    if one.id == STATE_RULES[State.PREEMPTED].id:
        return chained and "DUE TO JOB REQUEUE" in one.line  # a chain requeues its own job
    if one.id == "aborted" or (one.id == _BY_SIGNAL and _ABORT.search(one.line)):
        # After a timeout, PyTorch's watchdog aborts its own process.
        before = reasons[: reasons.index(one)]
        return any(other.id == "exit-abort" for other in reasons) or any(
            other.id == TIMED_OUT for other in before
        )
    if one.id == _VERSION:
        return any(other.id == _CHANGED for other in reasons)
    return one.id == "launch-failed" and any(other.id.startswith("cpu-bind") for other in reasons)


def _after_the_first(reasons: Sequence[Diagnosis]) -> list[Diagnosis]:
    """Return the reasons; if the first one names a rank, no other advises you to find it."""
    first = reasons[0].rank if reasons else None
    if first is None or reasons[0].do.startswith(_FIND):
        return list(reasons)
    do = f"Rank {first} ended first, for the reason above."
    return [replace(one, do=do) if one.do.startswith(_FIND) else one for one in reasons]


def _perhaps(evidence: Evidence) -> Iterator[Diagnosis]:
    """Yield the errors that the program survived, as possible reasons."""
    for one in matches(RULES, replace(evidence, got_over=True)):
        sentence = f"Possibly: {one.sentence} But the program continued after that."
        yield replace(one, sentence=sentence)


_TASK_EXITED = re.compile(r"^srun: error: [^:]*: tasks? [\d,-]+: Exited with exit code (?!143\b)")
"""A task that exited by itself, so that srun ended the other tasks and cancelled the step."""


def _weak(evidence: Evidence) -> list[Diagnosis]:
    exited = any(_TASK_EXITED.match(line.text) for line in evidence.lines)
    ends = {rule.id for rule in WEAK} if exited else set()
    return [item for item in matches(LAST, evidence) if item.id not in ends]


def _by_launcher(ending: RunEnd) -> bool:
    """Return whether the exit file contains a rank although srun's labels are not ranks.

    The rank comes from the launcher's report (lumitui_launcher_failure in the job). If `launcher:`
    is srun but a task starts its own launcher, the number belongs to a node instead.
    """
    return ending.spec is not None and ending.spec.launcher != "srun"


def _killed(reasons: Sequence[Diagnosis], ending: RunEnd, evidence: Evidence) -> list[Diagnosis]:
    """Return the kill in the log, explained by the exit file if that shows more."""
    shown, rank = matches(KILLED, evidence), evidence.failed_rank
    killed = ending.rc == _SIGNAL_9 and ending.state is State.FAILED
    if rank is None or not killed or _memory(reasons):
        return shown
    meaning = OF_THE_FIRST[_SIGNAL_9]
    sentence = meaning.sentence.replace("The program", f"Rank {rank}", 1)
    return [
        replace(one, id=meaning.id, sentence=sentence, do=meaning.do, rank=rank) for one in shown
    ]


def _with_rank(one: Diagnosis, failed_rank: int | None) -> Diagnosis:
    """Return the reason with the failed rank, if the log's line does not name one."""
    if one.rank is not None or failed_rank is None or one.id not in (_BY_SIGNAL, "exception"):
        return one
    sentence = one.sentence.replace("The program raised", f"Rank {failed_rank} raised", 1)
    return replace(one, rank=failed_rank, sentence=sentence)


def _memory(reasons: Sequence[Diagnosis]) -> bool:
    return any(one.id == STATE_RULES[State.OUT_OF_MEMORY].id for one in reasons)


_YOURS = Diagnosis(
    STATE_RULES[State.CANCELLED].id, "You cancelled it.", "Resubmit it if that was a mistake."
)
_LATE = Diagnosis(
    "chain-late",
    "The attempt did not end before its time limit, so no other attempt followed.",
    "Give the program more time to stop: for your own program, increase the seconds in `signal:`. "
    "Then resubmit from the checkpoint.",
)


def _is_ours(rc: int | None, failed_rank: int | None, spec: JobKeys | None) -> bool:
    """Return whether the exit code has lumitui's meaning; a user's own script may use any code."""
    if rc in _OF_TRAINERS:
        chained = spec is not None and spec.chain > 1 and rc == STOPPED_EARLY
        return chained or (spec is not None and spec.trainer is not None)
    strict = spec is not None and spec.proof == "strict" and failed_rank is None
    return strict or rc != _STRICT


_OF_SBATCH = re.compile(r"\b(?:sbatch: )?error: |Batch job submission failed: ")
"""What sbatch writes before the reason."""


def _of_state(
    state: State, word: str, reason: str, rc: int | None, failed_rank: int | None, stop: Meaning
) -> Iterator[Diagnosis]:
    words = plain(" ".join(part for part in (word, reason) if part))
    if rc == STOPPED_EARLY and state is State.FAILED:
        whose = failed_rank if stop.id == "stopped-early" else None
        yield Diagnosis(stop.id, stop.sentence, stop.do, words, whose)
    if (rule_of_state := STATE_RULES.get(state)) is not None:
        sentence, why = rule_of_state.sentence, _OF_SBATCH.sub("", words).strip().rstrip(".")
        if state is State.REFUSED and why:
            sentence = f"{sentence.removesuffix('.')}: {why}."
        yield Diagnosis(rule_of_state.id, sentence, rule_of_state.do, words)


def _of_hang(rc: int | None, evidence: Evidence) -> Iterator[Diagnosis]:
    late = hung(evidence.lines)
    if rc == HUNG or ended(evidence.lines):
        sentence = f"{HANG.sentence} Its last report: {late.sentence}" if late else HANG.sentence
        yield Diagnosis(HANG.id, sentence, HANG.do, "", late.rank if late else None)


def _of_code(rc: int, failed_rank: int | None, reasons: Sequence[Diagnosis]) -> list[Diagnosis]:
    who = "The program" if failed_rank is None else f"Rank {failed_rank}"
    rule = EXIT_CODES.get(rc)
    if failed_rank is not None:
        rule = OF_THE_FIRST.get(rc, rule)
    if rule is None or (rc == _SIGNAL_9 and _memory(reasons)):
        return []
    if rc == _SIGNAL_11 and any(
        one.id == _BY_SIGNAL and failed_rank in (None, one.rank) and _SEGFAULT.search(one.sentence)
        for one in reasons
    ):
        return []
    # The shell could not start the rank's program, so the sentence names the program.
    sentence = rule.sentence if rc in _NOT_STARTED else rule.sentence.replace("The program", who, 1)
    return [Diagnosis(rule.id, sentence, rule.do, f"exit code {rc}", failed_rank)]


def _exceptions(ended_by: Culprit, evidence: Evidence) -> list[Diagnosis]:
    """Return the resource exhausted when the exception was raised, if any, and the exception.

    An exception that no rule explains, and that may have any cause, follows other lines' causes.
    """
    scarce = [rule for rule in RULES if rule.id in SCARCE]
    raised = ended_by.raised
    handled = [
        replace(diagnosis_of(rule, match, line, evidence), rank=line.rank)
        for line in raised.handled
        for rule in scarce
        if (match := rule.pattern.search(line.text))
    ]
    own = _exception(ended_by, evidence)
    if causes := SAYS_NOT_WHY.get(own.id):
        why = [item for item in matches(RULES, evidence) if item.id in causes]
        return [*handled[:1], *why, own]
    if own.id != "exception" or _OF_THE_CODE.match(raised.line.text):
        return [*handled[:1], own]
    while_handled = [
        replace(diagnosis_of(rule, match, line, evidence), rank=line.rank, place=raised.place)
        for line in raised.handled
        for rule in RULES
        if (match := rule.pattern.search(line.text))
    ]
    return [*while_handled[:1], *matches(RULES, evidence), own]


def _exception(ended_by: Culprit, evidence: Evidence) -> Diagnosis:
    """Return the diagnosis of the exception by the rule that explains it, or by its own message."""
    raised = ended_by.raised
    rank = ended_by.rank if raised.line.rank is None else raised.line.rank
    lines = (raised.line, *raised.message, *raised.causes)
    for line, rule in ((line, rule) for table in (RULES, LATE) for line in lines for rule in table):
        if match := rule.pattern.search(line.text):
            reason = diagnosis_of(_by_frames(rule, raised.frames, line.text), match, line, evidence)
            return replace(_of_name(reason, raised, line.text), rank=rank, place=raised.place)
    return _unnamed(raised.line, rank, raised.place, evidence)


def _of_name(one: Diagnosis, raised: Raised, text: str) -> Diagnosis:
    """Return a failed import; if the program's own line did it, its name may be misspelled.

    Python names the first part that it did not find, so what precedes the last dot exists. A name
    without a dot is judged only if a known package has almost the same.
    """
    named = NAME.search(text)
    frames = [frame for frame in raised.frames if not frame.startswith("<frozen ")]
    if one.id not in IMPORTS or not named or not frames or LIBRARY.search(frames[-1]):
        return one
    module, name, of, owner, attribute = named.groups()
    whole = module or f"{of or owner}.{name or attribute}"
    near = [known for known in KNOWN.split("|") if len(whole) > 3 and _one_slip(whole, known)]
    if "." not in whole and not near:
        return one
    place, hint = raised.place.partition(" (")[0], f" ({near[0]}?)" if near else ""
    sentence, do = (words.format(name=whole, place=place, near=hint) for words in MISSPELLED)
    return replace(one, sentence=sentence, do=do + one.do)


def _one_slip(one: str, other: str) -> bool:
    """Return whether two words differ in one letter, or in the order of two letters."""
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return max(len(one), len(other)) <= 1 or (len(one) == 2 and one == other[::-1])


def _by_frames(rule: LogRule, frames: Sequence[str], text: str) -> LogRule:
    """Return the rule for an exception, which may depend on the frames that raised it."""
    own = _PACKAGE.search(text)
    if rule.id == _VERSION and own and frames and f"-packages/{own[1]}/" in frames[-1]:
        return next(one for one in EVERY if one.id == _CHANGED)
    for cause, pattern, other in _RAISED_IN:
        if rule.id == cause and any(pattern.search(frame) for frame in frames):
            return next(one for one in EVERY if one.id == other)
    return rule


def _bare(evidence: Evidence) -> list[Diagnosis]:
    """Return the last exception without a traceback in the log."""
    for number in reversed(range(len(evidence.lines))):
        line = evidence.lines[number]
        if _BARE.match(line.text) and evidence.counts(number):
            if any(rule.pattern.search(line.text) for rule in CONSEQUENCES):
                continue
            if LAUNCHERS.search(line.text):
                continue
            return [_unnamed(line, line.rank, "", evidence)]
    return []


def _unnamed(line: LogLine, rank: int | None, place: str, evidence: Evidence) -> Diagnosis:
    """Return the diagnosis of an exception that no rule explains."""
    who = "The program" if rank is None else f"Rank {rank}"
    if place:
        where = f" at {place}"
        do = "Inspect that line of the code; in the log, the traceback shows how it was reached."
    else:
        where, do = "", "Read the traceback above this line in the log."
    sentence = f"{who} raised an exception{where}."
    at = evidence.log.number_of(line)
    node = node_of(line, rank, evidence)
    return Diagnosis("exception", sentence, do, line.text, rank, place, node, at)


def _distinct(reasons: Sequence[Diagnosis], evidence: Evidence) -> list[Diagnosis]:
    """Return the first diagnosis of each id and of each line of the log.

    A diagnosis from the scheduler or an exit code shows the log's line instead, if one exists.
    """
    written = {line.text for line in evidence.lines}
    ids: set[str] = set()
    lines: set[str] = set()
    kept = []
    for item in reasons:
        shown = item
        if item.line not in written:
            of_log = (one for one in reasons if one.id == item.id and one.line in written)
            if own := next(of_log, None):
                shown = replace(item, line=own.line, number=own.number, node=own.node)
        text = shown.line.strip()
        if shown.id in ids or (text and text in lines):
            continue
        ids.add(shown.id)
        lines.add(text)
        kept.append(shown)
    return kept


_TROUBLE = re.compile(
    r"(?i)error|fatal|exception|abort|fail|cannot|can't|killed|denied|not found|refus"
)
_HARMLESS = re.compile(
    r"(?i)\bwarn(?:ing)?\b|^Traceback|^\s*(?:File |frame #|at )|\b0 (?:failed|errors)"
)
_MOST_TELLTALES = 3


def _telltale_lines(lines: Sequence[LogLine]) -> tuple[str, ...]:
    """Return up to three lines in order: the last that report errors, otherwise the last of all."""
    written = list(dict.fromkeys(text for line in lines if (text := line.text.strip())))
    trouble = [text for text in written if _TROUBLE.search(text) and not _HARMLESS.search(text)]
    return tuple((trouble or written)[-_MOST_TELLTALES:])


def _nothing_known(
    state: State, rc: int | None, failed_rank: int | None, evidence: Evidence
) -> Diagnosis:
    telltales = _telltale_lines(evidence.lines)
    code = "" if rc is None else f" with exit code {rc}"
    why = "the end of its log does not show why"
    do = "Read the whole log from the start of the program."
    if not telltales:
        why = "its log is empty or missing"
        do = "Check that its folder still exists and that the disk is not full."
    return Diagnosis(
        "unknown",
        f"The job is {state}{code}, and {why}.",
        do,
        telltales[-1] if telltales else "",
        failed_rank,
        telling=telltales,
    )
