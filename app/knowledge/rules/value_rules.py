"""Rules about values of variables: what no shell expands, and what harms the GPUs or the caches."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import setting
from lumitui.app.knowledge.script_job import CommandWord, ScriptJob, Variable
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
def literal_variable(job: ScriptJob, site: Site) -> Iterator[Hit]:
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
                setting(variable, f'"{variable.value}"', "write double quotes"),
            )
    for word in _arguments(job):
        if word.expanded_in == "never" and word.quotes == "'" and _PATH.fullmatch(word.text):
            yield Hit(
                f"The program gets the text {word.text}, as single quotes keep the dollar sign.",
                "Write double quotes.",
                word.at,
            )


def _arguments(job: ScriptJob) -> Iterator[CommandWord]:
    return (word for step in job.steps for word in step.arguments)


@rule(
    "literal-tilde",
    "warning",
    "a tilde that no shell expands",
    why="Bash expands ~ only at the beginning of a word and without quotes. Elsewhere the "
    "program makes a folder named ~.",
    source="bash(1), tilde expansion",
)
def literal_tilde(job: ScriptJob, site: Site) -> Iterator[Hit]:
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


def _of_variable(job: ScriptJob, variable: Variable) -> Hit:
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
    why="Without the old value, the job no longer finds the system's commands (including srun) or "
    "the modules' libraries.",
    source="bash(1), PATH; ld.so(8), LD_LIBRARY_PATH",
)
def path_overwritten(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `export PATH=/projappl/env/bin`."""
    for variable in job.settings("PATH", "LD_LIBRARY_PATH"):
        source = source_at(job, variable.at) or variable.value
        if variable.shell != "batch" or variable.step is not None or "$" in variable.value:
            continue
        if variable.name in names_in(source) or "/usr/bin" in variable.value:
            continue
        if variable.name == "PATH" or job.modules:
            right = f"{variable.value}:${variable.name}"
            yield Hit(
                f"{variable.name} becomes only {variable.value}, without what was in it.",
                f"Write {variable.name}={right}.",
                variable.at,
                setting(variable, right, "keep the old value"),
                severity=None if variable.name == "PATH" else "warning",
            )


_WEIGHTS = ("HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "TRANSFORMERS_CACHE", "TORCH_HOME",
            "HUGGINGFACE_HUB_CACHE", "PIP_CACHE_DIR", "SINGULARITY_CACHEDIR",
            "APPTAINER_CACHEDIR", "WANDB_DIR", "WANDB_CACHE_DIR", "MLFLOW_TRACKING_URI",
            "XDG_CACHE_HOME")  # fmt: skip
_KERNELS = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR",
            "MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR", "CUDA_CACHE_PATH")  # fmt: skip
_OF_JOB = re.compile(r"SLURM_JOB|SLURM_ARRAY|\$\{?USER|TMPDIR|NODE_TMP|LOCAL_SCRATCH|mktemp|RANDOM")


@rule(
    "cache-name-shared",
    "note",
    "a folder below /tmp that all users would share",
    why="Another user's job on the node may have created the folder: yours then cannot write to "
    "it, and files of killed jobs stay in it.",
    source="LUMI-AI-Guide pull request 108",
)
def cache_name_shared(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `MIOPEN_USER_DB_PATH=/tmp/miopen`."""
    for variable in job.settings(*_WEIGHTS, *_KERNELS):
        fixed = variable.value.startswith(("/tmp/", "/dev/shm/", "/var/tmp/"))
        if fixed and not _OF_JOB.search(variable.value):
            yield Hit(
                f"{variable.name} is {variable.value}, which another person's job may own.",
                "Add $USER-$SLURM_JOB_ID to the name.",
                variable.at,
            )
