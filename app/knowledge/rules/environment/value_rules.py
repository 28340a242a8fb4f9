"""Rules about values that are sent as they are written, or that are empty or cut off."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.model.command_words import Variable, Word
from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.rule import Edit, Hit, Rule, rule
from lumitui.app.knowledge.site_facts.expansions import is_named, names_in, source_at
from lumitui.remote.site.profile import Site

_WHOLE = "Write the whole path, as it is on the site."
_PATH = re.compile(r"\$\{?[A-Za-z_]\w*\}?(?:/.*)?")


@rule(
    "literal-variable",
    "warning",
    "a value in single quotes that names a variable",
    why="Single quotes keep the dollar sign: programs get the variable's name in place of its "
    "value, and make a folder of that name.",
    source="bash(1), quoting",
)
def literal_variable(job: Job, site: Site) -> Iterator[Hit]:
    """Find `export HF_HOME='$SCRATCH/hf'`."""
    for variable in job.variables:
        image = variable.at.field == "container.image"
        if variable.quoted != "'" or not (variable.exported or image) or variable.shell != "batch":
            continue
        if not _PATH.fullmatch(variable.value):
            continue
        if job.origin == "job file" and variable.at.field:
            yield _of_job_file(variable, "$")
        elif not is_named(job, variable.name):
            yield Hit(
                f"{variable.name} becomes the text {variable.value}, as single quotes keep the "
                "dollar sign.",
                "Write double quotes.",
                variable.at,
                Edit("write double quotes", variable.at, f'{variable.name}="{variable.value}"')
                if variable.at.line
                else None,
            )
    for word in _arguments(job):
        if word.expanded_in == "never" and word.quotes == "'" and _PATH.fullmatch(word.text):
            yield Hit(
                f"The program gets the text {word.text}, as single quotes keep the dollar sign.",
                "Write double quotes.",
                word.at,
            )


def _arguments(job: Job) -> Iterator[Word]:
    return (word for step in job.steps for word in step.arguments)


@rule(
    "literal-tilde",
    "warning",
    "a tilde that no shell expands",
    why="Bash expands ~ only at the beginning of a word and without quotes. Elsewhere the "
    "program makes a folder that is called ~.",
    source="bash(1), tilde expansion",
)
def literal_tilde(job: Job, site: Site) -> Iterator[Hit]:
    """Find `--data=~/imagenet` and `export HF_HOME="~/hf"`."""
    for variable in job.variables:
        if variable.quoted in ('"', "'") and variable.value.startswith("~/"):
            yield _of_variable(job, variable)
    for word in _arguments(job):
        quoted = word.quotes in ('"', "'") and word.text.startswith("~/")
        if quoted or re.match(r"--?[\w-]+=~/", word.text):
            yield Hit(
                f"The program gets {word.text} with its ~, which no shell expands there.",
                _WHOLE if job.origin == "job file" else "Write $HOME in place of ~.",
                word.at,
            )


def _of_variable(job: Job, variable: Variable) -> Hit:
    if job.origin == "script":
        return Hit(
            f"{variable.name} becomes the text {variable.value}: in quotes ~ stays as it is.",
            "Write $HOME in place of ~.",
            variable.at,
        )
    return _of_job_file(variable, "~")


def _of_job_file(variable: Variable, sign: str) -> Hit:
    image = variable.at.field == "container.image"
    return Hit(
        f"`{variable.at.field or 'env'}:` is {variable.value}, and no shell expands its {sign} in "
        "a job.",
        _WHOLE,
        variable.at,
        severity="error" if image else None,
    )


@rule(
    "path-overwritten",
    "error",
    "a search path that loses what was in it",
    why="Without the old value in it the system's commands, srun among them, or the modules' "
    "libraries are not found any more.",
    source="bash(1), PATH; ld.so(8), LD_LIBRARY_PATH",
)
def path_overwritten(job: Job, site: Site) -> Iterator[Hit]:
    """Find `export PATH=/projappl/env/bin`."""
    for variable in job.settings("PATH", "LD_LIBRARY_PATH"):
        source = source_at(job, variable.at) or variable.value
        if variable.shell != "batch" or variable.step is not None or "$" in variable.value:
            continue
        if variable.name in names_in(source) or "/usr/bin" in variable.value:
            continue
        if variable.name == "PATH" or job.modules:
            yield Hit(
                f"{variable.name} becomes only {variable.value}, without what was in it.",
                f"Write {variable.name}={variable.value}:${variable.name}.",
                variable.at,
                Edit(
                    "keep the old value",
                    variable.at,
                    f"{variable.name}={variable.value}:${variable.name}",
                )
                if variable.at.line
                else None,
                severity=None if variable.name == "PATH" else "warning",
            )


RULES: tuple[Rule, ...] = (
    literal_variable,
    literal_tilde,
    path_overwritten,
)
