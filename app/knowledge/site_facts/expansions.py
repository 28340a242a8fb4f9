"""Variables in a text: which are named there, and which shell gives them their values. Pure."""

import re

from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.source_position import Position

_NAME = re.compile(r"(?<!\\)(?:\\\\)*\$(?:\{[!#]?)?([A-Za-z_]\w*)")
_DEEPEST = 4
"""Variables that name others, which name others; PATH names itself."""
_LONGEST = 4_000
"""Characters of a path; a variable that names itself many times would grow without end."""


def names_in(text: str) -> tuple[str, ...]:
    """Return the variables that a text names, each once, but for those behind a backslash."""
    return tuple(dict.fromkeys(_NAME.findall(text)))


def put_in(job: ScriptJob, text: str) -> str:
    """Return a text with the values of the script's own variables, as far as they are known.

    A word has its value only where all of it is known; a path like `$CACHE` is known well enough
    where CACHE is `/tmp/$USER`.
    """
    for _ in range(_DEEPEST):
        before = text
        for name in names_in(text):
            variable = job.variable(name, shell="batch")
            if variable is not None and "$(" not in variable.value:
                value = variable.value[:_LONGEST].replace("\\", r"\\")
                text = re.sub(rf"\$(?:\{{{name}\}}|{name}\b)", value, text)
        if text == before or len(text) > _LONGEST:
            break
    return text


def is_named(job: ScriptJob, name: str) -> bool:
    """Whether the script itself reads a variable, as `$NAME` or `${NAME…`."""
    return f"${name}" in job.text or f"${{{name}" in job.text


def source_at(job: ScriptJob, at: Position) -> str:
    """Return what is at a place of the script, with its quotes; "" where no script is known."""
    if not at.line or at.file or not at.end_line:
        return ""
    lines = job.text.split("\n")[at.line - 1 : at.end_line]
    if not lines:
        return ""
    lines[-1] = lines[-1][: at.end_column - 1]
    return "\n".join(lines)[at.column - 1 :]


def outside_single_quotes(source: str) -> str:
    """Return a piece of a script without what bash leaves alone: texts in single quotes.

    A single quote within double quotes is a character as any other.
    """
    kept, inside, place = [], "", 0
    while place < len(source):
        sign = source[place]
        if sign == "\\" and inside != "'":
            kept.append(source[place : place + 2])
            place += 2
            continue
        if sign == "'" and inside != '"':
            inside = "" if inside == "'" else "'"
        elif sign == '"' and inside != "'":
            inside = "" if inside == '"' else '"'
        elif inside != "'":
            kept.append(sign)
        place += 1
    return "".join(kept)
