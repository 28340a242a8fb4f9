"""The lines of a log for the rules, without the prefixes of loggers and launchers. Pure.

app/knowledge/log_lines.py removes srun's and torchrun's labels; this module removes those of Ray,
Open MPI, accelerate, pdsh and loggers, and reads a line's time and later progress.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lumitui.app.knowledge.log_lines import LogLine, log_line_of, log_of

_MOST_PREFIXES = 4
_PREFIX = re.compile(
    r"\[\d+,(?P<mpi>\d{1,6})\]<std(?:err|out)>: ?"  # mpirun --tag-output
    r"|(?:\[?std(?:err|out)\]?[:|] ?)"  # accelerate
    r"|\([A-Za-z_][\w.]{0,60} (?:rank=\d+, ?)?pid=\d+[^)]{0,40}\) ?"  # Ray
    r"|[0-9a-f]{8} \[rank=(?P<determined>\d{1,6})\] \|\| "  # Determined
    r"|> "  # quoted in a mail
    r"|[\w.-]{1,60} \[std(?:err|out)\] |\[pod/[\w./-]{1,80}\] "  # milabench, kubectl
    r"|\[[\w./:-]{1,60}\] ?(?=\[[\w./:-]{1,60}\]|Traceback|  File |[\w.]*(?:Error|Exception)\b)"
    r"|[\w.-]{1,60} +\| (?=\S)"  # docker compose, journald
    r"|\| (?=\d{4}-\d\d-\d\d[T ])"
    r"|\[?\d{4}-\d\d-\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?: ?\|)?[ :]+"
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d{1,6})?\]? "
    # Only errors: glog marks warnings W and information I.
    r"|\[?[EF]\d{3,4} \d\d:\d\d:\d\d\.\d{1,9} .{0,160}?\] "
    r"|(?:ERROR|CRITICAL|FATAL)[: ]+(?:[\w.]+: )?(?=Traceback| +File |[\w.]+(?:Error|Exception): )"
)
# `worker-3: `, as pdsh writes before each line: a name with a digit, on many lines.
_HOST = re.compile(r"([A-Za-z][\w.-]{0,60}\d[\w.-]{0,20}): ")
_FEWEST_OF_A_HOST = 4
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# The formats of ISO, of glog and of asctime(3), which Cray MPICH uses.
_MOMENT = re.compile(
    r"(?:\d{4}-(?P<month>\d\d)-(?P<day>\d\d)[T _]|\b[IWEF](?P<glog>\d{3,4}) "
    rf"|\b[A-Z][a-z]{{2}} (?P<name>{'|'.join(_MONTHS)}) {{1,2}}(?P<date>\d{{1,2}}) )"
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d(?:[.,]\d{1,9})?)"
)
_COUNT = re.compile(
    r"(?i)\b(?:step|iter|iters|iteration|update|global_step|batch|epoch)\b[\"']?\s*[:=\[(#]*\s*"
    r"(\d{1,9})\b|\| *(\d{1,9})/\d{1,9} \["
)
_OF = re.compile(r"\b(\d{1,9}) ?/ ?\d")
_TROUBLE = re.compile(r"(?i)error|exception|abort|fail")
# Output of a program that continues: a metric of the training, or a success.
_MOVES = re.compile(
    r"(?i)\b(?:loss|perplexity|ppl|accuracy|acc)\b[\"']?\s*[:=]?\s*\d|\d%\||\[ *\d+/\d+\]"
    r"|\b(?:tokens?|samples?|it|images?|examples?|steps?)/s(?:ec)?\b|\bepochs? \d+ \w+"
    r"|\b(?:succeeded|successful|successfully)\b|" + _COUNT.pattern.removeprefix("(?i)")
)
# The same in words that may also be in a script's last line.
_WORKED = re.compile(
    r"(?i)\b(?:saved|written|finished|completed?|loaded|prepared|resolved|connected|started|begins"
    r"|ready|done|chosen|ok)\b"
)
_LAST_WORDS = re.compile(
    r"(?i)^\W*(?:(?:job|script|all|end|run|process|srun|slurm\w*)\b.{0,20}|)"
    r"\b(?:done|finished|completed?)\b(?:\W*$|.{0,9}\b(?:at|on|with)\b|\W*\d)"
)
# The program's reaction to an error, in its next lines.
_ANSWERED = re.compile(
    r"(?i)\b(?:now|instead|retry|again|halv\w+|reduc\w+|lower\w*|smaller|skip\w*|dropp?\w*"
    r"|continu\w+|recover\w*|disabled?|fall\w*|without|resum\w+|switch\w+|try\w*|next)\b"
)
_WENT_ON = 5
"""Number of later steps that show that a program survived an error."""


@dataclass(frozen=True)
class _Said:
    """The lines of one process, by their indices in the log."""

    lines: list[int]
    moves: list[int]
    """Lines that show progress."""
    signs: list[int]
    """Lines that show progress or a success."""


def _who(line: LogLine) -> int | str:
    return line.source if line.rank is None else line.rank


@dataclass(frozen=True)
class Read:
    """A log, prepared for the rules."""

    lines: Sequence[LogLine]
    """Without labels and prefixes."""
    before: int | None
    """Number of lines of the log before the text that was read; None if unknown."""
    label_is_rank: bool
    moments: Mapping[int, tuple[float, ...]]
    """The times of lines that show them: month, day, hour, minute, second."""
    _counts: Mapping[str, Sequence[tuple[int, int]]]
    """By source: the line and the number of each training step."""

    def number_of(self, line: LogLine) -> int | None:
        """Return the number of a line in the whole log, from 1; None if unknown."""
        return None if self.before is None or not line.number else self.before + line.number

    def survived(self, number: int) -> bool:
        """Return whether the program continued for long after a line: its step numbers grow."""
        source = self.lines[number].source
        sources = [source] if self._counts.get(source) else list(self._counts)
        return any(number < self._grows_until.get(of, 0) for of in sources)

    def went_on(self, number: int) -> bool:
        """Return whether the program may have survived a line: it printed progress afterwards.

        Progress only after a traceback proves nothing, because buffered output may appear at the
        program's end. Without a rank, the progress may be other ranks', which stop at their next
        step after a failure; then two steps, or a reaction to the traceback, are required.
        """
        who = _who(self.lines[number])
        said = self._said[who]
        if bisect_right(said.moves, number) == len(said.moves):
            return False
        place = bisect_right(said.lines, number)
        following = (self.lines[at].text for at in said.lines[place : place + 2])
        raised = place > 1 and self.lines[said.lines[place - 2]].text.startswith("  ")
        of_a_rank = isinstance(who, int)
        if raised and not any(map(_ANSWERED.search, following)):
            return of_a_rank and said.moves[0] < number
        signs = said.signs[bisect_right(said.signs, number) :]
        return of_a_rank or len({self._sign(at) for at in signs}) > 1

    def _sign(self, number: int) -> str:
        """Return a key for a sign of progress, equal for ranks that print the same step."""
        text = self.lines[number].text
        return " ".join(map("".join, (*_COUNT.findall(text), *_OF.findall(text)))) or text

    @cached_property
    def _said(self) -> Mapping[int | str, "_Said"]:
        """The lines of each rank, or of each source without a rank."""
        found: dict[int | str, _Said] = {}
        for at, line in enumerate(self.lines):
            said = found.setdefault(_who(line), _Said([], [], []))
            said.lines.append(at)
            if _TROUBLE.search(line.text):
                continue
            if _MOVES.search(line.text):
                said.moves.append(at)
                said.signs.append(at)
            elif _WORKED.search(line.text) and not _LAST_WORDS.search(line.text):
                said.signs.append(at)
        return found

    @cached_property
    def _grows_until(self) -> Mapping[str, int]:
        """By source: the line up to which its step numbers keep growing, as in a training run."""
        return {source: _grows_until(counts) for source, counts in self._counts.items()}

    def moment(self, number: int) -> tuple[float, ...] | None:
        """Return the time of a line, or that of an earlier line of the same source."""
        source = self.lines[number].source
        for at in range(number, max(-1, number - 200), -1):
            if self.lines[at].source == source and at in self.moments:
                return self.moments[at]
        return None


def _grows_until(counts: Sequence[tuple[int, int]]) -> int:
    """Return the index of the last step that enough growing steps follow; 0 if none."""
    grown = 0
    for (at, count), (_, later) in zip(reversed(counts[:-1]), reversed(counts), strict=False):
        grown += later > count
        if grown == _WENT_ON:
            return at
    return 0


def read(tail: str, before: int | None = 0) -> Read:
    """Return the lines of the end of a log, which `before` lines precede."""
    log = log_of(tail)
    hosts = _hosts(log.lines)
    lines = [without_prefix(line, hosts, label_is_rank=log.label_is_rank) for line in log.lines]
    moments = {
        number: moment
        for number, line in enumerate(log.lines)
        if (moment := _moment(f"{line.source} {line.text}")) is not None
    }
    counts: dict[str, list[tuple[int, int]]] = {}
    for number, line in enumerate(lines):
        found = [int(one or other) for one, other in _COUNT.findall(line.text)]
        if found and not _TROUBLE.search(line.text):
            count = max(found)
            counts.setdefault(line.source, []).append((number, count))
    return Read(lines, before, log.label_is_rank, moments, counts)


def without_prefix(line: LogLine, hosts: frozenset[str], *, label_is_rank: bool) -> LogLine:
    """Return a line without the prefixes of loggers and launchers."""
    for _ in range(_MOST_PREFIXES):
        text, who = line.text, ""
        if match := _PREFIX.match(text):
            text, rank = text[match.end() :], line.rank
            if said := match["mpi"] or match["determined"]:
                rank = int(said)
            who = match[0].strip() if said or match[0][0] == "(" else ""
        elif (host := _HOST.match(text)) and host[1] in hosts:
            text, rank, who = text[host.end() :], line.rank, host[1]
        else:
            return line
        inner = log_line_of(text, label_is_rank=label_is_rank) if text[:1] in "[" else None
        source = " ".join(filter(None, (line.source, who, inner.source if inner else "")))
        if inner:
            text, rank = inner.text, rank if inner.rank is None else inner.rank
        line = replace(line, source=source, rank=rank, text=text)
    return line


def _hosts(lines: Sequence[LogLine]) -> frozenset[str]:
    """Return the host names that precede many lines."""
    counts: dict[str, int] = {}
    for line in lines:
        if match := _HOST.match(line.text):
            counts[match[1]] = counts.get(match[1], 0) + 1
    return frozenset(name for name, count in counts.items() if count >= _FEWEST_OF_A_HOST)


def _moment(text: str) -> tuple[float, ...] | None:
    match = _MOMENT.search(text)
    if match is None:
        return None
    if match["glog"]:
        month, day = int(match["glog"][:-2]), int(match["glog"][-2:])
    elif match["name"]:
        month, day = _MONTHS.index(match["name"]) + 1, int(match["date"])
    else:
        month, day = int(match["month"]), int(match["day"])
    second = float(match["second"].replace(",", "."))
    return (month, day, int(match["hour"]), int(match["minute"]), second)
