"""What a script starts, as keys of a job file: launcher, program, arguments, container."""

import posixpath
import re

from lumitui.app.adopt.notes import Notes
from lumitui.app.adopt.shell import shell_of
from lumitui.app.adopt.values import plain
from lumitui.app.lint.model.job import Job
from lumitui.app.lint.model.steps import ContainerCall, Step
from lumitui.app.lint.semantics.places import generation_of
from lumitui.remote.errors import InputError
from lumitui.remote.site.container import Container
from lumitui.remote.site.profile import Site

_HERE = re.compile(r"^(?:\$\{?(?:PWD|SLURM_SUBMIT_DIR)\}?/|\./)+")
_SRUN_OURS = {
    "cpu-bind", "kill-on-bad-exit", "label", "unbuffered", "export", "nodes", "ntasks",
    "ntasks-per-node", "cpus-per-task", "gpus", "gpus-per-node", "gpus-per-task", "gpu-bind",
    "gres", "mem", "mem-per-cpu", "hint", "exclusive", "overlap", "output", "error", "jobid",
    "nodelist", "wait", "threads-per-core", "accel-bind", "mem-bind", "account",
    "partition", "time", "verbose", "distribution",
}  # fmt: skip
"""What lumitui's own srun says of these follows from the layout of the ranks."""


def main_step(job: Job) -> Step:
    """Return the step that becomes the job.

    Raises:
        InputError: the script starts nothing that looks like a training.
    """
    if not job.training:
        raise InputError(
            "The script starts no program that looks like a training.",
            "Begin with `lumitui new`, or write `script:` and `args:` by hand.",
        )
    return job.training[-1]


def program_of(job: Job, site: Site, notes: Notes) -> dict[str, object]:
    """Return launcher, strategy, container, workdir, program and arguments.

    Raises:
        InputError: as `main_step`.
    """
    step = main_step(job)
    for other in job.steps:
        if other is not step:
            notes.lose(_words(other), "a job file starts one program; make a second job of it")
    shell_of(job, step, notes)
    data: dict[str, object] = {"launcher": _launcher(job, step, site, notes)}
    if job.rank.world_size == 1:
        data["strategy"] = "single"
    data |= _container(job, step.container, site, notes)
    data |= _workdir(job, notes)
    data["script"] = _script(job, step, notes)
    if arguments := _arguments(job, step, notes):
        data["args"] = arguments
    for option in step.srun.all if step.srun else ():
        what = f"srun {option.raw.strip() or '--' + option.name}"
        if option.name in _SRUN_OURS:
            notes.derive(what, "it follows from the layout of the ranks")
        else:
            notes.lose(what, "a job file has no options of srun")
    return data


def _words(step: Step) -> str:
    words = (step.program, *step.arguments) if step.program else ()
    program = " ".join(word.known for word in words)[:100] or f"the step of line {step.at.line}"
    return f"{step.launcher} {program}" if step.launcher != "plain" else program


def _launcher(job: Job, step: Step, site: Site, notes: Notes) -> str:
    if step.launcher == "mpirun" and site.mpi is None:
        notes.lose("mpirun", "the profile knows no mpirun; srun starts the ranks")
        return "srun"
    if step.launcher != "plain":
        return step.launcher
    if step.srun is not None or (job.rank.world_size or 1) > 1:
        if step.srun is None:
            notes.lose("no srun", "the program starts its ranks itself; here srun starts one a GPU")
        return "srun"
    gpus = job.resources.gpus_per_node or 1
    if gpus * job.nodes > 1:
        notes.lose("no srun", "one process has all GPUs there; here srun starts one a GPU")
        return "srun"
    return "plain"


def _script(job: Job, step: Step, notes: Notes) -> str:
    """Return the program's path inside the project."""
    known = _HERE.sub("", step.program.known) if step.program else ""
    folder = (job.folder or "").rstrip("/")
    if folder and known.startswith(f"{folder}/"):
        known = known.removeprefix(f"{folder}/")
    module = step.python and "/" not in known and not known.endswith(".py")
    if module and re.fullmatch(r"[\w.]+", known):
        path = known.replace(".", "/") + ".py"
        notes.lose(
            f"python -m {known}", f"a job file names a file: {path}, which imports as a program"
        )
        return path
    outside = known.startswith(("/", "~")) or "$" in known or ".." in known.split("/")
    if outside or not known:
        name = re.sub(r"[^\w.-]", "", posixpath.basename(known)) or "train.py"
        notes.lose(known or "the program", f"it is outside of the project; copy it there as {name}")
        return name
    beside = step.program is not None and step.program.known.startswith("./")
    if not step.python and not beside and "/" not in known and not known.endswith((".py", ".sh")):
        notes.lose(known, "it is found by PATH there; a job file names a file of the project")
    else:
        notes.keep(known, "script")
    return posixpath.normpath(known)


def _arguments(job: Job, step: Step, notes: Notes) -> list[str]:
    found = []
    for word in step.arguments:
        text = plain(word.known, word.known, job, notes)
        if text is None:
            notes.lose(word.known, "its value is known there alone; write it out in `args:`")
            text = word.known
        found.append(text)
    return found


def _workdir(job: Job, notes: Notes) -> dict[str, object]:
    moves = [c for c in job.commands if c.program == "cd" and c.shell == "batch" and c.words]
    if not moves:
        return {}
    path = _HERE.sub("", moves[-1].words[0].known).rstrip("/")
    if path in ("", ".", "$PWD", "$SLURM_SUBMIT_DIR", "${SLURM_SUBMIT_DIR}", job.folder):
        return {}
    if path.startswith(("/", "~")) or "$" in path or ".." in path.split("/"):
        notes.lose(f"cd {path}", "a run has a folder of its own; the project is sent there")
        return {}
    notes.keep(f"cd {path}", "workdir")
    return {"workdir": path}


def _container(job: Job, call: ContainerCall | None, site: Site, notes: Notes) -> dict[str, object]:
    own = site.containers.get(site.default_container or "")
    if call is None:
        return _no_container(job, own, notes)
    if not site.containers:
        notes.lose(call.program, f"the profile of {site.name} has no containers")
        return {}
    choice: dict[str, object] = {}
    image = call.image.known if call.image else ""
    home = generation_of(image, site)
    container = home[1] if home else own
    if home and home[0] != site.default_container:
        choice["generation"] = home[0]
    if image and "$" in image:
        notes.lose(image, "the image's path is known there alone; the profile's image is taken")
    elif image and (container is None or image != container.image):
        choice["image"] = image
        notes.keep(image, "container.image")
    elif image:
        notes.derive(image, "it is the profile's image")
    choice |= _binds(call, container, notes)
    if not own and "generation" not in choice and not choice.get("image"):
        choice["generation"] = next(iter(site.containers))
    return {"container": choice} if choice else {}


def _no_container(job: Job, own: Container | None, notes: Notes) -> dict[str, object]:
    if own is None:
        return {}
    lines = " ".join(own.modules)
    if any(name.partition("/")[0] in re.split(r"[\s/]", lines) for name in job.modules):
        notes.derive("the module's own container", "the profile calls it")
        return {}
    return {"container": {"none": True}}


def _binds(call: ContainerCall, container: Container | None, notes: Notes) -> dict[str, object]:
    usual = {*(container.call if container else ())}
    usual_parts = {part for word in usual for part in word.split(",")}
    binds: list[str] = []
    choice: dict[str, object] = {}
    for word in call.binds:
        source, _, rest = word.known.partition(":")
        if word.known in usual_parts:
            notes.derive(f"-B {word.known}", "the profile binds it")
        elif "$" in word.known:
            notes.lose(f"-B {word.known}", "the path is known there alone")
        elif container and source.endswith(".sqsh") and rest.startswith(container.venv_mount):
            choice["venv"] = source
            notes.keep(f"-B {word.known}", "container.venv")
        else:
            binds.append(word.known)
            notes.keep(f"-B {word.known}", "container.binds")
    for option in call.options.all:
        if option.name in ("bind", "volume", "env"):
            continue
        text = f"--{option.name}" + (f"={option.value}" if option.value else "")
        if text in usual or option.raw.strip() in usual:
            notes.derive(f"{call.program} {text}", "the profile's call has it")
        else:
            notes.lose(f"{call.program} {text}", "the profile's call of the container has it not")
    return choice | ({"binds": binds} if binds else {})
