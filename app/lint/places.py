"""Where a job runs, as rules ask it: whole nodes or shared ones, which GPUs, which images. Pure."""

import re
from typing import Literal

from lumitui.app.lint.model.job import Job
from lumitui.remote.site.container import Container
from lumitui.remote.site.partition import Partition
from lumitui.remote.site.profile import Site


def partition_of(job: Job, site: Site) -> Partition | None:
    """Return the profile's partition of a job; None: it names none, or one that is not there.

    Where the entries of a profile are QOSes of one partition, the job's QOS tells which it is.
    """
    name, qos = job.resources.partition, job.resources.qos
    if name in site.partitions:
        return site.partitions[name]
    for entry in site.partitions.values():
        if f"--qos={qos}" in entry.arguments and entry.slurm_partition in (name, None):
            return entry
        if f"--qos={qos}" in entry.arguments and name is None:
            return entry
    return None


def allocation_of(job: Job, site: Site) -> Literal["whole", "shared"] | None:
    """Return whether a job has its nodes alone; None: its partition is not known."""
    partition, asked = partition_of(job, site), job.resources
    if asked.exclusive or (partition and partition.allocation == "node"):
        return "whole"
    if partition is None:
        return None
    full = asked.gpus_per_node == site.node.gpus
    return "whole" if partition.whole_when_full and full else "shared"


def gpu_maker(site: Site) -> Literal["AMD", "NVIDIA"] | None:
    """Return who made a site's GPUs; None: it has none, or the profile does not say."""
    if site.node.on_cpu:
        return None
    text = f"{site.node.gpu} {site.gpu_readings.prints if site.gpu_readings else ''}"
    if re.search(r"\bAMD\b|rocm", text):
        return "AMD"
    return "NVIDIA" if re.search(r"nvidia", text, re.IGNORECASE) else None


def generation_of(image: str, site: Site) -> tuple[str, Container] | None:
    """Return the generation of containers that an image belongs to; None: its path tells none."""
    for name, container in site.containers.items():
        if image and image == container.image:
            return name, container
        if container.images and re.search(container.images, image):
            return name, container
    return None


def has_unknown_sources(job: Job) -> bool:
    """Whether the script reads another one whose text is not at hand, which may set anything."""
    harmless = re.compile(r"(activate|conda\.sh|\.bashrc|\.bash_profile|lmod|profile)$")
    return any(
        command.program in (".", "source")
        and command.words
        and command.words[0].known not in job.files
        and not harmless.search(command.words[0].known)
        for command in job.commands
    )
