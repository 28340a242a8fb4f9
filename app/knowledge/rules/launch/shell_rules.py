"""Rules about the batch script as a shell script: what hides a failure, or wastes hours."""

import re
from collections import Counter
from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.model.source_position import Position
from lumitui.app.knowledge.model.steps import Command
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.app.knowledge.site_facts.site_places import has_unknown_sources
from lumitui.app.knowledge.site_facts.variable_names import is_mentioned, uses
from lumitui.remote.site.profile import Site

_LONG_SLEEP = 60
"""Seconds; a shorter pause lets files arrive and costs little."""
_BASH = "bash(1)"


def _sets(job: Job, option: str, letter: str) -> Command | None:
    """Return the `set` of the batch script that switches a shell option on; None: none does."""
    for command in job.commands:
        words = [word.text for word in command.words]
        if command.program != "set" or command.shell != "batch":
            continue
        letters = "".join(word for word in words if re.fullmatch(r"-[a-zA-Z]+", word))
        if option in words and any(re.fullmatch(r"-[a-zA-Z]*o", word) for word in words):
            return command
        if letter and letter in letters:
            return command
    return None


def _lines(job: Job) -> Iterator[tuple[int, str]]:
    """Yield the script's lines with their numbers, without comments of a whole line."""
    for number, line in enumerate(job.text.split("\n"), 1):
        if not line.lstrip().startswith("#"):
            yield number, line


@rule(
    "exit-code-lost",
    "warning",
    "a launch whose exit code a pipe hides",
    why="Without pipefail the exit code of a pipe is that of its last command. The job is "
    "COMPLETED for Slurm although the program failed, and jobs that depend on it start.",
    source=f"{_BASH}, pipefail",
)
def exit_code_lost(job: Job, site: Site) -> Iterator[Hit]:
    """Find `srun python train.py | tee train.log` without pipefail."""
    if _sets(job, "pipefail", ""):
        return
    if "PIPESTATUS" in job.text:
        return
    for step in job.training:
        last = max(step.at.end_line, step.at.line)
        for command in job.commands:
            behind = step.at.line <= command.at.line <= last + 1 and command.shell == "batch"
            if command.program == "tee" and behind and _is_piped(job, command):
                yield Hit(
                    "The exit code of the launch is lost behind `| tee`: the job counts as "
                    "completed when the program fails.",
                    "Write `set -o pipefail` before it, or name the log with --output.",
                    command.at,
                )
                break


def _is_piped(job: Job, command: Command) -> bool:
    lines = job.text.split("\n")
    before = "\n".join(lines[max(0, command.at.line - 2) : command.at.line - 1])
    before += "\n" + lines[command.at.line - 1][: command.at.column - 1]
    return re.search(r"\|&?\s*(\\\n\s*)?$", before) is not None


@rule(
    "sleep-at-end",
    "warning",
    "a long sleep after the program",
    why="The nodes are billed while the script sleeps.",
    source="sleep(1)",
)
def sleep_at_end(job: Job, site: Site) -> Iterator[Hit]:
    """Find `sleep 3600` behind the launch."""
    last = max((step.at.line for step in job.training), default=0)
    units = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
    for command in job.commands:
        word = command.words[0].known if command.words else ""
        found = re.fullmatch(r"(\d{1,9})([smhd]?)|(infinity)", word)
        if command.program != "sleep" or not found or command.at.line <= last or not last:
            continue
        if _still_runs(job, command):
            continue
        seconds = int(found[1]) * units[found[2]] if found[1] else None
        if command.shell == "batch" and (seconds is None or seconds >= _LONG_SLEEP):
            yield Hit(
                f"`sleep {word}` holds {job.nodes} node{'' if job.nodes == 1 else 's'} after the "
                "program has ended.",
                "Remove it.",
                command.at,
            )


def _still_runs(job: Job, command: Command) -> bool:
    """Whether the program runs in the background, and nothing before the command waits for it."""
    first = min(step.at.line for step in job.training)
    waits = any(
        each.program == "wait" and first <= each.at.line
        and (each.at.line, each.at.column) < (command.at.line, command.at.column)
        for each in job.commands
    )  # fmt: skip
    return not waits and all(step.background for step in job.training)


@rule(
    "strict-before-activation",
    "note",
    "`set -u` before modules or an environment are loaded",
    why="Scripts of modules and of conda name variables that nobody has set; with `set -u` the "
    "job ends there with `unbound variable`.",
    source="conda issue 8186; Lmod documentation",
)
def strict_before_activation(job: Job, site: Site) -> Iterator[Hit]:
    """Find `set -u` before `conda activate`."""
    strict = False
    for command in job.commands:
        if command.shell != "batch":
            continue
        if command.program == "set":
            strict = _is_strict(command, before=strict)
        first = command.words[0].known if command.words else ""
        activates = command.program in ("conda", "mamba") and first == "activate"
        activates |= (
            command.program in ("source", ".")
            and "conda" in first
            and not first.endswith("/profile.d/conda.sh")  # it only makes functions
        )
        if activates and strict:
            yield Hit(
                "With `set -u` the scripts of conda may end the job with `unbound variable`.",
                "Write `set +u` before it, and `set -u` behind it.",
                command.at,
            )
            return


def _is_strict(command: Command, *, before: bool) -> bool:
    """Whether `set -u` holds behind a `set`."""
    words = [word.text for word in command.words]
    for number, word in enumerate(words):
        named = words[number + 1 : number + 2] == ["nounset"]
        if re.fullmatch(r"[-+][a-zA-Z]+", word) and ("u" in word or ("o" in word and named)):
            before = word.startswith("-")
    return before


@rule(
    "exit-in-subshell",
    "warning",
    "an exit in parentheses, which does not end the script",
    why="Parentheses start a shell of their own, and `exit` ends that one: the script goes on "
    "after its error message.",
    source="bash(1), compound commands; CSC examples, 2021",
)
def exit_in_subshell(job: Job, site: Site) -> Iterator[Hit]:
    """Find `cd $DIR || (echo failed; exit 1)`."""
    if _sets(job, "errexit", "e"):
        return
    for number, line in _lines(job):
        found = re.search(r"(?:\|\||&&)\s*\(([^()]*\bexit\b(?:\s+\d+)?)\s*;?\s*\)", line)
        if found:
            yield Hit(
                "`exit` in parentheses ends only the parentheses, and the script goes on.",
                "Write braces: `|| { echo failed; exit 1; }`.",
                Position(number, found.start() + 1, number, found.end() + 1),
            )


@rule(
    "arguments-split",
    "warning",
    "arguments that are passed on without quotes",
    why="`$*` and `$@` without quotes split every argument at its blanks, so that a path or a "
    "text with a blank becomes two.",
    source=f"{_BASH}, special parameters",
)
def arguments_split(job: Job, site: Site) -> Iterator[Hit]:
    """Find `srun python train.py $*`."""
    for step in job.training:
        for word in step.arguments:
            if word.text in ("$*", "${*}") or (word.text in ("$@", "${@}") and not word.quotes):
                yield Hit(
                    f"{word.text} splits arguments at their blanks.",
                    'Write "$@".',
                    word.at,
                )


@rule(
    "remove-unset",
    "error",
    "rm -rf of a path that a variable nobody sets makes shorter",
    why="Where the variable is empty the path begins at /, or ends at the folder above: everything "
    "is removed there that the account may remove.",
    source="bash(1), parameter expansion",
)
def remove_unset(job: Job, site: Site) -> Iterator[Hit]:
    """Find `rm -rf $OUTPUT/*` and `rm -rf /scratch/x/$OUTPUT` where OUTPUT is not set."""
    if _sets(job, "nounset", "u"):
        return
    known = {item.name for item in job.variables}
    guarded = {use.name for use in uses(job) if use.guarded}
    read = Counter(use.name for use in uses(job))
    for command in job.commands:
        flags = "".join(word.text for word in command.words if word.text.startswith("-"))
        if command.program != "rm" or "r" not in flags.lower():
            continue
        for word in command.words:
            found = _FIRST.match(word.text) or _LAST.match(word.text)
            name = (found["braced"] or found["plain"]) if found else ""
            if not found or name in known or name in guarded or _ALWAYS.match(name):
                continue
            if not is_mentioned(job, name) and word.text.strip("${}") != name:
                left = f"{found['before']}{found['behind']}"
                outside = has_unknown_sources(job) or read[name] > 1 or _OF_SITES.match(name)
                if outside and left.count("/") > 1 - bool(found["before"]):
                    continue  # what sends the job sets it, as it is used in other lines, too
                yield Hit(
                    f"${name} is set nowhere in the script: where it is empty, this removes "
                    f"{left}.",
                    f"Write ${{{name}:?}} in its place, which ends the script where it is empty.",
                    word.at,
                    severity="warning" if outside else None,
                )


_FIRST = re.compile(r"(?P<before>)\$(?:\{(?P<braced>\w+)\}|(?P<plain>\w+))(?P<behind>/.*)$")
_LAST = re.compile(
    r"(?P<before>/[\w./-]*/)\$(?:\{(?P<braced>\w+)\}|(?P<plain>\w+))(?P<behind>/?\*?)$"
)
_OF_SITES = re.compile(r"(\w*SCRATCH\w*|WORK|WORKDIR|PROJECT\w*|STORE\w*|DATA)$")
_ALWAYS = re.compile(r"SLURM_|HOME$|USER$|PWD$|TMPDIR$|RANDOM$|HOSTNAME$|LOCAL_SCRATCH$|BASH|\d")


RULES: tuple[Rule, ...] = (
    exit_code_lost,
    sleep_at_end,
    strict_before_activation,
    exit_in_subshell,
    arguments_split,
    remove_unset,
)
