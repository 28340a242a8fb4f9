"""The `#SBATCH` lines of a script, parsed as sbatch does."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lumitui.app.knowledge.bash.expand import ExpandedWord
from lumitui.app.knowledge.bash.getopt import Strange, parse
from lumitui.app.knowledge.bash.option_tables import SBATCH
from lumitui.app.knowledge.bash.origins import File, Piece
from lumitui.app.knowledge.script_job import CommandOptions, CommandWord, Trouble

BYTE_ORDER_MARK = "\ufeff"
"""Byte order mark that some Windows editors put before a text. It is not part of the script."""
_MAGIC = "#SBATCH"
_NEARLY = re.compile(
    r"^(\s+#SBATCH|\s*#\s+SBATCH|\s*#(?!SBATCH)[Ss][Bb][Aa][Tt][Cc][Hh]|#S[BATCH]{4,6}):?\s+-"
)
"""Does not match `##SBATCH`, which disables a line."""
_TOKEN = re.compile(r"""(?:\\.|'[^']*'|"(?:\\.|[^"])*"|[^\s'"\\]|['"\\])+""")
_PART = re.compile(r"""\\(?P<escaped>.)|'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<plain>.)""")


@dataclass(frozen=True)
class Directives:
    """The parts of a script that sbatch reads."""

    options: CommandOptions
    shebang: str
    troubles: tuple[Trouble, ...]


def read_directives(text: str) -> Directives:
    """Read the options of a script's `#SBATCH` lines above its first command."""
    file = File(text)
    troubles = list(_first_line(file))
    arguments: list[ExpandedWord] = []
    offset, ended, inside_heredoc, component = 0, False, "", 0
    for line in text.split("\n"):
        stripped = line.strip()
        if inside_heredoc:
            inside_heredoc = "" if stripped == inside_heredoc else inside_heredoc
        elif line.startswith(_MAGIC) and not ended:
            found, strange = _line(file, offset, line)
            component += line[len(_MAGIC) :].strip() in ("hetjob", "packjob")
            arguments += found if component == 0 else []
            troubles += strange
        elif line.startswith(_MAGIC):
            troubles.append(
                Trouble(
                    "directive-after-command",
                    f"sbatch ignores `{stripped[:60]}`, because a command precedes it.",
                    file.position(offset, offset + len(line)),
                )
            )
        elif not ended and _NEARLY.match(line):
            troubles.append(
                Trouble(
                    "nearly-a-directive",
                    f"`{stripped[:60]}` is a comment for sbatch, which reads lines that begin with "
                    "`#SBATCH`.",
                    file.position(offset, offset + len(line)),
                )
            )
        if stripped and not stripped.startswith("#"):
            ended = True
            started = re.search(r"<<-?\s*['\"]?(\w+)", line)
            inside_heredoc = started[1] if started and not inside_heredoc else inside_heredoc
        offset += len(line) + 1
    parsed = parse(arguments, SBATCH)
    troubles += map(_strange, parsed.strange)
    rest = parsed.rest
    while rest < len(arguments):
        word = arguments[rest]
        troubles.append(
            Trouble(
                "stray-word",
                f"`{word.text}` is neither an option nor the value of one: sbatch refuses the job, "
                "or ignores what follows.",
                word.at,
            )
        )
        more = parse(arguments, SBATCH, rest + 1)
        parsed.options = CommandOptions(parsed.options.all + more.options.all)
        rest = max(more.rest, rest + 1)
    shebang = text.split("\n", 1)[0].strip() if text.startswith("#!") else ""
    return Directives(parsed.options, shebang, tuple(troubles))


def _first_line(file: File) -> Iterator[Trouble]:
    first = file.text.split("\n", 1)[0]
    at = file.position(0, len(first))
    if not file.text.strip():
        yield Trouble("bad-shebang", "The script is empty.", at)
    elif not first.startswith("#!"):
        words = "its first line is empty" if not first.strip() else "its first line names none"
        yield Trouble(
            "bad-shebang", f"sbatch refuses a script without an interpreter: {words}.", at
        )
    elif not first[2:].strip().startswith("/"):
        yield Trouble(
            "bad-shebang", f"`{first[:60]}` does not give the path of an interpreter.", at
        )


def _line(file: File, offset: int, line: str) -> tuple[list[ExpandedWord], list[Trouble]]:
    words: list[ExpandedWord] = []
    troubles: list[Trouble] = []
    if line[len(_MAGIC) :].strip() in ("hetjob", "packjob"):
        at = file.position(offset, offset + len(line))
        message = "The job is heterogeneous (`hetjob`); lumitui reads only its first component."
        return [], [Trouble("not-understood", message, at)]
    for match in _TOKEN.finditer(line, len(_MAGIC)):
        if match[0].startswith("#"):
            break
        start, end = offset + match.start(), offset + match.end()
        at = file.position(start, end)
        text = _unquoted(match[0])
        piece = Piece(text, file, start)
        words.append(ExpandedWord(CommandWord(text, at, value=text), (piece,)))
        if "$" in text:
            message = f"sbatch does not expand variables: it takes `{text[:60]}` literally."
            troubles.append(Trouble("directive-with-variable", message, at))
        if len(re.findall(r"(?<!\\)\"", match[0])) % 2 and "'" not in match[0]:
            message = f"The quote in `{match[0][:60]}` is not closed."
            troubles.append(Trouble("unclosed-quote", message, at))
    return words, troubles


def _unquoted(text: str) -> str:
    return _PART.sub(
        lambda match: next((each for each in match.groups() if each is not None), ""), text
    )


def _strange(item: Strange) -> Trouble:
    if item.missing_value:
        return Trouble("unknown-directive", f"`{item.text}` has no value.", item.at, "cut")
    if item.candidates:
        names = ", ".join(f"--{name}" for name in item.candidates)
        message = f"sbatch refuses `{item.text}`, because several options begin with it: {names}."
        return Trouble("unknown-directive", message, item.at, "cut")
    return Trouble("unknown-directive", f"sbatch has no option `{item.text}`.", item.at)
