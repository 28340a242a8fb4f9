"""Rules about the tasks of an array: their numbers, and the folders that they write to."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.bash.arithmetic import evaluate
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import JobStep, ScriptJob
from lumitui.app.knowledge.site_facts.expansions import names_in, put_in, uses
from lumitui.remote.site.profile import Site

_TASK = "SLURM_ARRAY_TASK_ID"
_SAME = {"SLURM_ARRAY_JOB_ID", "SLURM_JOB_ACCOUNT", "SLURM_SUBMIT_DIR", "SLURM_JOB_NAME", "USER",
         "HOME", "SCRATCH", "WORK", "PWD", "PROJECT", "SLURM_JOB_PARTITION"}  # fmt: skip
"""Variables with one value for all tasks."""
_RESULTS = re.compile(
    r"--?(output|out|save|checkpoint|ckpt|results?)s?([_-]?(dir|path|folder|to))?$"
)
_INDEX = re.compile(r"\$\{(\w+)\[([^][{}]{1,99}|\$\{\w+\}|\$\(\([^][]{1,99}\)\))\]\}")
_LENGTH = re.compile(r"\$\{#(\w+)\[[@*]\]\}")
_SETTING = re.compile(
    r"lr|rate|seed|decay|batch|dropout|momentum|epochs|steps|warmup|fold|alpha|beta|gamma|temp|"
    r"layers|hidden|dim|heads|width|depth|wd|eps", re.IGNORECASE
)  # fmt: skip
"""Words in the names of settings of one training; of many inputs a program names its results."""
_ENTRY = re.compile(r"\$\{\w+\[[^]]*\]\}")
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
    why="bash gives an empty text for an entry that is not there, so that the task runs with an "
    "empty argument, or with the wrong file.",
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


@rule(
    "array-one-folder",
    "warning",
    "tasks of an array that write to one folder",
    why="The tasks differ in what they compute, and each overwrites the results and checkpoints of "
    "the others.",
    source="sbatch(1) --array",
)
def array_one_folder(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `--lr $LR --output_dir /scratch/run` in an array of ten tasks."""
    tasks = numbers_of(job.resources.array)
    if not tasks or len(tasks) < 2 or job.resources.array.endswith("%1"):
        return
    if any(command.program == "cd" and command.words and _differs(job, command.words[0].text)
           for command in job.commands):  # fmt: skip
        return
    for step in job.training:
        texts = [word.text for word in step.arguments]
        numbered = any(
            re.search(rf"{_TASK}|SLURM_JOB_?ID", _ENTRY.sub("", put_in(job, text)))
            for text in texts
        )
        if numbered or not _sweeps(job, step):
            continue
        for name, value in step.named_arguments():
            if _RESULTS.match(name) and value.text and _is_same(job, value.text):
                yield Hit(
                    f"All {len(tasks)} tasks of the array write to {put_in(job, value.text)}.",
                    f"Put the task into the name: {value.text}/${_TASK}.",
                    value.at if value.at.line else step.at,
                )
                break


def _sweeps(job: ScriptJob, step: JobStep) -> bool:
    """Whether the tasks run one training with different settings: `--lr $LR`."""
    return any(
        _SETTING.search(name) and _differs(job, value.text)
        for name, value in step.named_arguments()
    )


def _differs(job: ScriptJob, text: str, depth: int = 0) -> bool:
    """Whether a text is made from the number of the task."""
    if _TASK in text:
        return True
    found = (job.variable(name) for name in names_in(text))
    return depth < 4 and any(item and _differs(job, item.value, depth + 1) for item in found)


def _is_same(job: ScriptJob, text: str) -> bool:
    """Whether a text is known to have one value for all tasks."""
    if any(item and item.conditional for item in map(job.variable, names_in(text))):
        return False
    whole = put_in(job, text)
    return "`" not in whole and "$(" not in whole and set(names_in(whole)) <= _SAME


@rule(
    "array-missing",
    "warning",
    "an array task's number in a job that is not an array",
    why="Only the tasks of an array have SLURM_ARRAY_TASK_ID. With `set -u` the script ends with "
    "`unbound variable` before it starts anything.",
    source="sbatch(1), SLURM_ARRAY_TASK_ID; bash(1) set -u",
)
def array_missing(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `set -u` and `$SLURM_ARRAY_TASK_ID` without `--array`."""
    strict = any(
        command.program == "set" and command.shell == "batch"
        and any(re.match(r"-[a-z]*u|nounset", word.text) for word in command.words)
        for command in job.commands
    )  # fmt: skip
    if not strict or job.resources.array or re.search(r"--array|sbatch.*\s-a\s", job.text):
        return
    for use in uses(job):
        if use.name == _TASK and not use.guarded and not use.in_single_quotes:
            yield Hit(
                "The job is not an array, so `set -u` ends the script here.",
                f"Write #SBATCH --array=, or ${{{_TASK}:-0}}.",
                use.at,
            )
            return
