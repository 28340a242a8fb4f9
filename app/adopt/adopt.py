"""A script as a job file: what was kept, what lumitui derives, and what was lost."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lumitui.app.adopt.environment import environment_of, preparation_of
from lumitui.app.adopt.notes import Notes, Said
from lumitui.app.adopt.program import main_step, program_of
from lumitui.app.adopt.request import request_of
from lumitui.app.compose.layout import layout_of
from lumitui.app.compose.placement import Placement, placement_of
from lumitui.app.compose.price import memory_gib
from lumitui.app.compose.script.program import container_environment
from lumitui.app.job.spec import JobSpec
from lumitui.app.lint.model.job import Job
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.validation import validate
from lumitui.remote.site.reading.yaml_document import Document


@dataclass(frozen=True)
class Adoption:
    """A job file made from a script."""

    keys: Mapping[str, object]
    """The job file's keys, in the order in which they are written."""
    spec: JobSpec
    kept: tuple[Said, ...]
    derived: tuple[Said, ...]
    lost: tuple[Said, ...]


def adopt(job: Job, site: Site, name: str) -> Adoption:
    """Return the job file of a script; `name` is its job's where the script gives none.

    Raises:
        InputError: the script starts no training, or what it asks for cannot be a job file.
    """
    notes = Notes()
    main_step(job)
    called = re.sub(r"[^\w.@+-]+", "-", job.name or name).strip("-") or "job"
    data: dict[str, object] = {"name": called[:100]}
    data |= request_of(job, site, notes)
    data |= program_of(job, site, notes)
    data = _fitting(data, notes, site)
    place = placement_of(_spec(data), site)
    data |= _share(job, place, notes)
    data |= environment_of(job, container_environment(place), notes)
    preparation_of(job, place.runtime.modules, notes)
    kept, derived, lost = (
        tuple(dict.fromkeys(items)) for items in (notes.kept, notes.derived, notes.lost)
    )
    return Adoption(MappingProxyType(data), _spec(data), kept, derived, lost)


def _spec(data: dict[str, object]) -> JobSpec:
    return validate(Document("", "the script's job file"), JobSpec, data)


def _fitting(data: dict[str, object], notes: Notes, site: Site) -> dict[str, object]:
    """Return the keys with what the launcher or the strategy allows."""
    one = data["nodes"] == 1 and data.get("gpus_per_node", site.node.gpus) == 1
    if data["launcher"] == "plain" and not one:
        data["launcher"] = "srun"
    if data.get("strategy") == "single" and not one:
        data.pop("strategy")
        notes.lose("one rank", "the job has more GPUs than one rank uses; each gets a rank")
    return data


def _share(job: Job, place: Placement, notes: Notes) -> dict[str, object]:
    """Return cores and memory where the script asks for others than lumitui would."""
    layout, asked, site = layout_of(place), job.resources, place.site
    data: dict[str, object] = {}
    tasks = asked.tasks_per_node or layout.tasks_per_node
    if asked.cpus_per_task and job.options.has("cpus-per-task"):
        cores = asked.cpus_per_task * tasks // layout.tasks_per_node
        what = f"--cpus-per-task={asked.cpus_per_task}"
        ours = f"the profile's {layout.cpus_per_task} for each task"
        if cores == layout.cpus_per_task:
            same = asked.cpus_per_task == cores
            notes.derive(what, ours if same else f"as many in all: {ours}")
        elif site.cores_fixed or not cores:
            notes.lose(what, f"the job gets {ours}")
        else:
            data["cpus_per_task"] = cores
            notes.keep(what, "cpus_per_task")
    memory = asked.memory_gib
    if memory is None or not job.options.has("mem", "mem-per-cpu", "mem-per-gpu"):
        return data
    if not site.memory_option:
        notes.derive("--mem", "memory comes with the cores there")
    elif math.isclose(memory, memory_gib(place, layout), rel_tol=1e-3):
        notes.derive("--mem", f"the profile's {memory:g} GiB for each node")
    else:
        whole = memory == int(memory)
        data["memory"] = f"{memory:.0f}G" if whole else f"{math.ceil(memory * 1024)}M"
        notes.keep("--mem", "memory")
    return data
