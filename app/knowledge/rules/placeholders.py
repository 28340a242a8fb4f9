"""A rule about examples that were copied: words that stand for the reader's own value."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import Position

_ANGLES = re.compile(r"<[A-Za-z]\w*(?:[ :.-]\w+)*>")
_GLUED = re.compile(r"[=/\"'_:,.@-]$")
_PATH = re.compile(r"(?:^|(?<=[\s=\"':]))/path/to/[^\s\"':;|&)]*")
_SAYS = re.compile(r"\s*(?:echo|printf|log\w*|say|warn|die|error|info|usage|print)\b")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)")


@rule(
    "placeholder",
    "error",
    "a placeholder that was copied from an example",
    why="bash reads `<name>` as redirections, so that the command does not start; a path of an "
    "example does not exist.",
    source="bash(1), REDIRECTION; HPC4AIbook, Chapter.12/ddp_job_template.slurm",
)
def placeholder(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `DATA=/scratch/<project>/data` and `python /path/to/train.py`."""
    for number, line in _commands(job.text):
        for found in (*_angles(line), *_PATH.finditer(line)):
            at = Position(number, found.start() + 1, number, found.end() + 1)
            yield Hit(
                f"{found[0]} is a placeholder for your own value.",
                "Write your own in its place.",
                at,
            )


def _commands(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that bash reads, with their numbers: no comment, no text of a heredoc."""
    ends = ""
    for number, line in enumerate(text.split("\n"), 1):
        if ends:
            ends = "" if line.strip() == ends else ends
            continue
        code = re.split(r"(?:^|\s)#", line, maxsplit=1)[0]
        started = _HEREDOC.search(code)
        ends = started[1] if started and "<<<" not in code else ""
        yield number, code


def _angles(line: str) -> Iterator[re.Match[str]]:
    """Yield `<words>` that are part of a word, or that end a command: no redirection does."""
    for found in _ANGLES.finditer(line):
        before, behind = line[: found.start()], line[found.end() :].strip()
        quoted = before.count('"') % 2 == 1 or before.count("'") % 2 == 1
        if quoted and (_SAYS.match(line) or f"</{found[0][1:]}" in line or before.endswith(":-")):
            continue  # words for a user, a tag of HTML, or what stands for nothing
        if _GLUED.search(before) or not behind or behind[0] in "&|;)\\":
            yield found
