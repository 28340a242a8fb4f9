"""Rules about the names of variables: those that are misspelt, and those that nothing sets."""

import re
from collections.abc import Collection, Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.app.knowledge.rules.environment.known_names import NAMES
from lumitui.app.knowledge.site_facts.expansions import is_named
from lumitui.app.knowledge.site_facts.site_places import has_unknown_sources
from lumitui.app.knowledge.site_facts.variable_names import Use, alike, is_mentioned, uses
from lumitui.remote.site.profile import Site

_SLURM = frozenset(name for name in NAMES if name.startswith(("SLURM_", "SBATCH_", "SRUN_")))
_CONFUSED = {
    "SLURM_CPUS_PER_NODE": "SLURM_CPUS_ON_NODE",
    "SLURM_NODE_ID": "SLURM_NODEID",
    "SLURM_NUM_NODES": "SLURM_NNODES",
    "SLURM_NUM_TASKS": "SLURM_NTASKS",
    "SLURM_LOCAL_ID": "SLURM_LOCALID",
    "SLURM_PROC_ID": "SLURM_PROCID",
    "SLURM_NODE_LIST": "SLURM_NODELIST",
    "SLURM_TASK_ID": "SLURM_PROCID",
}
"""Names that Slurm does not have, where the nearest one is not what is meant."""
_MOST = 300
"""Names of a script that are compared; nobody writes more by hand."""
_PARAMETERS = 2
"""Unset variables up to which one is taken for a slip."""


@rule(
    "misspelt-variable",
    "warning",
    "a variable whose name is nearly that of another",
    why="Slurm, the libraries and bash know only the other name: what is set has no effect, and "
    "what is read is empty.",
    source="sbatch(1), srun(1), NCCL, PyTorch, OpenMP and others: known_names.py",
)
def misspelt_variable(job: Job, site: Site) -> Iterator[Hit]:
    """Find `$SLURM_PROCD`, and `export OMP_NUM_THREAD=7`."""
    yield from _misspelt_settings(job)
    every = {item.name for item in job.variables}
    own = set[str]() if has_unknown_sources(job) else every - NAMES
    told = set[str]()
    for use in list(uses(job))[:_MOST]:
        if use.name in told or use.name in NAMES | every or is_mentioned(job, use.name):
            continue
        meant = _meant(use, own)
        if meant is not None:
            told.add(use.name)
            what = "Slurm sets" if meant in NAMES else "the script sets"
            glued = meant == use.name.rstrip("_")
            yield Hit(
                f"${use.name} is set nowhere, and {what} {meant}.",
                f"Write ${{{meant}}}_." if glued else f"Write ${meant}.",
                use.at,
                severity="note" if use.guarded else None,
            )


def _meant(use: Use, own: Collection[str]) -> str | None:
    """Return the variable that a name was probably meant for."""
    if re.match(r"S[A-Z]{3,5}_", use.name):
        return _CONFUSED.get(use.name) or alike(use.name, _SLURM)
    if use.guarded or use.in_single_quotes:
        return None
    if (plain := use.name.rstrip("_")) in own:
        return plain
    return alike(use.name, {name for name in own if name[0] == use.name[0]})


def _misspelt_settings(job: Job) -> Iterator[Hit]:
    """Yield the exported variables that nothing reads, and whose name is nearly a known one."""
    names = {item.name for item in job.variables}
    told = set[str]()
    for variable in job.variables[:_MOST]:
        name = variable.name
        sent = variable.exported and name not in told and name.lstrip("_") not in NAMES
        if not sent or is_named(job, name) or _is_in_a_file(job, name):
            continue
        told.add(name)
        meant = alike(name, NAMES)
        if meant is not None and meant not in names:
            yield Hit(
                f"No program is known to read {name}; {meant} is the name.",
                f"Write {meant}.",
                variable.at,
            )


def _is_in_a_file(job: Job, name: str) -> bool:
    """Whether a file of the project names it: then it is the project's own."""
    return any(name in text for text in job.files.values())


@rule(
    "unset-variable",
    "warning",
    "a variable that nothing sets, under `set -u`",
    why="With `set -u` bash ends the script at the first variable that is not set, with `unbound "
    "variable`. The job ends there, after its wait in the queue.",
    source="bash(1), set -u",
)
def unset_variable(job: Job, site: Site) -> Iterator[Hit]:
    """Find `$OUTPUT` below `set -u` where OUTPUT is set nowhere."""
    strict = _strict_from(job)
    if strict is None or _may_set_anything(job):
        return
    found = _unset(job, strict)
    if len(found) > _PARAMETERS:
        return  # such a script is told its values from outside
    for use in found:
        yield Hit(
            f"${use.name} is set nowhere: with `set -u` the job ends here, unless sbatch --export "
            "or the shell that sends the job gives it.",
            f"Set {use.name} above, or write ${{{use.name}:-}} where it may be empty.",
            use.at,
        )


def _unset(job: Job, strict: int) -> list[Use]:
    """Return where a script first reads each variable that nothing sets, below `set -u`."""
    own = {item.name for item in job.variables} - NAMES
    every = list(uses(job))[:_MOST]
    asked = {use.name for use in every if use.guarded}
    found: dict[str, Use] = {}
    for use in every:
        open_name = use.name in NAMES or _OF_SYSTEM.match(use.name) or use.name in asked
        if open_name or use.in_single_quotes or use.at.line <= strict:
            continue
        if not is_mentioned(job, use.name) and _meant(use, own) is None:
            found.setdefault(use.name, use)
    return list(found.values())


_OF_SYSTEM = re.compile(
    r"(HOME|USER|LOGNAME|PWD|OLDPWD|PATH|SHELL|TMPDIR|TERM|LANG|LC_\w+|HOSTNAME|HOSTTYPE|OSTYPE"
    r"|MACHTYPE|RANDOM|SECONDS|LINENO|UID|EUID|PPID|GROUPS|IFS|OPTARG|OPTIND|REPLY|PS[0-4]|FUNCNAME"
    r"|PIPESTATUS|DISPLAY|EDITOR|MAIL|SHLVL|COLUMNS|LINES|EPOCHSECONDS|EPOCHREALTIME|CI|DEBUG"
    r"|BASH\w*|SLURM\w*|SPANK\w*|SCRATCH\w*|WORK|WORKDIR|PROJECT\w*|HOME\w+|GROUP\w*|STORE\w*|DATA"
    r"|\w*SCRATCH|LOCAL\w*|JOBFS|CLUSTER\w*|CC_CLUSTER|SLURMTMPDIR|LMOD\w*|MODULE\w*|CONDA\w*"
    r"|VIRTUAL_ENV|CRAY\w*|ROCM\w*|CUDA\w*|HIP\w*|EB\w+|PE_\w+|XDG_\w+|SSH_\w+|_\w*|FTMP\w*)$"
)  # fmt: skip
"""What bash, the system, the modules or the site set."""


def _strict_from(job: Job) -> int | None:
    """Return the line of `set -u`; None: there is none, or it is taken back."""
    line = None
    for command in job.commands:
        words = [word.text for word in command.words]
        if command.program != "set" or command.shell != "batch":
            continue
        if "+u" in words or ("+o" in words and "nounset" in words):
            return None
        if "nounset" in words or any(re.fullmatch(r"-[a-zA-Z]*u[a-zA-Z]*", word) for word in words):
            line = line or command.at.line
    return line


def _may_set_anything(job: Job) -> bool:
    """Whether modules, sourced files or `eval` set variables of which nothing is known."""
    loads = ("source", ".", "module", "ml", "eval", "spack", "conda", "mamba", "micromamba", "use")
    return bool(job.modules) or any(
        command.program in loads and command.step is None for command in job.commands
    )


RULES: tuple[Rule, ...] = (misspelt_variable, unset_variable)
