"""Rules about the tasks of an array: their numbers, and the folders that they write to."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.bash.arithmetic import evaluate
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.profile import Site

_TASK = "SLURM_ARRAY_TASK_ID"
_INDEX = re.compile(r"\$\{(\w+)\[([^][{}]{1,99}|\$\{\w+\}|\$\(\([^][]{1,99}\)\))\]\}")
_LENGTH = re.compile(r"\$\{#(\w+)\[[@*]\]\}")
_MOST = 100_000
_JUDGED = 500
"""Tasks at either end of a long array that are judged."""
_MOST_SHOWN = 5_000
"""Tasks up to which a shorter array is offered."""
_DEEPEST = 4
"""Variables that an index names, which name others."""


def numbers_of(text: str) -> list[int] | None:
    """Return the tasks of `0-9:3,12%4`; None: it is not read."""
    numbers: list[int] = []
    for part in text.partition("%")[0].split(","):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6})(?::(\d{1,6}))?)?", part.strip())
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        numbers += range(first, min(last, first + _MOST) + 1, int(match[3] or 1) or 1)
    return sorted(set(numbers))


def _entry(job: ScriptJob, text: str, task: int, depth: int = 0) -> int | None:
    """Return the number that an index has in a task, like `$((SLURM_ARRAY_TASK_ID / n))`."""

    def count(match: re.Match[str]) -> str:
        variable = job.variable(match[1])
        return match[0] if variable is None or variable.items is None else str(variable.items)

    text = _LENGTH.sub(count, text.strip())
    inner = re.fullmatch(r"\$\(\((.*)\)\)", text)
    names = {_TASK: str(task)}
    for name in re.findall(r"[A-Za-z_]\w*", text) if depth < _DEEPEST else ():
        variable = job.variable(name)
        if name != _TASK and variable is not None and not variable.conditional:
            value = _entry(job, variable.value, task, depth + 1)
            names[name] = "" if value is None else str(value)
    return evaluate(inner[1] if inner else text, names)


@rule(
    "array-beyond-list",
    "error",
    "tasks of an array for which a list has no entry",
    why="bash expands a missing entry to an empty string, so the task runs with an empty argument "
    "or with the wrong file.",
    source="bash(1), Arrays; sbatch(1) --array",
)
def array_beyond_list(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `--array=0-9` with `${LIST[$SLURM_ARRAY_TASK_ID]}` of eight entries."""
    option, tasks = job.options.get("array"), numbers_of(job.resources.array)
    if option is None or not tasks:
        return
    some = tasks if len(tasks) <= 2 * _JUDGED else [*tasks[:_JUDGED], *tasks[-_JUDGED:]]
    reported = set[str]()
    for match in _INDEX.finditer(job.text):
        name, index = match[1], match[2]
        variable = job.variable(name)
        if variable is None or variable.items is None or variable.conditional or name in reported:
            continue
        if re.search(r"[$*?`{]", variable.value) or _entry(job, index, tasks[0]) is None:
            continue
        beyond = [task for task in some if (_entry(job, index, task) or 0) >= variable.items]
        if beyond:
            reported.add(name)
            which = (
                f"task {beyond[0]}" if len(beyond) == 1 else f"tasks {beyond[0]} to {beyond[-1]}"
            )
            last, end = tasks[0] - 1, min(beyond[0], tasks[0] + _MOST_SHOWN)
            while last < end and (_entry(job, index, last + 1) or 0) < variable.items:
                last += 1
            yield Hit(
                f"{name} has {variable.items} entries, and none for {which} of the array.",
                f"Write --array={tasks[0]}-{last}." if last > tasks[0] else "Add entries.",
                option.at,
            )
