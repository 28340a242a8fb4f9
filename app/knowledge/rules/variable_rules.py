"""Rules about variables: those that are lost on the way to the ranks, and those that are secret."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob, Variable
from lumitui.app.knowledge.site_facts.expansions import is_named
from lumitui.app.knowledge.site_facts.process_counts import PER_NODE_LAUNCHERS
from lumitui.remote.site.finding import Fix
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
"""Variables that only programs read: to set one without export is never meant."""


@rule(
    "not-exported",
    "error",
    "a variable for programs that is not exported",
    why="Without export it stays in the batch script, and the ranks do not have it.",
    source="bash(1), export; srun(1) --export",
)
def not_exported(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `MASTER_PORT=29500` without export."""
    lines = job.text.split("\n")
    launched = any(step.launcher in PER_NODE_LAUNCHERS for step in job.training)
    for variable in job.variables:
        if launched and variable.name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE"):
            continue  # these launchers are told by options, and set them for their ranks
        bare = not variable.exported and variable.step is None and variable.shell == "batch"
        if not bare or not _READ_BY_PROGRAMS.fullmatch(variable.name):
            continue
        exported = any(item.exported for item in job.settings(variable.name))
        if exported or is_named(job, variable.name) or re.search(r"\bset -\w*a", job.text):
            continue
        plain = re.fullmatch(r"\s*", _before(lines, variable))
        yield Hit(
            f"{variable.name} is set but not exported, so that the ranks do not get it.",
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
    why="Slurm and the project's history keep the script, and administrators can read the job's "
    "environment: the key is no longer secret.",
    source="gitleaks, config/gitleaks.toml; scontrol(1) write batch_script",
)
def secret_in_words(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `export HF_TOKEN=hf_…`."""
    if job.origin == "job file":  # compose says it with the key of the job file
        return
    lines_reported = set[int]()
    for mark in marks_in(job.text.encode("utf-8", "surrogateescape")):
        if mark.line in lines_reported:
            continue
        lines_reported.add(mark.line)
        lines = job.text.split("\n")
        width = len(lines[mark.line - 1]) if mark.line <= len(lines) else 0
        yield Hit(
            f"The line has {shape_of(mark).what} in it.",
            "Read it from a file that only you can read: export NAME=$(cat ~/.key), and revoke "
            "this one.",
            Position(mark.line, 1, mark.line, width + 1) if width else NOWHERE,
        )


@rule(
    "threads-unset",
    "note",
    "several ranks on a node, and no number of threads",
    why="If srun does not bind, every rank starts a thread for each core of the node, and "
    "they wait for each other. torchrun itself sets one thread per rank.",
    source="csc-user-guide, ml-multi.md; OpenMP, OMP_NUM_THREADS",
)
def threads_unset(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find eight ranks a node without OMP_NUM_THREADS."""
    ranks = job.rank.per_node
    if job.variable("OMP_NUM_THREADS") or job.variable("SRUN_CPUS_PER_TASK"):
        return
    bound = ("cpu-bind", "cpus-per-task")
    plain = any(
        step.launcher in ("srun", "plain") and step.srun and not step.srun.has(*bound)
        for step in job.training
    )
    if plain and ranks and ranks > 1:
        cores = job.resources.cpus_per_task
        value = "$SLURM_CPUS_PER_TASK" if cores else "a rank's cores"
        yield Hit(
            f"{ranks} ranks share a node, and nothing limits their threads.",
            f"Set OMP_NUM_THREADS to {value}.",
            job.training[0].at,
        )
