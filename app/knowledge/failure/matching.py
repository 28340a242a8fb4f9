"""Matches between log lines and rules, limited to lines about the job's end. Pure.

A line without the literal texts of a pattern is skipped. Python's own parser finds these texts; a
pattern without any is tried on every line.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import dropwhile
from re import _constants as kinds  # type: ignore[attr-defined]  # private, since Python 3.11
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from lumitui.app.knowledge.causes.cause_table import EVERY, SCARCE
from lumitui.app.knowledge.causes.file_causes import ABSENT
from lumitui.app.knowledge.causes.meanings import LogRule
from lumitui.app.knowledge.causes.resource_causes import REFUSED, REFUSED_SOME
from lumitui.app.knowledge.failure.diagnosis import Diagnosis
from lumitui.app.knowledge.failure.hangs import hung, straggler
from lumitui.app.knowledge.failure.message_lines import Read
from lumitui.app.knowledge.log_lines import LogLine

Texts = frozenset[str] | None


def literals(pattern: str) -> Texts:
    """Return lower-case texts, one of which is in every matching line; None if unknown."""
    return _texts_of(parser.parse(pattern))


def _texts_of(items: Any) -> Texts:
    """Return the longest texts of a sequence, which exclude the most lines."""
    best, run = None, ""
    for kind, value in items:
        if kind is kinds.LITERAL:
            run += chr(value).lower()
            continue
        repeated = kind is kinds.MAX_REPEAT and value[0] > 0 and list(value[2])
        if repeated and all(inner is kinds.LITERAL for inner, _ in repeated):
            run += "".join(chr(code).lower() for _, code in repeated)
        best = _better(best, frozenset({run}) if run else None)
        best, run = _better(best, _texts(kind, value)), ""
    return _better(best, frozenset({run}) if run else None)


def _texts(kind: Any, value: Any) -> Texts:
    """Return the texts of a part of a pattern; None if it may be empty, or matches many texts."""
    if kind is kinds.BRANCH:
        branches = [_texts_of(branch) for branch in value[1]]
        known = [texts for texts in branches if texts]
        return frozenset().union(*known) if len(known) == len(branches) else None
    if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT):
        return _texts_of(value[2]) if value[0] else None
    if kind is kinds.SUBPATTERN:
        return _texts_of(value[3])
    return _texts_of(value) if kind is kinds.ATOMIC_GROUP else None


def _better(one: Texts, other: Texts) -> Texts:
    """Return the set whose shortest text is longer."""
    if one is None or other is None:
        return one if other is None else other
    return max(one, other, key=lambda texts: min(map(len, texts)))


# slurmstepd adds its node when it writes to a labelled log.
_SLURM = re.compile(r"^(?:srun|slurmstepd(?:-\S+)?): ")
_ENDED_BY_SLURM = ("time-limit", "node-failed", "preempted", "host-memory")
_SIGNALS = {
    "-4": "Illegal instruction",
    "-6": "Aborted",
    "-7": "Bus error",
    "-8": "Floating point exception",
    "-11": "Segmentation fault",
}
"""The exit codes that torchrun shows for processes that a signal ended (signal(7))."""
SAYS_NOT_WHY = {
    "container": SCARCE,
    "data-worker": SCARCE | {"host-memory", "shared-memory"},
    "gpu-fault": frozenset({"gpu-hardware"}),
    "gpu-error": frozenset({"gpu-hardware"}),
    "shared-memory": frozenset({"open-files"}),
}
"""Rules whose lines do not show the reason, and the causes that precede them."""
_STEP_REFUSED = "step-refused"
TIMED_OUT = "collective-timeout"
STEP_WAITED = "step-waited"
"""The cause of a reached time limit or of a cancel, which it precedes."""
_WAITS = re.compile(
    r"^srun: .*[Ss]tep creation|^(?:srun|slurmstepd\S*): .*(?:CANCELLED|aborted|Terminat|Cancelled)"
)
"""Lines after a step that waited until the job's end."""
_TASK_ENDED = re.compile(r"^srun: error: [^:]*: tasks? \d")
# A program survives warnings of Python, of logging and of PyTorch (`[W… file.cpp:1]` and `W1121 …
# file.py:1]`), but not NCCL's: it warns about errors that end the program.
_HARMLESS = re.compile(
    r"^libibverbs: Warning|^\[W[ \d]|^W\d{4} (?!.*death signal)|\b[A-Z]\w*Warning: |\bNCCL INFO\b"
    r"|^\[?(?:INFO|DEBUG)\b|[\[|:\s-](?:INFO|DEBUG)[\]|:\s]"
    r"|^\s{4,}(?:raise|return|assert|if|for|with|except|print|logger|logging|warnings)\b"
    r"|(?i:\b(?:retrying|trying again|trying batch|will retry|retry \d|falling back|fall back to"
    r"|skipp(?:ed|ing) (?:batch|sample|step|file|mount)|ignor(?:ed|ing)\b|recovered"
    r"|(?<!permission denied: )going to \S+ instead)\b)"
    r"|^\s*(?:\+ |#|>>> )"
    # A list of possible causes.
    r"|(?:causes|reasons)\b.{0,40}\(1\)"
)
_WARNING = re.compile(r"\bWARN(?:ING)?\b")
_NCCL_WARNS = re.compile(r"\b[NR]CCL WARN|\.(?:h|cc|cu|cpp):\d+ WARN")
# Lines that name their node: Slurm's and NCCL's (`nid005001:71:92 [0]`).
_NODE = re.compile(
    r"^srun: error: ([\w.-]+): tasks? |^slurmstepd-([\w.-]+): | ON ([\w.-]+) CANCELLED AT"
    r"|[Nn]ode failure on ([\w.-]+)|failed on node ([\w.-]+)|^([\w.-]+):\d+:\d+ \[\d+\]"
)
# torchrun's report, and srun's list of tasks.
_HOST = re.compile(r"^\s*host\s*: ([\w.-]+)")
_RANK_OF_HOST = re.compile(r"^\s*rank\s*: (\d{1,6}) \(local_rank")
_TASKS = re.compile(r"^srun: error: ([\w.-]+): tasks? ([\d,-]{1,200}): ")
_BEGIN = 4
"""Length of the beginning by which texts are looked up, in characters."""
_FIRST, _LAST = 1000, 2000
"""Number of first and last lines to read of those that a rule may match, if there are very many."""

_DIGITS = re.compile(r"\d+")
_ALLOCATED = re.compile(r"allocat(?:e|ion of) ((\d{1,30}) bytes|[\d.]+ ?[KMGT]i?B)")
_WHAT = 160
"""Maximum length of a quote from a line, in characters; it ends at a word."""
_ALIKE = 100
"""Of lines that differ only in numbers, how many to read at the start and at the end."""


@dataclass(frozen=True)
class Evidence:
    """The log, and the known facts of its ranks."""

    log: Read
    failed_rank: int | None
    world_size: int | None
    aside: frozenset[int] = frozenset()
    """Lines that did not end the job, such as exceptions if a signal ended the rank."""
    stopped: bool = False
    """Whether Slurm ended the job: at its time limit, or because a user cancelled it."""
    got_over: bool = False
    """Whether only lines count after which the program continued."""

    @property
    def lines(self) -> Sequence[LogLine]:
        """The log's lines, without labels."""
        return self.log.lines

    @cached_property
    def candidates(self) -> Sequence[int]:
        """The lines that a rule may match, without most of those that differ only in numbers."""
        alike: dict[str, list[int]] = {}
        for at, line in enumerate(self.lines):
            if "NCCL INFO" not in line.text and _may_fit(line.text):
                alike.setdefault(_DIGITS.sub("0", line.text), []).append(at)
        kept = (
            at if len(at) <= 2 * _ALIKE else at[:_ALIKE] + at[-_ALIKE:] for at in alike.values()
        )
        found = sorted(number for numbers in kept for number in numbers)
        return found if len(found) <= _FIRST + _LAST else found[:_FIRST] + found[-_LAST:]

    @cached_property
    def fits(self) -> Sequence[tuple[int, LogRule, re.Match[str]]]:
        """The candidates with each rule that they match, cached because several tables use them."""
        asked = ((at, rule) for at in self.candidates for rule in _may_fit(self.lines[at].text))
        found = ((at, rule, rule.pattern.search(self.lines[at].text)) for at, rule in asked)
        return [(at, rule, match) for at, rule, match in found if match]

    def counts(self, number: int) -> bool:
        """Return whether a line may be about the job's end."""
        text = self.lines[number].text
        if number in self.aside:
            return False
        went_on = self.log.survived(number) or (self.log.went_on(number) and not _SLURM.match(text))
        if went_on is not self.got_over:
            return False
        warning = _WARNING.search(text) and not _NCCL_WARNS.search(text)
        return not warning and _HARMLESS.search(text) is None


def matches(
    rules: Sequence[LogRule], evidence: Evidence, *, only_slurm: bool = False
) -> list[Diagnosis]:
    """Return a diagnosis for each rule that matches, in the order of the events.

    Lines of the first failed rank, and lines without a rank, precede the others.
    """
    fits: dict[int, list[tuple[int, re.Match[str]]]] = {}
    orders = {id(rule): order for order, rule in enumerate(rules)}
    for number, rule, match in evidence.fits:
        order = orders.get(id(rule))
        if order is not None and _about_the_end(rule, number, evidence, only_slurm=only_slurm):
            fits.setdefault(order, []).append((number, match))
    first = []
    for order, found in fits.items():
        key = _in_time([number for number, _ in found], evidence)
        number, match = min(found, key=lambda item: key[item[0]])
        first.append((number, order, match))
    key = _in_time([number for number, *_ in first], evidence)
    ids = {rules[order].id for _, order, _ in first}
    first.sort(
        key=lambda item: (
            not ids.isdisjoint(SAYS_NOT_WHY.get(rules[item[1]].id, ())),
            key[item[0]],
            item[1],
        )
    )
    return [
        diagnosis_of(rules[order], match, evidence.lines[number], evidence)
        for number, order, match in first
    ]


@cache
def _rules_by_begin() -> Mapping[str, Sequence[tuple[str, LogRule]]]:
    """Return the rules and the texts that a line must contain, by the beginning of the text.

    Rules whose text is shorter or unknown are under "".
    """
    by_begin: dict[str, list[tuple[str, LogRule]]] = {}
    for rule in EVERY:
        for text in literals(rule.pattern.pattern) or ("",):
            begin = text[:_BEGIN] if len(text) >= _BEGIN else ""
            by_begin.setdefault(begin, []).append((text, rule))
    return by_begin


@lru_cache(maxsize=8192)
def _may_fit(line: str) -> Sequence[LogRule]:
    """Return the rules that a line may match: few, and none for most lines."""
    lower, rules = line.lower(), _rules_by_begin()
    begins = {lower[at : at + _BEGIN] for at in range(len(lower) - _BEGIN + 1)}
    found = {
        id(rule): rule
        for begin in ("", *(begins & rules.keys()))
        for text, rule in rules.get(begin, ())
        if text in lower
    }
    return tuple(found.values())


def _in_time(numbers: Sequence[int], evidence: Evidence) -> dict[int, tuple[object, ...]]:
    """Return the sort keys of lines: other ranks last, then by time if all lines show it."""
    moments = {number: evidence.log.moment(number) for number in numbers}
    timed = all(moments.values())
    keys: dict[int, tuple[object, ...]] = {}
    for number in numbers:
        rank = evidence.lines[number].rank
        other = evidence.failed_rank is not None and rank not in (None, evidence.failed_rank)
        keys[number] = (other, moments[number] if timed else (), number)
    return keys


def _about_the_end(rule: LogRule, number: int, evidence: Evidence, *, only_slurm: bool) -> bool:
    """Return whether a line that matches a rule is about the job's end."""
    text = evidence.lines[number].text
    if only_slurm:
        return rule.id in _ENDED_BY_SLURM and _SLURM.match(text) is not None
    if rule.id == STEP_WAITED:
        # If a program ran afterwards, the step got its resources.
        after = [line.text for line in evidence.lines[number:] if line.text.strip()]
        ended = evidence.stopped or len(after) > 1 or number > 0
        return ended and all(map(_WAITS.match, after))
    if rule.id == _STEP_REFUSED and "already complet" in text:
        # A step after the ranks' end is not the ranks' own.
        before = evidence.lines[:number]
        return not any(line.source or _TASK_ENDED.match(line.text) for line in before)
    return evidence.counts(number)


def diagnosis_of(
    rule: LogRule, match: re.Match[str], line: LogLine, evidence: Evidence
) -> Diagnosis:
    """Return the diagnosis of a line by the rule that it matches."""
    groups = match.groupdict()
    named = groups.pop("rank", None)
    rank = int(named) if named else line.rank
    what = next((text for text in groups.values() if text), "see the line")
    what = _SIGNALS.get(what, what).strip().rstrip(".")
    if what.endswith(":"):  # Lmod writes the modules' names on the next line
        what = " ".join([what, *_next_text(line, evidence)])
    what, _, more = what.partition(". ") if rule.id == "usage" else (what, "", "")
    do = f"{more}." if more else rule.do  # a program that refuses to start may suggest a fix
    if rule.id == "no-file" and what.lstrip("'\"").startswith("/"):
        do = ABSENT
    if len(what) > _WHAT:
        what = f"{what[:_WHAT].rpartition(' ')[0] or what[:_WHAT]} …"
    sentence = rule.sentence.replace("{what}", what)
    if groups.get("refused"):
        sentence, do = _of_refused(line.text, do)
    if rule.id == TIMED_OUT:
        late = hung(evidence.lines) or straggler(evidence.lines, evidence.world_size)
        if late is None:  # the rank that reports it, on its node, is one of those that waited
            at = evidence.log.number_of(line)
            return Diagnosis(rule.id, sentence, do, line.text, number=at)
        rank, sentence = late.rank, f"{sentence} {late.sentence}"
    at = evidence.log.number_of(line)
    node = node_of(line, rank, evidence)
    return Diagnosis(rule.id, sentence, do, line.text, rank, node=node, number=at)


def _of_refused(text: str, do: str) -> tuple[str, str]:
    """Return what happened if a process got no main memory, and what to try."""
    if (size := _ALLOCATED.search(text)) is None:
        return REFUSED_SOME, do
    what, in_bytes = size.groups()
    if in_bytes:
        what = f"{int(in_bytes) / 2**30:,.1f} GiB".replace(".0 ", " ")
    return REFUSED.sentence.replace("{what}", what), REFUSED.do


def _next_text(line: LogLine, evidence: Evidence) -> list[str]:
    """Return the text of the next line of the same rank; empty if it has none."""
    rest = dropwhile(lambda other: other is not line, evidence.lines)
    own = [other.text.strip() for other in rest if other.rank == line.rank][1:2]
    return [text for text in own if text]


def node_of(line: LogLine, rank: int | None, evidence: Evidence) -> str:
    """Return the node that a line names, or the node of its rank according to Slurm or torchrun."""
    for text in (line.text, line.source):
        if match := _NODE.search(text):
            return next(name for name in match.groups() if name)
    if rank is None:
        return ""
    host = ""
    for other in evidence.lines:
        if found := _HOST.match(other.text):
            host = found[1]
        elif (found := _RANK_OF_HOST.match(other.text)) and int(found[1]) == rank:
            return host
        elif (found := _TASKS.match(other.text)) and _named(rank, found[2], evidence):
            return found[1]
    return ""


def _named(rank: int, tasks: str, evidence: Evidence) -> bool:
    """Return whether srun's list of tasks contains a rank."""
    parts = [part for part in tasks.split(",") if part.strip("-")]
    return evidence.log.label_is_rank and any(_within(rank, part) for part in parts)


def _within(rank: int, part: str) -> bool:
    first, _, last = part.partition("-")
    return int(first) <= rank <= int(last or first)
