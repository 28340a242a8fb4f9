"""Values of a script in which Slurm's variables stand, as a job file's plain text."""

import re

from lumitui.app.adopt.notes import Notes
from lumitui.app.lint.model.job import Job

_NAMED = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def plain(text: str, what: str, job: Job, notes: Notes) -> str | None:
    """Return a text with the numbers of this job in place of Slurm's variables.

    None: it has a variable whose value is known on the site alone.
    """
    fixed = with_numbers(text, job)
    if "$" in fixed or "`" in fixed:
        return None
    if fixed != text:
        notes.lose(
            what, f"the variable became this job's number, {fixed}; it stays when nodes change"
        )
    return fixed


def with_numbers(text: str, job: Job) -> str:
    """Return a text with the numbers of `job` in place of Slurm's variables, as far as known."""
    numbers = _numbers(job)
    return _NAMED.sub(lambda match: numbers.get(match[1] or match[2], match[0]), text)


def _numbers(job: Job) -> dict[str, str]:
    asked, rank = job.resources, job.rank
    found = {
        "SLURM_NNODES": job.nodes,
        "SLURM_JOB_NUM_NODES": job.nodes,
        "SLURM_CPUS_PER_TASK": asked.cpus_per_task,
        "SLURM_GPUS_ON_NODE": asked.gpus_per_node,
        "SLURM_GPUS_PER_NODE": asked.gpus_per_node,
        "SLURM_NTASKS_PER_NODE": asked.tasks_per_node,
        "SLURM_NTASKS": asked.tasks,
        "WORLD_SIZE": rank.world_size,
    }
    return {name: str(value) for name, value in found.items() if value is not None}
