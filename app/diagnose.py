"""Why did it fail? Rules over Slurm's words and the end of the log. Pure.

A rule is one row of a table. The log is remote text: it is data, shown without its control
characters, and nothing in it can make this raise.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lumitui.app.symptoms import CONSEQUENCES, EXIT_CODES, RULES, STATE_RULES, Rule
from lumitui.remote.scheduler import State

_LINES = 20_000
_WIDTH = 1000
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
# srun --label writes `3: `, padded; PyTorch `[rank3]: `, its launcher `[default3]:`.
_LABEL = re.compile(r"^ *(\d{1,6}): ?")
_RANK = re.compile(r"^\[(?:rank|default)(\d{1,6})\]: ?")
_LAUNCHER = re.compile(r"torch[./]distributed[./](?:elastic|run|launcher)|Root Cause \(first")
# A traceback ends at its first line that is not indented; in torchrun's report all of it is.
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(?::|$)|^\s+[A-Za-z_][\w.]*(?:Error|Exception)(?::|$)")
_ROOT = re.compile(r"Root Cause \(first observed failure\)")
_ROOT_RANK = re.compile(r"^\s*rank\s*: (\d{1,6}) \(local_rank")
_WATCHDOG = re.compile(
    r"\[Rank (\d{1,6})\].*Watchdog caught collective operation timeout.*?SeqNum=(\d{1,12})"
)
_ENQUEUED = re.compile(r"\[Rank (\d{1,6})\].*last enqueued (?:NCCL )?work: (\d{1,12})")
_DESYNC = re.compile(r"^\s*- \[(\d{1,6})(?:, \d+)*\] (?:joined|never|finished|not)")


STOPPED_EARLY = 85
"""The bundled trainers' exit code when they saved on a signal (trainers/ranks.py)."""


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


@dataclass(frozen=True)
class _Line:
    rank: int | None
    text: str


def diagnose(
    state: State, word: str, reason: str, rc: int | None, failed_rank: int | None, log_tail: str
) -> list[Diagnosis]:
    """Return why a run failed, the likeliest reason first; nothing for one that did not fail.

    First what the scheduler itself decided, then causes in the order in which the log shows
    them, then the first rank's traceback, then what is mostly a consequence of another rank's
    end, and the exit code when nothing else is known.
    """
    if state is State.DONE or not (state.is_final or state is State.UNKNOWN):
        return []
    lines, label_is_rank = _lines(log_tail)
    if not label_is_rank:
        # What srun named is a node's launcher.
        failed_rank = None
    found = list(_of_state(state, word, reason, rc, failed_rank))
    found += _matches(RULES, lines)
    if (raised := _traceback(lines, failed_rank)) is not None:
        found.append(raised)
    found += _matches(CONSEQUENCES, lines)
    if rc and rc not in (1, 85):
        found += _of_code(rc, failed_rank)
    return _distinct(found) or [_nothing_known(state, rc, failed_rank, lines)]


def clean(text: str) -> str:
    """Return one line of remote text without escape sequences and control characters."""
    text = _ESCAPE.sub("", text).replace("\t", " ")
    return "".join(char for char in text if char.isprintable())[:_WIDTH]


def _lines(log: str) -> tuple[list[_Line], bool]:
    """Return the log's lines, and whether srun's labels are ranks."""
    texts = [clean(line[: 4 * _WIDTH]) for line in log.splitlines()[-_LINES:]]
    # Under a launcher a node, srun's label is the node's, not the rank's.
    label_is_rank = not any(_LAUNCHER.search(text) for text in texts)
    lines = []
    for text in texts:
        rank = None
        if label := _LABEL.match(text):
            text = text[label.end() :]
            rank = int(label[1]) if label_is_rank else None
        if own := _RANK.match(text):
            text, rank = text[own.end() :], int(own[1])
        lines.append(_Line(rank, text.rstrip()))
    return lines, label_is_rank


def _of_state(
    state: State, word: str, reason: str, rc: int | None, failed_rank: int | None
) -> Iterator[Diagnosis]:
    words = clean(" ".join(part for part in (word, reason) if part))
    if rc == STOPPED_EARLY and state is State.FAILED:
        rule = EXIT_CODES[85]
        yield Diagnosis(rule.id, rule.sentence, rule.do, words, failed_rank)
    if (rule_of_state := STATE_RULES.get(state)) is not None:
        yield Diagnosis(rule_of_state.id, rule_of_state.sentence, rule_of_state.do, words)


def _of_code(rc: int, failed_rank: int | None) -> list[Diagnosis]:
    who = "The program" if failed_rank is None else f"Rank {failed_rank}"
    rule = EXIT_CODES.get(rc)
    if rule is None:
        return []
    sentence = rule.sentence.replace("The program", who, 1)
    return [Diagnosis(rule.id, sentence, rule.do, f"exit code {rc}", failed_rank)]


def _matches(rules: Sequence[Rule], lines: Sequence[_Line]) -> list[Diagnosis]:
    """Return a diagnosis for each rule that fits, in the order of the rules' first lines."""
    first: list[tuple[int, int, Diagnosis]] = []
    for order, rule in enumerate(rules):
        for number, line in enumerate(lines):
            if match := rule.pattern.search(line.text):
                first.append((number, order, _diagnosis(rule, match, line, lines)))
                break
    return [diagnosis for _, _, diagnosis in sorted(first, key=lambda item: item[:2])]


def _diagnosis(rule: Rule, match: re.Match[str], line: _Line, lines: Sequence[_Line]) -> Diagnosis:
    groups = match.groupdict()
    named = groups.pop("rank", None)
    rank = int(named) if named else line.rank
    what = next((text for text in groups.values() if text), "see the line")
    sentence = rule.sentence.replace("{what}", what.strip().rstrip(".")[:120])
    if rule.id == "collective-timeout" and (late := _laggard(lines)) is not None:
        rank = late
        sentence = f"{sentence} Rank {late} is the one that did not come."
    return Diagnosis(rule.id, sentence, rule.do, line.text, rank)


def _laggard(lines: Sequence[_Line]) -> int | None:
    """Return the rank the others waited for; None where the log does not tell.

    PyTorch names it in its desync report; else it is the one with the least work enqueued, or
    the only rank of the log whose own watchdog saw nothing.
    """
    works: dict[int, int] = {}
    waiting: set[int] = set()
    ranks = {line.rank for line in lines if line.rank is not None}
    for line in lines:
        if match := _DESYNC.match(line.text):
            return int(match[1])
        if match := _WATCHDOG.search(line.text):
            waiting.add(int(match[1]))
            works.setdefault(int(match[1]), int(match[2]))
        if match := _ENQUEUED.search(line.text):
            works[int(match[1])] = int(match[2])
    least = [rank for rank, work in works.items() if work == min(works.values())]
    if len(set(works.values())) > 1 and len(least) == 1:
        return least[0]
    silent = ranks - waiting
    return silent.pop() if waiting and len(silent) == 1 else None


def _traceback(lines: Sequence[_Line], failed_rank: int | None) -> Diagnosis | None:
    """Return the exception that was raised first: of the rank named first, else in time."""
    raised = [
        line
        for line in _exceptions(lines)
        if not any(rule.pattern.search(line.text) for rule in CONSEQUENCES)
    ]
    if not raised:
        return None
    named = _root_rank(lines)
    named = failed_rank if named is None else named
    # A traceback without a rank may be the named one's.
    first = next((line for line in raised if named is not None and line.rank == named), raised[0])
    rank = named if first.rank is None else first.rank
    who = "The program" if rank is None else f"Rank {rank}"
    return Diagnosis(
        "exception",
        f"{who} raised an exception.",
        "Read the traceback above this line in the log; it names file and line.",
        first.text,
        rank,
    )


def _exceptions(lines: Sequence[_Line]) -> Iterator[_Line]:
    """Yield the last line of each traceback, in the order in which the tracebacks began."""
    ends: dict[int, _Line] = {}
    began: dict[int | None, int] = {}
    for number, line in enumerate(lines):
        if "Traceback (most recent call last)" in line.text:
            began[line.rank] = number
        elif line.rank in began and _RAISED.match(line.text):
            if "ChildFailedError" not in line.text:
                ends[began[line.rank]] = _Line(line.rank, line.text.strip())
            del began[line.rank]
    for number in sorted(ends):
        yield ends[number]


def _root_rank(lines: Sequence[_Line]) -> int | None:
    """Return the rank in torchrun's block of the first observed failure."""
    for number, line in enumerate(lines):
        if _ROOT.search(line.text):
            for after in lines[number + 1 : number + 8]:
                if match := _ROOT_RANK.match(after.text):
                    return int(match[1])
    return None


def _distinct(found: Sequence[Diagnosis]) -> list[Diagnosis]:
    """One diagnosis an id and a line: a rule tells more than the traceback of the same line."""
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
    state: State, rc: int | None, failed_rank: int | None, lines: Sequence[_Line]
) -> Diagnosis:
    last = next((line for line in reversed(lines) if line.text.strip()), _Line(None, ""))
    code = "" if rc is None else f" with exit code {rc}"
    return Diagnosis(
        "unknown",
        f"The job is {state}{code}, and nothing in the end of its log says why.",
        "Read the whole log, from where the program began.",
        last.text,
        failed_rank,
    )
