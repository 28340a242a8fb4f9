"""Queries to a site in one request, each with a name, its sh and its parser.

A query whose command may fail or hang is a part: it has its own time and size limits, and a reason
if it has no answer. For others, the answer is what their sh prints.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lumitui.remote.site.answer_fields import last_words
from lumitui.remote.site.shell_text import fill, quote
from lumitui.remote.transport.records import new_marker, parse_records, record_functions
from lumitui.remote.transport.transport import Transport

MOST_PART = 256 << 10
"""Maximum bytes of a part. One user's 2,000 jobs take about 200 kB."""
MOST_RECORD = 4 << 20
"""Maximum bytes of any other answer, such as thousands of partitions and node types."""
PART_SECONDS = 12
"""Time limit of a part in seconds, if the site has `timeout`."""
_NOT_FOUND = re.compile(r"([^\s:]+): (?:command )?not found")
_FUNCTIONS = r"""{records}
t=; if command -v timeout >/dev/null 2>&1; then t='timeout {seconds}'; fi
fed() {
  kind=$1; shift
  begin "$kind"
  { $t "$@" 2>&1; echo "{status}=$?"; } | head -c {most}; echo
  finish
}
part() { fed "$@" </dev/null; }"""

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Question(Generic[T_co]):
    """One query to a site."""

    name: str
    sh: str
    """The command that prints the answer; for a part, a single command. `$t` before a command sets
    its time limit."""
    read: Callable[[str], T_co]
    """The parser of the answer; for "", the default."""
    command: str = ""
    """The command as shown to users; "": not a part."""
    key: str = ""
    """The profile's key for the command."""
    given: str = ""
    """The command's input."""

    @property
    def framed(self) -> str:
        """The sh that prints its record."""
        if not self.command:
            return f"begin {self.name}\n{self.sh}\nfinish"
        if self.given:
            return f"printf %s {quote(self.given)} | fed {self.name} {self.sh}"
        return f"part {self.name} {self.sh}"


@dataclass(frozen=True)
class SiteAnswers:
    """A site's answers, by the names of the queries."""

    texts: Mapping[str, str]
    faults: Mapping[str, str] = field(default_factory=dict)
    """The reasons for missing answers, one sentence each."""
    words: str = ""
    """The site's last output, for a message if it answered nothing."""

    def of(self, question: Question[T_co]) -> T_co:
        """Return the parsed answer to a query."""
        return question.read(self.texts.get(question.name, ""))


def ask(
    transport: Transport,
    head: str,
    questions: Sequence[Question[object]],
    *,
    timeout: float,
    each: int = PART_SECONDS,
) -> SiteAnswers:
    """Send all queries in one request of at most `timeout` seconds; each command may take `each`.

    `head` is sh that runs first, for example to unset variables that would change the answers.
    """
    marker = new_marker()
    result = transport.run(request(marker, head, questions, each), timeout=timeout)
    answers = read_answers(result.out, marker, questions)
    words = last_words(result.err, result.out, default=f"exit status {result.code}")
    return SiteAnswers(answers.texts, answers.faults, words)


def request(
    marker: str, head: str, questions: Sequence[Question[object]], each: int = PART_SECONDS
) -> str:
    """Return the request: POSIX sh that prints one record per query."""
    functions = fill(
        _FUNCTIONS,
        records=record_functions(marker),
        status=f"{marker}-status",
        seconds=each,
        most=MOST_PART,
    )
    return "\n".join([head, functions, *(one.framed for one in questions), "exit 0"])


def read_answers(output: bytes, marker: str, questions: Sequence[Question[object]]) -> SiteAnswers:
    """Return the answer to each query, or why it is missing; AnswerUnusable if too many came."""
    by_name = {one.name: one for one in questions}
    texts: dict[str, str] = {}
    faults: dict[str, str] = {}
    end = re.compile(rf"{re.escape(marker)}-status=(\d+)\n*\Z")
    for words, content in parse_records(output, marker):
        name = " ".join(words)
        if (question := by_name.get(name)) is None:
            continue
        most = MOST_PART + 200 if question.command else MOST_RECORD
        text = content[:most].decode("utf-8", "replace")
        closing = end.search(text) if question.command else None
        body = text[: closing.start()] if closing else text
        if not question.command or (closing and closing[1] == "0"):
            texts[name] = body
        else:
            faults[name] = _fault(question, closing[1] if closing else "", body)
    for name in by_name:
        if name not in texts:
            faults.setdefault(name, "The site's answer ends too early.")
    return SiteAnswers(texts, faults)


def _fault(question: Question[object], status: str, body: str) -> str:
    """Return why a part has no answer."""
    if not status:
        return f"`{question.command}` prints more than lumitui reads."
    if status == "124":
        return f"`{question.command}` did not answer within {PART_SECONDS} s."
    if status != "127":
        why = last_words(body, default=f"status {status}").rstrip(".")
        return f"`{question.command}` failed: {why}."
    match = _NOT_FOUND.search(body)  # the shell's message
    missing = f"The site has no command `{match[1] if match else question.command.split()[0]}`."
    if question.key:
        return f"{missing} Set the right one in its profile (`{question.key}`)."
    return f"{missing} Run `lumitui site check` to test Slurm on the site."
