"""A job's allocation at a site: partition, whole nodes, the image's generation, folders. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lumitui.app.knowledge.script_job import Option, ScriptJob
from lumitui.remote.site.container import Container
from lumitui.remote.site.partition import Partition
from lumitui.remote.site.profile import Site

GPU_OPTIONS = ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket")
"""Slurm options that request GPUs, besides `--gres=gpu`."""


@dataclass(frozen=True)
class NamedPartition:
    """A partition of the profile, under the profile's name for it."""

    name: str
    partition: Partition


def qos_of(partition: Partition) -> str | None:
    """Return the QOS that an entry requires, or None."""
    found = (each.removeprefix("--qos=") for each in partition.arguments if "--qos=" in each)
    return next(found, None)


def queue_of(job: ScriptJob, site: Site) -> NamedPartition | None:
    """Return the job's partition; None if it names none, or an unknown one.

    If a profile's entries are QOSs, the QOS decides.
    """
    name, qos = job.resources.partition or site.default_partition, job.resources.qos
    fits = []
    for entry, partition in site.partitions.items():
        own, needed = partition.slurm_partition or entry, qos_of(partition)
        if qos is not None and needed == qos and name in (None, own, entry):
            return NamedPartition(entry, partition)
        if name is not None and needed is None and name in (own, entry):
            fits.append(NamedPartition(entry, partition))
    return fits[0] if len(fits) == 1 else None


def on_other_nodes(job: ScriptJob, site: Site) -> bool:
    """Return whether a job without GPUs names a queue whose nodes the profile does not describe."""
    named = job.resources.partition or job.resources.qos
    return bool(named) and queue_of(job, site) is None and not asks_for_gpus(job)


def is_exclusive(job: ScriptJob) -> bool:
    """Return whether the job itself requests whole nodes, in any partition."""
    option = job.options.get("exclusive")
    return option is not None and option.value not in ("user", "mcs", "topo")


def whole_nodes(job: ScriptJob, site: Site) -> bool | None:
    """Return whether the job has its nodes to itself; None if its partition is unknown."""
    if is_exclusive(job):
        return True
    queue = queue_of(job, site)
    if queue is None:
        return None
    if queue.partition.allocation == "node":
        return True
    if not queue.partition.whole_when_full:
        # On a node that only one user's jobs share, a job may have all cores or not.
        return None if job.options.has("exclusive") else False
    # If the job gets all GPUs and cores of its nodes, no other job fits on them.
    cores = cores_of_node(job, site) if gpus_of_node(job) == site.node.gpus else None
    return cores is not None and cores >= len(site.node.usable_cores)


def gpus_of_node(job: ScriptJob) -> int | None:
    """Return the requested GPUs per node; None if not requested, or unknown."""
    return job.resources.gpus_per_node


def cores_of_node(job: ScriptJob, site: Site) -> int | None:
    """Return the cores per node that a job gets for its request; None if unknown.

    Without `--cpus-per-task`, Slurm may give cores with each GPU: `--cpus-per-gpu`, DefCpuPerGPU.
    """
    cores, tasks, gpus = job.resources.cpus_per_task, job.tasks_per_node, gpus_of_node(job)
    if job.options.has("cpus-per-task"):
        return None if cores is None else tasks * cores
    own = job.options.has("cpus-per-gpu")
    if not own and not (site.cores_with_gpus and asks_for_gpus(job)):
        return tasks
    each = job.options.number("cpus-per-gpu") if own else site.cores_per_gpu
    return None if each is None or gpus is None else max(tasks, each * gpus)


def threads_of_core(job: ScriptJob) -> int:
    """Return how many CPUs Slurm counts for one core: several if it counts hardware threads."""
    hint, threads = job.options.value("hint"), job.options.number("threads-per-core")
    return 2 if hint == "multithread" else threads or 1


def asks_for_gpus(job: ScriptJob) -> bool:
    """Return whether any option requests GPUs, whatever the number."""
    names = (*GPU_OPTIONS, "tres-per-task", "ntasks-per-gpu")
    return job.options.has(*names) or any(map(_is_gpu_gres, job.options.all))


def _is_gpu_gres(option: Option) -> bool:
    return option.name == "gres" and "gpu" in (option.value or "")


def gpu_option(job: ScriptJob) -> Option | None:
    """Return the option that requests the job's GPUs per node, or in total."""
    found = [one for one in job.options.all if one.name in GPU_OPTIONS or _is_gpu_gres(one)]
    return found[-1] if found else None


def generation_of(image: str, site: Site) -> tuple[str, Container] | None:
    """Return the container generation of an image; None if its path does not show it."""
    for name, container in site.containers.items():
        if image and image == container.image:
            return name, container
        if container.images and re.search(container.images, image):
            return name, container
    return None


def generations_of(job: ScriptJob, site: Site) -> Iterator[tuple[str, str, Container]]:
    """Yield the job's images, each with its generation's name and container."""
    for image in job.images:
        if generation := generation_of(image, site):
            yield image, *generation


def site_says(site: Site, name: str) -> bool:
    """Return whether a rule of the site covers this variable, in more detail than general rules."""
    return any(rule.field == f"env.{name}" for rule in site.rules)


def work_folder(job: ScriptJob, site: Site) -> str:
    """Return the folder for the project's large files, as a message shows it."""
    folder = site.work_root.partition("/{user}")[0]
    return folder.replace(
        "{account}", site.account.in_path(job.resources.account or "") or "PROJECT"
    )


def has_unknown_sources(job: ScriptJob) -> bool:
    """Return whether the script sources an unavailable script, which may set any variable."""
    harmless = re.compile(r"(activate|conda\.sh|\.bashrc|\.bash_profile|lmod|profile)$")
    return any(
        command.program in (".", "source")
        and command.words
        and command.words[0].known not in job.files
        and not harmless.search(command.words[0].known)
        for command in job.commands
    )
