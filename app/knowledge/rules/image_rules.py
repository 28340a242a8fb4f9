"""Rules about the image: the right one for the GPUs, its call, and what it sees of the disks."""

import re
from collections.abc import Iterator
from itertools import pairwise

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ContainerCall, JobStep, ScriptJob
from lumitui.app.knowledge.site_facts.allocation import (
    generation_of,
    has_unknown_sources,
)
from lumitui.app.knowledge.site_facts.expansions import source_at
from lumitui.app.knowledge.site_facts.process_counts import tasks_of
from lumitui.remote.site.container import Container
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import Position

_RUNTIMES = ("singularity", "apptainer")
_CALL = "singularity exec(1)"
_REGISTRY = re.compile(r"^(docker|oras|library|shub)://")


def _calls(job: ScriptJob) -> Iterator[tuple[JobStep, ContainerCall, str]]:
    """Yield the steps that enter a container by a runtime of their own, with the image's path."""
    for step in job.steps:
        call = step.container
        if call is not None and call.program.rpartition("/")[2] in _RUNTIMES:
            yield step, call, call.image.known if call.image else ""


def _has_gpu_flag(job: ScriptJob, call: ContainerCall, *names: str) -> bool:
    variables = [f"{program}_{name.upper()}" for program in ("SINGULARITY", "APPTAINER")
                 for name in names]  # fmt: skip
    return call.options.has(*names) or any(job.variable(name) for name in variables)


@rule(
    "no-gpu-flag",
    "error",
    "a container without the GPU's driver",
    why="Without --nv the image does not see the driver of NVIDIA's GPUs: "
    "torch.cuda.is_available() is False, and the program ends or trains on the CPU.",
    source=f"{_CALL} --nv; docs.csc.fi, containers",
)
def no_gpu_flag(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `apptainer exec image.sif python train.py` at a site with NVIDIA's GPUs."""
    if site.node.gpu_vendor != "nvidia" or not job.resources.gpus_per_node:
        return
    for step, call, _ in _calls(job):
        if (
            step.trains
            and call.verb in ("exec", "run", "")
            and not _has_gpu_flag(job, call, "nv", "nvccli")
        ):
            yield Hit(
                f"Without --nv the program in the image sees no {site.node.gpu}.",
                f"Write {call.program} {call.verb} --nv.",
                call.at if call.at.line else step.at,
            )


@rule(
    "wrong-gpu-flag",
    "warning",
    "the GPU option of another maker",
    why="--nv brings NVIDIA's driver into the image and --rocm AMD's: the other one is missing, "
    "and the call warns or puts the wrong libraries first.",
    source=f"{_CALL} --nv, --rocm",
)
def wrong_gpu_flag(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `singularity exec --nv` on AMD's GPUs."""
    wrong = {"amd": "nv", "nvidia": "rocm"}.get(site.node.gpu_vendor)
    for step, call, _ in _calls(job):
        option = call.options.get(wrong) if wrong else None
        if option is not None:
            yield Hit(
                f"--{wrong} is for GPUs of another maker: {site.name} has {site.node.gpu}.",
                f"Remove --{wrong}.",
                option.at if option.at.line else step.at,
            )


@rule(
    "image-of-other-gpus",
    "error",
    "an image that was built for another maker's GPUs",
    why="Its PyTorch has no kernels for these GPUs: it finds none, or ends at the first operation.",
    source="PyTorch documentation, get started; ROCm documentation",
)
def image_of_other_gpus(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find an image with rocm in its name at a site with NVIDIA's GPUs."""
    other = {
        "amd": re.compile(r"nvcr\.io|nvidia|[-_.:/]cu(da)?[-_]?1[12]\d?", re.IGNORECASE),
        "nvidia": re.compile(r"rocm|(?<![a-z])amdgpu", re.IGNORECASE),
    }.get(site.node.gpu_vendor)
    for step, call, image in _calls(job):
        found = other.search(image) if other else None
        if found and call.image:
            yield Hit(
                f"The image's name has {found[0].strip('-_.:/')!r} in it, and {site.name} has "
                f"{site.node.gpu}.",
                "Take an image for these GPUs.",
                call.image.at if call.image.at.line else step.at,
            )


@rule(
    "image-in-job",
    "warning",
    "an image that every task downloads and converts",
    why="Each task makes its own copy in the cache: it costs minutes of billed time, and fills "
    "home.",
    source="singularity pull(1); docs.csc.fi, containers",
)
def image_in_job(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `singularity exec docker://…` in a job."""
    said = {rule.id for rule in site.rules if rule.field == "container.image"}
    for step, call, image in _calls(job):
        if not _REGISTRY.match(image) or call.image is None:
            continue
        tasks = tasks_of(job, step)
        if any(name.endswith("-foreign-image") for name in said):
            return  # the site's own rule says more
        if not site.internet_on_compute_nodes:
            yield Hit(
                f"The job downloads {image}, and the nodes of {site.name} reach no internet.",
                f"Make a file of it before: {call.program} pull image.sif {image}.",
                call.image.at,
                severity="error",
            )
        elif tasks:
            yield Hit(
                f"The job downloads and converts {image}"
                + ("." if tasks == 1 else f" {tasks} times, once for each task."),
                f"Make a file of it before: {call.program} pull image.sif {image}.",
                call.image.at,
            )


@rule(
    "python-forgotten",
    "error",
    "a Python file in a container call, without `python` before it",
    why="The file is not a program: the call ends with `FATAL: permission denied`.",
    source="LUMI-training-materials, ai-20251008, extra_03, question 6",
)
def python_forgotten(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `singularity exec image.sif train.py`."""
    for step, call, _ in _calls(job):
        program = step.program.known if step.program else ""
        image = call.image.known if call.image else ""
        runs = call.verb == "exec" or (call.verb == "run" and generation_of(image, site))
        plain = step.launcher in ("srun", "plain") and runs
        if plain and program.endswith(".py") and step.program and _follows_image(job, step, call):
            yield Hit(
                f"{call.program} {call.verb} starts {program} itself, which is not a program: "
                "`permission denied`.",
                f"Write python {program}.",
                step.program.at if step.program.at.line else step.at,
            )


def _follows_image(job: ScriptJob, step: JobStep, call: ContainerCall) -> bool:
    """Whether nothing stands between the image and the program, like `python`."""
    if not call.image or not step.program or not call.image.at.line:
        return False
    image, program = call.image.at, step.program.at
    if (program.line, program.column) < (image.end_line, image.end_column):
        return False  # the word is put together from pieces of the script above
    between = Position(image.end_line, image.end_column, program.line, program.column)
    return not source_at(job, between).strip(" \t\n\\")


_LOADS = re.compile(r"^module\s+load\s+(.+)$")
_BIND_VARIABLES = ("SINGULARITY_BIND", "SINGULARITY_BINDPATH", "APPTAINER_BIND",
                   "APPTAINER_BINDPATH")  # fmt: skip
_SHARED = re.compile(r"^/(scratch|flash|project|projappl|pfs|work|gpfs|leonardo_work|mnt)\b")


def _modules_of(container: Container) -> set[str]:
    """Return the modules that a generation loads, without versions."""
    found = set[str]()
    for line in container.modules:
        match = _LOADS.match(line)
        found |= {word.partition("/")[0] for word in match[1].split()} if match else set()
    return found


def _loaded(job: ScriptJob) -> set[str]:
    return {name.partition("/")[0] for name in job.modules}


def _paths(job: ScriptJob, step: JobStep) -> list[str]:
    """Return the values of a step's arguments and of variables; images are no data."""
    words = [step.program, *step.arguments] if step.program else [*step.arguments]
    texts = [*(word.known for word in words), *(item.value for item in job.variables)]
    return [text.rpartition("=")[2] for text in texts if not text.endswith(".sif")]


def _profile_binds(site: Site, program: str) -> tuple[str, ...]:
    """Return the folders that the profile's only call of `program` binds."""
    calls = [one.call for one in site.containers.values() if one.call[:1] == (program,)]
    if len(calls) != 1:
        return ()
    return tuple(
        path.partition(":")[0]
        for flag, value in pairwise(calls[0])
        if flag in ("-B", "--bind")
        for path in value.split(",")
    )


def _lacks_bind(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find a call without -B, of a path that the profile's own call binds."""
    for step, call, _ in _calls(job):
        for folder in () if call.binds or not step.trains else _profile_binds(site, call.program):
            inside = [path for path in _paths(job, step) if f"{path}/".startswith(f"{folder}/")]
            if inside:
                yield Hit(
                    f"The container may not see {inside[0]}: {site.name}'s profile binds {folder}, "
                    "and this call binds nothing.",
                    f"Write {call.program} {call.verb} -B {folder}.",
                    call.at if call.at.line else step.at,
                    severity="warning",
                )
                return


@rule(
    "no-binds",
    "error",
    "a container that sees none of the shared file systems",
    why="Without the site's module or -B a container sees home and the current folder: data and "
    "programs elsewhere are `No such file or directory`.",
    source="the site's profile, containers.modules; LUMI user guide, storage",
)
def no_binds(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find an image of the site without its bindings module or without -B."""
    if has_unknown_sources(job) or any(job.variable(name) for name in _BIND_VARIABLES):
        return
    yield from _lacks_bind(job, site)
    for step in job.steps:
        call = step.container
        generation = generation_of(call.image.known, site) if call and call.image else None
        if call is None or generation is None or call.binds or not step.trains:
            continue
        own = _modules_of(generation[1])
        binds = any(re.search(r"singularity|apptainer|bind|container", name, re.IGNORECASE)
                    for name in _loaded(job))  # fmt: skip
        if not own or binds or own & _loaded(job):
            continue
        names = [text for text in _paths(job, step) if _SHARED.match(text)]
        if names:
            yield Hit(
                f"The container does not see {names[0]}: nothing binds the file system.",
                f"Load {' '.join(sorted(own))} before it.",
                call.at if call.at.line else step.at,
            )
            return
