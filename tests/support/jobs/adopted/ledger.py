"""Where each word of a script went that became a job file: a check of `lumitui import` of its own.

It reads bash by itself, with none of the program's reader: characters, quotes, comments, heredocs.
"""

import codecs
import re
import shlex
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from lumitui.app.launch.from_script.import_report import ImportReport
from lumitui.remote.site.walltime import seconds_of

_SHELL = {
    "if", "then", "else", "elif", "fi", "for", "in", "do", "done", "while", "until", "case", "esac",
    "function", "select", "{", "}", "[[", "]]", "[", "]", "export", "declare", "typeset",
    "local", "-x",
    "srun", "exec", "bash", "sh", "-c", "-lc", "env", "--", "python",
    "python3", "cd", "module", "load", "ml", "add", "launch", "torchrun", "deepspeed",
    "accelerate", "-m", "--env", "-B", "--bind", "-V", "-A",
    "torch.distributed.run", "singularity", "apptainer", "run", "command", "nohup", "mpirun",
    "-l", "mpiexec", "/bin/bash", "wait", "EOF", "--login", "shell",
    "/usr/bin/env", "torch.distributed.launch", "accelerate.commands.launch",
}  # fmt: skip
"""Words of the shell, and those that only say that something is started."""
_COMMANDS = re.compile(r"(?:^|[\s;/])(?:exec|python3?|srun|torchrun|export|accelerate|deepspeed)\s")
_OPERATORS = set(";&|<>()\n")
_NAMES = {
    "A": "account", "p": "partition", "N": "nodes", "n": "ntasks", "c": "cpus-per-task",
    "t": "time", "J": "job-name", "G": "gpus", "q": "qos", "o": "output", "e": "error",
    "w": "nodelist", "x": "exclude", "C": "constraint", "d": "dependency", "a": "array",
    "D": "chdir", "m": "distribution", "L": "licenses", "b": "begin", "O": "overcommit",
    "i": "input", "s": "oversubscribe", "S": "core-spec", "H": "hold", "k": "no-kill",
}  # fmt: skip


@dataclass(frozen=True)
class Written:
    """What was made of a script."""

    report: ImportReport
    job: str
    """The job file."""
    script: str
    """The script that lumitui writes."""


def unsaid(script: str, written: Written) -> Iterator[str]:
    """Yield each directive, variable and word that is neither in the new script nor spoken of."""
    script = script.replace("\0", " ").replace("\r\n", "\n")
    yield from _directives(script, written)
    told = _told(written)
    values = _values(script)
    has = {word for words in _lines(written.script) for word in words}
    for word in dict.fromkeys(word for words in _lines(script) for word in words):
        bare = _flat(word).removeprefix("./").removeprefix("$RUN_DIR/")
        home = re.sub(r"^~(?=/|$)", "$HOME", bare)
        if bare in _SHELL or not bare or {bare, word} & has or bare in told or home in told:
            continue
        whole = _expanded(bare, values)
        if any(all(part in has or part in told for part in each.split()) for each in whole):
            continue
        variable = re.fullmatch(r"\$\{?(\w+)(?:\[@\])?\}?", bare)
        if variable and f"{variable[1]}={values.get(variable[1], ' ')}" in told:
            continue
        if "," in bare and all(_flat(part) in told for part in bare.split(",")):
            continue
        name, equals, value = bare.partition("=")
        if equals and _mentions(told, name) and re.search(r"(?i)key|token|password", name):
            continue
        named = equals and re.fullmatch(r"[\w-]+\+?", name) and _mentions(told, name.rstrip("+"))
        if not (named and (value in told or value in has or not value)):
            yield f"word: {word}"


def _values(script: str) -> dict[str, str]:
    """Return what the script's plain assignments set, the last one of each name."""
    found = {}
    for name, value in _options(script):
        if name == "account":
            found["SLURM_JOB_ACCOUNT"] = value
    for words in _lines(script):
        for word in words:
            if match := re.fullmatch(r"(\w+)=(.*)", word, re.DOTALL):
                found[match[1]] = _flat(match[2])
    return found


def _expanded(text: str, values: dict[str, str]) -> list[str]:
    """Return a word with the script's own variables put in, once and again."""
    found = list[str]()
    for _ in range(6):
        new = re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda m: values.get(m[1] or m[2], m[0]), text)
        if new == text:
            break
        text = new
        found.append(_flat(text))
    return found


def _told(written: Written) -> str:
    """Return all that the job file says, comments too, with blanks for line breaks."""
    text = re.sub(r"\n\s*#?\s*", " ", written.job)
    return _flat(text + " " + _flat(" ".join(_said(written.report))))


def _said(report: ImportReport) -> Iterator[str]:
    for item in (*report.kept, *report.derived, *report.changed, *report.lost):
        yield f"{item.what} {item.words}"


def _flat(text: str) -> str:
    return " ".join(re.sub(r"[\\\"']", "", text).split())


def _mentions(text: str, name: str) -> bool:
    return bool(re.search(rf"(?<![\w]){re.escape(name)}(?![\w])", text))


def _directives(script: str, written: Written) -> Iterator[str]:
    """Yield the options of sbatch that nothing is said of, and kept ones with another value."""
    ours = dict(_options(written.script))
    report = written.report
    later = dict(_options(script))
    for name, value in _options(script):
        spoken = [text for text in _said(report) if _spoken(text, name, value)]
        parts = {f"--{name}={part}" for part in value.split(",")}
        whole = " ".join(text for text in _said(report) if name in text)
        if not spoken and not all(part in whole for part in parts):
            yield f"directive: --{name}={value}"
        kept = any(_spoken(item.what, name, value) for item in report.kept)
        same = name not in ours or _plain(name, ours[name]) == _plain(name, value)
        changed = any(name in item.what for item in report.changed)
        exact = name in ("account", "partition", "nodes", "time", "signal", "qos", "constraint")
        if kept and exact and value == later[name] and not same and not changed:
            yield f"directive kept with another value: --{name}={value} → {ours.get(name)}"


def _plain(name: str, value: str) -> str:
    """Return a value in one spelling: a time limit in seconds."""
    if name != "time":
        return value.strip('"').upper().replace("SIG", "")
    try:
        return str(seconds_of(value))
    except ValueError:
        return value


def _spoken(text: str, name: str, value: str) -> bool:
    short = next((letter for letter, long in _NAMES.items() if long == name), "")
    if not (_mentions(text, name) or (short and re.search(rf"(?:^|\s)-{short}", text))):
        return False
    return all(_flat(part) in _flat(text) for part in value.split(",")) or "→" in text


def _options(script: str) -> Iterator[tuple[str, str]]:
    """Yield the options of the `#SBATCH` lines above the first command, with their values."""
    for line in script.split("\n"):
        if line.strip() and not line.startswith("#"):
            return
        if not line.startswith("#SBATCH"):
            continue
        lexer = shlex.shlex(line[7:], posix=True, punctuation_chars=False)
        lexer.whitespace_split, lexer.commenters = True, "#"
        words = list(lexer)
        while words:
            word = words.pop(0)
            takes = bool(words) and not words[0].startswith("-")
            if word.startswith("--"):
                name, equals, value = word[2:].partition("=")
                yield name, value if equals else (words.pop(0) if takes else "")
            elif word.startswith("-") and len(word) > 1:
                value = word[2:].removeprefix("=") or (words.pop(0) if takes else "")
                yield _NAMES.get(word[1], word[1]), value


def _lines(script: str) -> Iterator[list[str]]:
    """Yield the words of each command, without comments and operators; a heredoc by its lines."""
    at, word, words, heredocs = 0, "", list[str](), list[str]()
    while at < len(script):
        sign = script[at]
        if sign == "\\" and at + 1 < len(script):
            word += "" if script[at + 1] == "\n" else script[at + 1]
            at += 2
        elif script.startswith("$'", at):
            end = at + 2
            while end < len(script) and script[end] != "'":
                end += 2 if script[end] == "\\" else 1
            word += codecs.decode(script[at + 2 : end], "unicode_escape")
            at = end + 1
        elif sign in "'\"":
            end = _closed(script, at)
            inside = script[at + 1 : end]
            at = end + 1
            if _COMMANDS.search(inside):
                yield from _lines(inside)  # what `bash -c` gets
                continue
            word += inside.replace("\\\n", "")
        elif script.startswith(("$(", "${", "<(", ">("), at):
            end = _nested(script, at + 1)
            word += script[at : end + 1]
            at = end + 1
        elif sign == "`":
            end = script.find("`", at + 1)
            end = len(script) if end < 0 else end
            word += script[at : end + 1]
            at = end + 1
        elif sign == "#" and not word and (at == 0 or script[at - 1] in " \t\n;"):
            at = script.find("\n", at)
            at = len(script) if at < 0 else at
        elif sign in " \t" or sign in _OPERATORS:
            words += [word] if word else []
            word = ""
            start = re.match(r"<<-?\s*(['\"\\]?)(\w+)\1", script[at:])
            if start and not script.startswith("<<<", at):
                heredocs.append(start[2])
                at += start.end()
                continue
            if sign == "\n":
                yield words
                words, at = [], at + 1
                while heredocs:
                    at = yield from _heredoc(script, at, heredocs.pop(0))
                continue
            at += 1
        else:
            word += sign
            at += 1
    yield [*words, word]


def _heredoc(script: str, at: int, mark: str) -> Generator[list[str], None, int]:
    end = re.compile(rf"^[ \t]*{mark}$", re.MULTILINE).search(script, at)
    stop = end.start() if end else len(script)
    for line in script[at:stop].split("\n"):
        yield line.split()
    return end.end() if end else len(script)


def _closed(script: str, at: int) -> int:
    """Return where the quote closes that opens at `at`."""
    sign, place = script[at], at + 1
    while place < len(script) and script[place] != sign:
        if sign == '"' and script[place] == "\\":
            place += 1
        elif sign == '"' and script.startswith("$(", place):
            place = _nested(script, place + 1)
        place += 1
    return place


def _nested(script: str, at: int) -> int:
    """Return where the bracket closes that opens at `at`."""
    opening = script[at]
    closing, depth, place = {"(": ")", "{": "}"}[opening], 0, at
    while place < len(script):
        if script[place] == "\\":
            place += 1
        elif script[place] in "'\"":
            place = _closed(script, place)
        elif script[place] == opening:
            depth += 1
        elif script[place] == closing:
            depth -= 1
            if depth == 0:
                return place
        place += 1
    return len(script) - 1
