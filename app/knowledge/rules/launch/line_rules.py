"""Rules about lines that bash cuts or reads otherwise than they were meant."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.bash.options.program_options import IDLE
from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.model.source_position import Position
from lumitui.app.knowledge.model.steps import Command
from lumitui.app.knowledge.rule import Edit, Hit, Rule, rule
from lumitui.app.knowledge.site_facts.expansions import source_at
from lumitui.remote.site.profile import Site


def _ends(job: Job) -> Iterator[tuple[Command, str, str]]:
    """Yield the script's own commands, what stands behind each in its line, and the next line."""
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
    "blank-after-backslash",
    "error",
    "a blank behind the backslash at a line's end",
    why="A backslash joins two lines only as the last character of its line. With a blank behind "
    "it the command ends there, and the next line is a command of its own.",
    source="bash(1), QUOTING",
)
def blank_after_backslash(job: Job, site: Site) -> Iterator[Hit]:
    r"""Find `srun \ ` with a blank at its end."""
    for command, rest, _ in _ends(job):
        match = re.fullmatch(r"\s*(\\)[ \t]+", rest)
        if match is None:
            continue
        line, column = command.at.end_line, command.at.end_column + match.start(1)
        at = Position(line, column, line, command.at.end_column + len(rest))
        message = f"A blank follows the backslash: the command `{command.program}` ends here."
        yield Hit(message, "Remove the blank.", at, Edit("remove the blank", at, "\\"))


@rule(
    "comment-in-command",
    "error",
    "a comment between the lines of one command",
    why="The backslash joins the comment to the command, and the comment goes up to the end of its "
    "line: the command ends there, and what follows is a command of its own.",
    source="bash(1), COMMENTS",
)
def comment_in_command(job: Job, site: Site) -> Iterator[Hit]:
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


@rule(
    "spaced-assignment",
    "error",
    "blanks around the = of a variable",
    why="bash takes the name for a program: it says `command not found`, and sets nothing.",
    source="bash(1), PARAMETERS",
)
def spaced_assignment(job: Job, site: Site) -> Iterator[Hit]:
    """Find `DATA = /scratch/x`."""
    for command in job.commands:
        name = command.program
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or name in ("test", "expr") or command.at.file:
            continue
        sign = command.words[0] if command.words else None
        if sign is None or sign.quotes or not re.match(r"=(?!=)", sign.text):
            continue
        message = f"bash runs `{name}` as a program here, and sets no variable."
        yield Hit(message, f"Write {name}=… without blanks around `=`.", command.at)


@rule(
    "launch-after-exit",
    "error",
    "a launch below the line where the script ends",
    why="`exit` ends the script, and `exec` puts another program in its place: nothing below is "
    "run, and the job counts as completed. It is often left behind from a test.",
    source="bash(1), exit; exec",
)
def launch_after_exit(job: Job, site: Site) -> Iterator[Hit]:
    """Find `exit 0` above `srun python train.py`."""
    end = job.end
    if not end.line:
        return
    did_work = any(step.trains and step.at.line <= end.line for step in job.steps)
    did_work |= any(
        command.program not in IDLE and command.at.line < end.line for command in job.commands
    )
    below = [step for step in job.training if step.at.line > end.line and not step.at.file]
    if below and not did_work:
        yield Hit(
            f"The script ends here, so the launch of line {below[0].at.line} never runs.",
            f"Remove `{source_at(job, end)}`, or write it behind the launch.",
            end,
        )


RULES: tuple[Rule, ...] = (
    blank_after_backslash,
    comment_in_command,
    spaced_assignment,
    launch_after_exit,
)
