"""Rules about lines that bash cuts or reads otherwise than they were meant."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.model.source_position import Position
from lumitui.app.knowledge.model.steps import Command
from lumitui.app.knowledge.rule import Hit, Rule, rule
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


RULES: tuple[Rule, ...] = (comment_in_command,)
