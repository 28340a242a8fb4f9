"""The differences between an imported script and the script of its job file. Pure."""

import re
from collections.abc import Iterator
from itertools import zip_longest

from lumitui.app.job.fields.env_variables import check_environment_name, is_taken
from lumitui.app.knowledge.script_job import JobStep, ScriptJob
from lumitui.app.launch.from_script.launcher_options import directives
from lumitui.app.launch.from_script.notes import ImportNote

_CARRIED = {
    "qos", "signal", "constraint", "hint", "nodelist", "exclude", "reservation", "dependency",
}  # fmt: skip
"""Options that the new script keeps; the report lists those whose value changed."""


def differences(before: ScriptJob, after: ScriptJob) -> tuple[ImportNote, ...]:
    """Return what differs between two jobs: a directive, the ranks, the program, a variable."""
    notes = [
        ImportNote(what, f"{_shown(old)} → {_shown(new)}")
        for what, old, new in _compared(before, after)
        if old != new
    ]
    options = _CARRIED if after.options.has("qos") else _CARRIED - {"qos"}
    return (*notes, *directives(before.options, after.options, options))


def _shown(value: object) -> str:
    return "not set" if value is None else str(value)


def _compared(before: ScriptJob, after: ScriptJob) -> Iterator[tuple[str, object, object]]:
    old, new = before.resources, after.resources
    yield "account", old.account, new.account
    # A script without one gets the site's, which a note about lost parts mentions.
    if old.partition is not None:
        yield "partition", old.partition, new.partition
    yield "nodes", before.nodes, after.nodes
    yield "GPUs per node", old.gpus_per_node, new.gpus_per_node
    if old.gpu_type and new.gpu_type:
        yield "type of GPU", old.gpu_type, new.gpu_type
    yield "tasks per node", _tasks(before), _tasks(after)
    yield "cores per task", old.cpus_per_task, new.cpus_per_task
    yield "memory per node", _memory(old.memory_gib), _memory(new.memory_gib)
    yield "seconds", old.seconds, new.seconds
    yield "ranks", before.rank.world_size, after.rank.world_size
    if before.rank.cores is not None and before.rank.cores != old.cpus_per_task:
        yield "cores of a rank", before.rank.cores, after.rank.cores or new.cpus_per_task
    if before.rank.visible_gpus == "one":
        yield "GPUs that a rank sees", before.rank.visible_gpus, after.rank.visible_gpus
    first, second = (job.training[-1] if job.training else None for job in (before, after))
    yield "launcher", first and first.launcher, second and second.launcher
    yield "srun", bool(first and first.srun), bool(second and second.srun)
    cores = first.srun.number("cpus-per-task") if first and first.srun else None
    if cores is not None:
        yield "srun --cpus-per-task", cores, new.cpus_per_task
    yield "image", _image(first), _image(second)
    yield from _arguments(first, second)
    names = {
        item.name
        for item in before.variables
        if item.exported and item.shell == "batch" and not item.local
    }
    for name in sorted(name for name in names if not is_taken(name) and not _secret(name)):
        one, other = before.variable(name), after.variable(name)
        # Variables that the new script lacks are among the lost parts, with the reason.
        if one is not None and other is not None:
            yield name, one.value, other.value
    yield "variables of the site's profile", "not set", _added(before, after) or "not set"


def _added(before: ScriptJob, after: ScriptJob) -> str:
    """Return the variables that only the new job sets."""
    set_before = {item.name for item in before.variables if not item.local}
    set_before |= {re.sub(r"^(?:SINGULARITY|APPTAINER)ENV_", "", name) for name in set_before}
    starts = [before.options, *(step.srun for step in before.training if step.srun)]
    exports = (options.value("export") or "" for options in starts)
    set_before |= {part.partition("=")[0] for text in exports for part in text.split(",")}
    names = dict.fromkeys(
        item.name
        for item in after.variables
        if item.exported and item.shell == "batch" and not is_taken(item.name)
        and item.name not in set_before
    )  # fmt: skip
    return ", ".join(names)


def _memory(gib: float | None) -> str:
    return "the site's default" if gib is None else f"{gib:g} GiB"


def _image(step: JobStep | None) -> str | None:
    image = step.container.image if step and step.container else None
    return image.known if image else None


def _arguments(
    first: JobStep | None, second: JobStep | None
) -> Iterator[tuple[str, object, object]]:
    one, other = (step.arguments if step else () for step in (first, second))
    if len(one) != len(other):
        yield "arguments", " ".join(w.known for w in one), " ".join(w.known for w in other)
        return
    for before, after in zip_longest(one, other):
        # Arguments with variables that only the site knows are among the lost parts.
        if "$" not in after.known:
            yield "argument", before.known, after.known


def _secret(name: str) -> bool:
    """Return whether a variable's value is never shown."""
    try:
        check_environment_name(name)
    except ValueError:
        return True
    return False


def _tasks(job: ScriptJob) -> int | None:
    request = job.resources
    if request.tasks_per_node is not None:
        return request.tasks_per_node
    return None if request.tasks is None else -(-request.tasks // job.nodes)
