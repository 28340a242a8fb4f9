"""Rules about what bash makes of a launch: lines that it cuts, and exit codes that it loses."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import Command, ScriptJob
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import Position

_BASH = "bash(1)"


def _sets(job: ScriptJob, option: str, letter: str) -> Command | None:
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
def exit_code_lost(job: ScriptJob, site: Site) -> Iterator[Hit]:
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


def _is_piped(job: ScriptJob, command: Command) -> bool:
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
def arguments_split(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `srun python train.py $*`."""
    for step in job.training:
        for word in step.arguments:
            if word.text in ("$*", "${*}") or (word.text in ("$@", "${@}") and not word.quotes):
                yield Hit(
                    f"{word.text} splits arguments at their blanks.",
                    'Write "$@".',
                    word.at,
                )


def _ends(job: ScriptJob) -> Iterator[tuple[Command, str, str]]:
    """Yield the script's own commands, what is after each in its line, and the next line."""
    lines = job.text.split("\n")
    told = set[int]()
    for command in job.commands:
        at = command.at
        if at.file or not 0 < at.end_line <= len(lines) or at.end_line in told:
            continue
        rest = lines[at.end_line - 1][at.end_column - 1 :].rstrip("\r")
        if "\\" in rest:
            told.add(at.end_line)
            yield command, rest, "".join(lines[at.end_line : at.end_line + 1])


@rule(
    "comment-in-command",
    "error",
    "a comment between the lines of one command",
    why="The backslash joins the comment to the command, and the comment runs to the end of its "
    "line: the command ends there, and what follows is a command of its own.",
    source="bash(1), COMMENTS",
)
def comment_in_command(job: ScriptJob, site: Site) -> Iterator[Hit]:
    r"""Find `# --option \` below `srun … \`."""
    lines = job.text.split("\n")
    for command, rest, following in _ends(job):
        line = command.at.end_line + 1
        more = "".join(lines[line : line + 1]).strip()
        if re.fullmatch(r"\s*\\", rest) and re.match(r"\s*#", following) and more:
            if not following.rstrip().endswith("\\"):
                continue
            at = Position(line, 1, line, len(following) + 1)
            message = f"The comment ends the command `{command.program}`: {more[:40]} is not in it."
            yield Hit(message, "Move the comment above the command.", at)
