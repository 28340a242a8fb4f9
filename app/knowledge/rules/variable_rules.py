"""Rules about variables: names, values, secrets, and which shell expands them."""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.known_names import NAMES
from lumitui.app.knowledge.rules.phrases import setting
from lumitui.app.knowledge.script_job import GPU_LISTS, JobStep, ScriptJob, Variable
from lumitui.app.knowledge.site_facts.allocation import has_unknown_sources
from lumitui.app.knowledge.site_facts.expansions import (
    Use,
    alike,
    is_mentioned,
    is_named,
    names_in,
    outside_single_quotes,
    source_at,
    uses,
)
from lumitui.app.knowledge.site_facts.process_counts import (
    PER_NODE_LAUNCHERS,
    RANK_VARIABLES,
    loses_ranks,
    steps_with,
)
from lumitui.remote.site.finding import Cure, Fix
from lumitui.remote.site.profile import Site
from lumitui.remote.site.secret_shapes import marks_in, shape_of
from lumitui.remote.site.source_position import NOWHERE, Position

_READ_BY_PROGRAMS = re.compile(
    r"(?:NCCL|RCCL|MPICH|HSA|UCX|GLOO|TORCH_NCCL)_[A-Z0-9_]+|FI_(?:CXI|MR|PROVIDER|OFI)[A-Z0-9_]*"
    r"|MIOPEN_(?:USER_DB_PATH|CUSTOM_CACHE_DIR)|OMP_(?:NUM_THREADS|PROC_BIND|PLACES)"
    r"|HF_(?:HOME|TOKEN|HUB_OFFLINE|HUB_CACHE|DATASETS_CACHE|DATASETS_OFFLINE)|TORCH_HOME"
    r"|TRANSFORMERS_(?:CACHE|OFFLINE)|TORCH_(?:EXTENSIONS_DIR|DISTRIBUTED_DEBUG)|TRITON_CACHE_DIR"
    r"|WANDB_(?:MODE|API_KEY|PROJECT|ENTITY|DIR)|PYTORCH_(?:CUDA|HIP)_ALLOC_CONF"
    r"|MASTER_(?:ADDR|PORT)|WORLD_SIZE|PYTHONPATH|PYTHONUSERBASE|CUDA_DEVICE_MAX_CONNECTIONS"
    r"|(?:CUDA|HIP|ROCR)_VISIBLE_DEVICES|CUDA_LAUNCH_BLOCKING|TORCHINDUCTOR_CACHE_DIR"
)
"""Variables that only programs read: setting one without export is always a mistake."""


@rule(
    "not-exported",
    "error",
    "a variable that programs need but that is not exported",
    why="Only the batch script has it, not the ranks.",
    source="bash(1), export; srun(1) --export",
)
def _not_exported(job: ScriptJob, site: Site) -> Iterator[Hit]:
    lines = job.text.split("\n")
    launched = any(step.launcher in PER_NODE_LAUNCHERS for step in job.training)
    for variable in job.variables:
        if launched and variable.name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE"):
            continue  # these launchers get them as options, and set them for their ranks
        bare = not variable.exported and variable.step is None and variable.shell == "batch"
        if not bare or not _READ_BY_PROGRAMS.fullmatch(variable.name):
            continue
        exported = any(item.exported for item in job.settings(variable.name))
        if exported or is_named(job, variable.name) or re.search(r"\bset -\w*a", job.text):
            continue
        plain = re.fullmatch(r"\s*", _before(lines, variable))
        yield Hit(
            f"{variable.name} is set but not exported, so the ranks do not get it.",
            f"Write export {variable.name}=….",
            variable.at,
            _export(variable) if plain else None,
        )


def _before(lines: list[str], variable: Variable) -> str:
    number = variable.at.line
    return lines[number - 1][: variable.at.column - 1] if 0 < number <= len(lines) else "?"


def _export(variable: Variable) -> Fix:
    at = variable.at
    start = Position(at.line, at.column, at.line, at.column, at.file, at.field)
    return Fix(f"export {variable.name}", start, "export ")


@rule(
    "secret-in-words",
    "warning",
    "a key in the script",
    why="Slurm and lumitui's history store the script, so the key is no longer secret.",
    source="gitleaks, config/gitleaks.toml; scontrol(1) write batch_script",
)
def _secret_in_words(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if job.origin == "job file":  # compose reports it with the job file's key
        return
    lines_reported = set[int]()
    for mark in marks_in(job.text.encode("utf-8", "surrogateescape")):
        if mark.line in lines_reported:
            continue
        lines_reported.add(mark.line)
        lines = job.text.split("\n")
        width = len(lines[mark.line - 1]) if mark.line <= len(lines) else 0
        yield Hit(
            f"The line contains {shape_of(mark).what}.",
            "Read it from a file that only you can read: export NAME=$(cat ~/.key), and revoke "
            "this key.",
            Position(mark.line, 1, mark.line, width + 1) if width else NOWHERE,
        )


@rule(
    "threads-unset",
    "note",
    "several ranks on a node without a limit on their threads",
    why="Every rank starts a thread for each core of the node, and they slow each other down.",
    source="csc-user-guide, ml-multi.md; OpenMP, OMP_NUM_THREADS",
)
def _threads_unset(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if job.variable("OMP_NUM_THREADS") or job.variable("SRUN_CPUS_PER_TASK"):
        return
    bound = ("cpu-bind", "cpus-per-task")
    for step in job.training:
        ranks, plain = step.rank.per_node or 1, step.launcher in ("srun", "plain")
        if ranks < 2 or not plain or not step.srun or step.srun.has(*bound):
            continue
        cores = job.resources.cpus_per_task
        value = "$SLURM_CPUS_PER_TASK" if cores else "the number of cores per rank"
        yield Hit(
            f"{ranks} ranks share a node without a limit on their threads.",
            f"Set OMP_NUM_THREADS to {value}.",
            step.at,
        )
        return


_WHOLE = "Write the full path on the site."
_PATH = re.compile(r"\$\{?[A-Za-z_]\w*\}?(?:/.*)?")
_NAMED = re.compile(r"\$\{?([A-Za-z_]\w*)")


@rule(
    "literal-variable",
    "warning",
    "a variable in single quotes",
    why="Programs get the variable's name instead of its value, and create a folder with that "
    "name.",
    source="bash(1), quoting",
)
def _literal_variable(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for variable in job.variables:
        image = variable.at.field == "container.image"
        if variable.quoted != "'" or not (variable.exported or image) or variable.shell != "batch":
            continue
        if job.origin == "job file" and variable.at.field:
            # lumitui expands these names, so the user must have doubled the dollar.
            if set(_NAMED.findall(variable.value)) - (set() if image else {"USER", *site.folders}):
                yield _of_job_file(variable, "$")
        elif _PATH.fullmatch(variable.value) and not is_named(job, variable.name):
            yield Hit(
                f"{variable.name} becomes the literal text {variable.value}, because single "
                "quotes keep the dollar sign.",
                "Write double quotes.",
                variable.at,
                setting(variable, f'"{variable.value}"', "write double quotes"),
            )


@rule(
    "literal-tilde",
    "warning",
    "a tilde that no shell expands",
    why="The program creates a folder named ~.",
    source="bash(1), tilde expansion",
)
def _literal_tilde(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for variable in job.variables:
        if variable.quoted in ('"', "'") and variable.value.startswith("~/"):
            yield _of_variable(job, variable)
    for word in (word for step in job.steps for word in step.arguments):
        quoted = word.quotes in ('"', "'") and word.text.startswith("~/")
        if quoted or re.match(r"--?[\w-]+=~/", word.text):
            yield Hit(
                f"The program gets {word.text} with a literal ~, which no shell expands.",
                _WHOLE if job.origin == "job file" else "Write $HOME instead of ~.",
                word.at,
            )


def _of_variable(job: ScriptJob, variable: Variable) -> Hit:
    if job.origin == "script":
        return Hit(
            f"{variable.name} becomes the literal text {variable.value}: bash does not expand ~ "
            "in quotes.",
            "Write $HOME instead of ~.",
            variable.at,
        )
    return _of_job_file(variable, "~")


def _of_job_file(variable: Variable, sign: str) -> Hit:
    image = variable.at.field == "container.image"
    return Hit(
        f"`{variable.at.field or 'env'}:` is {variable.value}, but no shell expands its {sign} "
        "in a job.",
        _WHOLE,
        variable.at,
        severity="error" if image else None,
    )


@rule(
    "path-overwritten",
    "error",
    "a search path that loses its previous value",
    why="The job no longer finds the system's commands (including srun) or the modules' libraries.",
    source="bash(1), PATH; ld.so(8), LD_LIBRARY_PATH",
)
def _path_overwritten(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for variable in job.settings("PATH", "LD_LIBRARY_PATH"):
        source = source_at(job, variable.at) or variable.value
        if variable.shell != "batch" or variable.step is not None or "$" in variable.value:
            continue
        if variable.name in names_in(source) or "/usr/bin" in variable.value:
            continue
        if variable.name == "PATH" or job.modules:
            right = f"{variable.value}:${variable.name}"
            yield Hit(
                f"{variable.name} becomes only {variable.value}, without its previous value.",
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
    "a folder in /tmp shared by all users",
    why="If another user's job on the node has created the folder, yours cannot write to it.",
    source="LUMI-AI-Guide pull request 108",
)
def _cache_name_shared(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for variable in job.settings(*_WEIGHTS, *_KERNELS):
        fixed = variable.value.startswith(("/tmp/", "/dev/shm/", "/var/tmp/"))
        if job.origin == "job file":  # where a value may contain the user's name
            better = site.environment.get(variable.name, "").startswith("${NODE_TMP}/")
            if fixed and better and variable.at.field:
                yield Hit(
                    f"{variable.name} is {variable.value}, which your jobs on a node share, but "
                    "the profile sets a folder for each job.",
                    "Remove it.",
                    variable.at,
                    cure=Cure(variable.name, None),
                )
        elif fixed and not _OF_JOB.search(variable.value):
            yield Hit(
                f"{variable.name} is {variable.value}, which another user's job may own.",
                "Add $USER-$SLURM_JOB_ID to the name.",
                variable.at,
            )


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
"""Names that Slurm does not have, with the intended names, which are not the nearest."""
_MOST = 300
"""Maximum number of a script's names to compare; no user writes more manually."""


@rule(
    "misspelt-variable",
    "warning",
    "a variable whose name is nearly that of a known one",
    why="Setting it has no effect, and reading it gives an empty string.",
    source="sbatch(1), srun(1), NCCL, PyTorch, OpenMP and others: known_names.py",
)
def _misspelt_variable(job: ScriptJob, site: Site) -> Iterator[Hit]:
    yield from _misspelt_settings(job)
    every = {item.name for item in job.variables}
    own = set[str]() if has_unknown_sources(job) else every - NAMES
    reported = set[str]()
    for use in list(uses(job))[:_MOST]:
        if use.name in reported or use.name in NAMES | every or is_mentioned(job, use.name):
            continue
        meant = _meant(use, own)
        if meant is not None:
            reported.add(use.name)
            what = "Slurm sets" if meant in NAMES else "the script sets"
            glued = meant == use.name.rstrip("_")
            yield Hit(
                f"${use.name} is never set, but {what} {meant}.",
                f"Write ${{{meant}}}_." if glued else f"Write ${meant}.",
                use.at,
                severity="note" if use.guarded else None,
            )


def _meant(use: Use, own: Collection[str]) -> str | None:
    """Return the variable for which a name was probably meant."""
    if re.match(r"S[A-Z]{3,5}_", use.name):
        return _CONFUSED.get(use.name) or alike(use.name, _SLURM)
    if use.guarded or use.in_single_quotes:
        return None
    if (plain := use.name.rstrip("_")) in own:
        return plain
    return alike(use.name, {name for name in own if name[0] == use.name[0]})


def _misspelt_settings(job: ScriptJob) -> Iterator[Hit]:
    """Yield the exported variables that nothing reads and whose name nearly matches a known one."""
    names = {item.name for item in job.variables}
    reported = set[str]()
    for variable in job.variables[:_MOST]:
        name = variable.name
        sent = variable.exported and name not in reported and name.lstrip("_") not in NAMES
        own = any(name in text for text in job.files.values())
        if not sent or own or is_named(job, name):
            continue
        reported.add(name)
        meant = alike(name, NAMES)
        if meant is not None and meant not in names:
            yield Hit(
                f"No known program reads {name}; you probably mean {meant}.",
                f"Write {meant}.",
                variable.at,
            )


_RANKS = "csc-user-guide, ml-multi.md; LUMI-AI-Guide ea60bc1, multi-gpu-and-node"
_NODE_RANK = re.compile(r"--(?:node|machine)[_-]rank[= ](?<!\\)\$\{?(SLURM_(?:NODEID|PROCID))\b")
_GIVEN = re.compile(r"--(?:node|machine)[_-]rank[= ][\"']?\$\{?([A-Za-z_]\w*)")
"""The variable that a launcher receives as its node rank."""
_OF_RANKS = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "MACHINE_RANK")


@rule(
    "rank-set-in-batch",
    "error",
    "a rank that the batch script sets for all tasks",
    why="All tasks act as rank 0, and wait for ranks that never come, or share GPU 0.",
    source=_RANKS,
)
def _rank_set_in_batch(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if not any(step.srun for step in job.training):
        return
    own_gpu = job.options.has("gpus-per-task", "ntasks-per-gpu") or job.options.has("gpu-bind")
    for variable in job.settings(*_OF_RANKS, *GPU_LISTS, *_GIVEN.findall(job.text)):
        of_task = [name for name in names_in(variable.value) if name in RANK_VARIABLES]
        if variable.shell != "batch" or not of_task:
            continue
        if variable.name in GPU_LISTS:
            started = (step.rank.per_node or 1 for step in steps_with(job, variable) if step.srun)
            if (ranks := max(started, default=1)) > 1 and not own_gpu:
                yield Hit(
                    f"{variable.name} is set in the batch script, where ${of_task[0]} is 0: all "
                    f"{ranks} ranks of a node see only GPU 0.",
                    "Remove it; ranks select their GPU by LOCAL_RANK.",
                    variable.at,
                )
        elif loses_ranks(job, of_task[0]):
            yield Hit(
                f"{variable.name} is set in the batch script, where ${of_task[0]} is 0 for all "
                "tasks.",
                f"Set it inside srun: srun bash -c 'export {variable.name}=${of_task[0]}; …'.",
                variable.at,
            )


def _outer_words(step: JobStep) -> list[tuple[str, Position]]:
    """Return the texts after srun whose variables the batch script may expand."""
    outer = step.shells[:1] or step.arguments
    words = [(word.text, word.at) for word in outer if word.expanded_in == "batch"]
    if not step.shells:
        words += [(item.value or "", item.at) for item in step.launcher_options.all]
    return words


@rule(
    "rank-expanded-in-batch",
    "error",
    "a rank that the batch script expands in the launch line",
    why="Without single quotes, bash expands the variable before srun starts, so every task "
    "assumes that it is rank 0.",
    source=_RANKS,
)
def _rank_expanded_in_batch(job: ScriptJob, site: Site) -> Iterator[Hit]:
    said = set[str]()
    for variable in job.variables:
        source = source_at(job, variable.at) or variable.value
        found = _NODE_RANK.search(outside_single_quotes(source))
        if variable.shell == "batch" and found and loses_ranks(job, found[1]):
            said.add(found[1])
            yield Hit(
                f"bash expands ${found[1]} in the batch script, where it is 0, instead of in "
                "each task.",
                f"Write \\${found[1]}, or put the text in single quotes.",
                variable.at,
            )
    for step in job.training:
        if step.srun is None:
            continue
        for text, at in _outer_words(step):
            source = source_at(job, at) or text
            names = names_in(outside_single_quotes(source))
            early = [n for n in names if n in RANK_VARIABLES and loses_ranks(job, n)]
            in_setting = any(v.at.line <= at.line <= v.at.end_line for v in job.variables)
            if early and early[0] in said and in_setting:
                continue  # the rule has reported the setting that the line uses
            if early:
                yield Hit(
                    f"bash expands ${early[0]} in the batch script, where it is 0, instead of in "
                    "each task.",
                    f"Put the command in single quotes, bash -c '…', or write \\${early[0]}.",
                    at if at.line else step.at,
                )
                break


@rule(
    "container-variable-outside",
    "error",
    "a variable of the image, expanded outside it",
    why="The batch script expands it to an empty string, so the environment is never activated.",
    source="LUMI-training-materials, 205-Containers; the site's profile, containers",
)
def _container_variable_outside(job: ScriptJob, site: Site) -> Iterator[Hit]:
    own = {name for item in site.containers.values() for name in names_in(item.activate)}
    for step in job.steps:
        for text in step.shells[:1]:
            if not step.container:
                continue
            source = source_at(job, text.at) or text.text
            early = [name for name in names_in(outside_single_quotes(source)) if name in own]
            if early and text.expanded_in == "batch" and text.quotes != "'":
                yield Hit(
                    f"${early[0]} is set only in the image, but the batch script expands it to "
                    "an empty string.",
                    f"Write \\${early[0]}, or put the command in single quotes.",
                    _place(text.at, source, early[0]),
                )


def _place(at: Position, source: str, name: str) -> Position:
    """Return the position of a variable in the text `source`, which begins at `at`."""
    found = re.search(rf"(?<!\\)\$\{{?{name}\b", source)
    if not found or at.file:
        return at
    before = source[: found.start()].split("\n")
    line = at.line + len(before) - 1
    column = len(before[-1]) + (at.column if line == at.line else 1)
    return replace(at, line=line, column=column, end_line=line, end_column=column + len(found[0]))
