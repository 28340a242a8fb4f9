"""Rules about the batch script as a shell script: what hides a failure, or wastes hours."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.model.steps import Command
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site

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


RULES: tuple[Rule, ...] = (
    exit_code_lost,
    arguments_split,
)
