"""Rules about modules, Python environments and images: order, conflicts, visibility."""

import re
from collections.abc import Iterator
from itertools import pairwise

from lumitui.app.knowledge.bash.interpreter import module_call
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ContainerCall, JobStep, ScriptJob
from lumitui.app.knowledge.site_facts.allocation import (
    generation_of,
    generations_of,
    has_unknown_sources,
)
from lumitui.app.knowledge.site_facts.expansions import source_at
from lumitui.app.knowledge.site_facts.process_counts import tasks_of
from lumitui.remote.site.container import Container
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE, Position

_PURGES = ("purge", "reset")


@rule(
    "conda-without-hook",
    "warning",
    "conda activate in a shell without conda's function",
    why="Unless the script sources conda.sh, the command fails with `Run 'conda init' before "
    "'conda activate'`, and another Python runs.",
    source="conda documentation, conda activate; docs.csc.fi, Python",
)
def _conda_without_hook(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if re.search(r"\s-\w*[li]", job.shebang) or re.search(
        r"shell(\.\w+)? .*hook|shell\.bash", job.text
    ):
        return
    # EasyBuild's modules (Anaconda3, Miniforge3) only set PATH; others may also set the function.
    if any(re.match(r"[a-z].*(conda|mamba|forge)|conda|mamba", name) for name in job.modules):
        return
    reads = re.compile(r"conda\.sh|mamba\.sh|\.bashrc|\.bash_profile|\.profile|bin/activate")
    known = False
    for command in job.commands:
        first = command.words[0].known if command.words else ""
        known |= command.program in (".", "source") and any(
            reads.search(text) for word in command.words[:1] for text in (word.known, word.text)
        )
        if command.program in ("conda", "mamba") and first == "activate" and not known:
            yield Hit(
                f"A batch script lacks the shell function behind `{command.program} activate`.",
                'Write `source "$(conda info --base)/etc/profile.d/conda.sh"` before it.',
                command.at,
            )
            return


@rule(
    "install-in-job",
    "warning",
    "packages that the job installs",
    why="All ranks write the same files at once, while the site bills the GPUs.",
    source="csc-user-guide, python; the site's profile, internet_on_compute_nodes",
)
def _install_in_job(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for command in job.commands:
        words = [word.known for word in command.words]
        installs = _installs(command.program, words)
        if not installs or {"--no-index", "--find-links", "--dry-run"} & set(words):
            continue
        step = job.steps[command.step] if command.step is not None else None
        tasks = tasks_of(job, step) if step is not None else 1
        if not site.internet_on_compute_nodes:
            message = (
                f"`{installs}` cannot reach a package index: the nodes of {site.name} have no "
                "internet access."
            )
            yield Hit(
                message,
                "Install on a login node, or upload wheels and add --no-index --find-links.",
                command.at,
                severity="error",
            )
        elif tasks and tasks > 1:
            yield Hit(
                f"All {tasks} tasks run `{installs}` at once, into the same folder.",
                "Install the packages once, on a login node.",
                command.at,
            )
        else:
            yield Hit(
                f"The job runs `{installs}` while its GPUs are billed.",
                "Install the packages once, on a login node.",
                command.at,
                severity="note",
            )


def _installs(program: str, words: list[str]) -> str:
    """Return a short form of an installing command; "" for another command."""
    name = program.rpartition("/")[2]
    if words[:2] == ["-m", "pip"] and name.startswith("python"):
        name, words = "pip", words[2:]
    if re.fullmatch(r"(pip\d?(\.\d+)?|conda|mamba|uv)", name) and "install" in words[:2]:
        return f"{name} install"
    return ""


@rule(
    "image-install-home",
    "warning",
    "packages installed into home from inside an image",
    why="pip installs into ~/.local, which every image with that version of Python reads.",
    source="pip documentation, user installs; docs.csc.fi, Python",
)
def _image_install_home(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for command in job.commands:
        words = [word.known for word in command.words]
        step = job.steps[command.step] if command.step is not None else None
        in_image = step is not None and step.container is not None and command.program != "srun"
        if command.shell != "container" and not in_image:
            continue
        if not _installs(command.program, words) or _has_place(job, words):
            continue
        yield Hit(
            "The image is read-only, so pip installs into ~/.local, which all other images also "
            "read.",
            "Create an environment with python -m venv --system-site-packages DIR, and activate "
            "it.",
            command.at,
        )


def _has_place(job: ScriptJob, words: list[str]) -> bool:
    named = any(word.startswith(("--target", "--prefix", "-t", "--root")) for word in words)
    user_base = job.variable("PYTHONUSERBASE") or job.variable("PIP_TARGET")
    activates = re.search(r"bin/activate|WITH_VENV", job.text)
    return named or user_base is not None or activates is not None


@rule(
    "inherited-modules",
    "note",
    "modules added to those of the login shell",
    why="sbatch sends the login shell's environment with the job, so the job's modules differ if "
    "someone else submits it.",
    source="sbatch(1) --export; LUMI-AI-Guide, May 2026",
)
def _inherited_modules(job: ScriptJob, site: Site) -> Iterator[Hit]:
    used = [container for _image, _name, container in generations_of(job, site)]
    lines = [line for item in used for line in item.modules] if used else [*site.modules]
    purges = any(
        module_call(command.program, [word.known for word in command.words])[0] in _PURGES
        for command in job.commands
        if command.program in ("module", "ml")
    )
    if job.modules and not purges and "module purge" in lines and not job.options.has("export"):
        yield Hit(
            "The job adds modules to those of the shell that submits it.",
            "Write `module purge` before the first `module load`.",
            next((each.at for each in job.commands if each.program in ("module", "ml")), NOWHERE),
        )


@rule(
    "activation-outside-image",
    "warning",
    "a Python environment activated outside the container",
    why="A container has its own PATH, so its own Python starts.",
    source="singularity(1), environment; LUMI-AI-Guide, chapter 2",
)
def _activation_outside_image(job: ScriptJob, site: Site) -> Iterator[Hit]:
    inside = [step.container is not None for step in job.training]
    prepends = any(item.name.endswith("_PREPEND_PATH") for item in job.variables)
    for command in job.commands:
        first = command.words[0].known if command.words else ""
        activates = command.program in ("source", ".") and first.endswith("bin/activate")
        if activates and command.shell == "batch" and inside and all(inside) and not prepends:
            yield Hit(
                f"{first} changes the PATH of the batch script, not that of the container.",
                "Activate it in the container: bash -c 'source …/bin/activate; python …'.",
                command.at,
            )
            return


_RUNTIMES = ("singularity", "apptainer")
_CALL = "singularity exec(1)"
_REGISTRY = re.compile(r"^(docker|oras|library|shub)://")


def _calls(job: ScriptJob) -> Iterator[tuple[JobStep, ContainerCall, str]]:
    """Yield the steps that start their own container, with the image's path."""
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
    "a container without the GPU driver",
    why="Without --nv, torch.cuda.is_available() is False: the program fails or trains on the CPU.",
    source=f"{_CALL} --nv; docs.csc.fi, containers",
)
def _no_gpu_flag(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if site.node.gpu_vendor != "nvidia" or not job.resources.gpus_per_node:
        return
    for step, call, _ in _calls(job):
        if (
            step.trains
            and call.verb in ("exec", "run", "")
            and not _has_gpu_flag(job, call, "nv", "nvccli")
        ):
            yield Hit(
                f"Without --nv, the program in the image sees no {site.node.gpu}.",
                f"Write {call.program} {call.verb} --nv.",
                call.at if call.at.line else step.at,
            )


@rule(
    "wrong-gpu-flag",
    "warning",
    "the GPU option for a different vendor",
    why="--nv adds NVIDIA's driver to the image, --rocm AMD's; with the wrong one, the program "
    "finds no GPU.",
    source=f"{_CALL} --nv, --rocm",
)
def _wrong_gpu_flag(job: ScriptJob, site: Site) -> Iterator[Hit]:
    wrong = {"amd": "nv", "nvidia": "rocm"}.get(site.node.gpu_vendor)
    for step, call, _ in _calls(job):
        option = call.options.get(wrong) if wrong else None
        if option is not None:
            yield Hit(
                f"--{wrong} is for another vendor's GPUs: {site.name} has {site.node.gpu}.",
                f"Remove --{wrong}.",
                option.at if option.at.line else step.at,
            )


@rule(
    "image-of-other-gpus",
    "error",
    "an image built for another vendor's GPUs",
    why=("Its PyTorch finds no GPU, or fails at the first operation."),
    source="PyTorch documentation, get started; ROCm documentation",
)
def _image_of_other_gpus(job: ScriptJob, site: Site) -> Iterator[Hit]:
    other = {
        "amd": re.compile(r"nvcr\.io|nvidia|[-_.:/]cu(da)?[-_]?1[12]\d?", re.IGNORECASE),
        "nvidia": re.compile(r"rocm|(?<![a-z])amdgpu", re.IGNORECASE),
    }.get(site.node.gpu_vendor)
    for step, call, image in _calls(job):
        found = other.search(image) if other else None
        if found and call.image:
            yield Hit(
                f"The image's name contains {found[0].strip('-_.:/')!r}, but {site.name} has "
                f"{site.node.gpu}.",
                "Use an image for these GPUs.",
                call.image.at if call.image.at.line else step.at,
            )


@rule(
    "image-in-job",
    "warning",
    "an image that every task downloads and converts",
    why="Each task creates its own copy, which takes minutes and fills your home folder.",
    source="singularity pull(1); docs.csc.fi, containers",
)
def _image_in_job(job: ScriptJob, site: Site) -> Iterator[Hit]:
    said = {rule.id for rule in site.rules if rule.field == "container.image"}
    for step, call, image in _calls(job):
        if not _REGISTRY.match(image) or call.image is None:
            continue
        tasks = tasks_of(job, step)
        if any(name.endswith("-foreign-image") for name in said):
            return  # the site's own rule reports more
        if not site.internet_on_compute_nodes:
            yield Hit(
                f"The job downloads {image}, but the nodes of {site.name} have no internet access.",
                f"Convert it to a file first: {call.program} pull image.sif {image}.",
                call.image.at,
                severity="error",
            )
        elif tasks:
            yield Hit(
                f"The job downloads and converts {image}"
                + ("." if tasks == 1 else f" {tasks} times, once for each task."),
                f"Convert it to a file first: {call.program} pull image.sif {image}.",
                call.image.at,
            )


@rule(
    "python-forgotten",
    "error",
    "a Python file in a container call, without `python` before it",
    why="The call ends with `FATAL: permission denied`.",
    source="LUMI-training-materials, ai-20251008, extra_03, question 6",
)
def _python_forgotten(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for step, call, _ in _calls(job):
        program = step.program.known if step.program else ""
        image = call.image.known if call.image else ""
        runs = call.verb == "exec" or (call.verb == "run" and generation_of(image, site))
        plain = step.launcher in ("srun", "plain") and runs
        if plain and program.endswith(".py") and step.program and _follows_image(job, step, call):
            yield Hit(
                f"{call.program} {call.verb} runs {program} directly, but it is not a program: "
                "`permission denied`.",
                f"Write python {program}.",
                step.program.at if step.program.at.line else step.at,
            )


def _follows_image(job: ScriptJob, step: JobStep, call: ContainerCall) -> bool:
    """Return whether the program directly follows the image, without `python` for example."""
    if not call.image or not step.program or not call.image.at.line:
        return False
    image, program = call.image.at, step.program.at
    if (program.line, program.column) < (image.end_line, image.end_column):
        return False  # the word's parts come from earlier lines of the script
    between = Position(image.end_line, image.end_column, program.line, program.column)
    return not source_at(job, between).strip(" \t\n\\")


_LOADS = re.compile(r"^module\s+load\s+(.+)$")
_BIND_VARIABLES = ("SINGULARITY_BIND", "SINGULARITY_BINDPATH", "APPTAINER_BIND",
                   "APPTAINER_BINDPATH")  # fmt: skip


def _modules_of(container: Container) -> set[str]:
    """Return the modules that an image generation loads, without versions."""
    found = set[str]()
    for line in container.modules:
        match = _LOADS.match(line)
        found |= {word.partition("/")[0] for word in match[1].split()} if match else set()
    return found


def _loaded(job: ScriptJob) -> set[str]:
    return {name.partition("/")[0] for name in job.modules}


def _paths(job: ScriptJob, step: JobStep) -> list[str]:
    """Return the values of a step's arguments and of variables, except images."""
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
    """Find a call that lacks -B for a path that the profile's own call binds."""
    for step, call, _ in _calls(job):
        for folder in () if call.binds or not step.trains else _profile_binds(site, call.program):
            inside = [path for path in _paths(job, step) if f"{path}/".startswith(f"{folder}/")]
            if inside:
                yield Hit(
                    f"The container may not see {inside[0]}: {site.name}'s profile binds "
                    f"{folder}, but this call binds nothing.",
                    f"Write {call.program} {call.verb} -B {folder}.",
                    call.at if call.at.line else step.at,
                    severity="warning",
                )
                return


@rule(
    "no-binds",
    "error",
    "a container that does not see the shared file systems",
    why="Without the site's module or -B, a container sees only home and the current folder, "
    "and reports `No such file or directory` for the rest.",
    source="the site's profile, containers.modules; LUMI user guide, storage",
)
def _no_binds(job: ScriptJob, site: Site) -> Iterator[Hit]:
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
        names = [text for text in _paths(job, step) if site.is_shared(text)]
        if names:
            yield Hit(
                f"The container does not see {names[0]}: the call does not bind its file system.",
                f"Load {' '.join(sorted(own))} before the call.",
                call.at if call.at.line else step.at,
            )
            return
