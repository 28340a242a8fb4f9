"""Rules about the names of variables: those that are misspelt, and those that nothing sets."""

import re
from collections.abc import Collection, Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.known_names import NAMES
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.knowledge.site_facts.allocation import has_unknown_sources
from lumitui.app.knowledge.site_facts.expansions import Use, alike, is_mentioned, is_named, uses
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
"""Names of a script that are compared; nobody writes more manually."""


@rule(
    "misspelt-variable",
    "warning",
    "a variable whose name is nearly that of another",
    why="Slurm, the libraries and bash know only the other name: what is set has no effect, and "
    "what is read is empty.",
    source="sbatch(1), srun(1), NCCL, PyTorch, OpenMP and others: known_names.py",
)
def misspelt_variable(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `$SLURM_PROCD`, and `export OMP_NUM_THREAD=7`."""
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


def _misspelt_settings(job: ScriptJob) -> Iterator[Hit]:
    """Yield the exported variables that nothing reads, and whose name is nearly a known one."""
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
                f"No program is known to read {name}; {meant} is the name.",
                f"Write {meant}.",
                variable.at,
            )
