"""The keys of a job file for what a script starts: launcher, program, arguments, container."""

import posixpath
import re
from collections.abc import Sequence

from lumitui.app.knowledge.bash.other_statements import OtherStatement
from lumitui.app.knowledge.script_job import ContainerCall, JobStep, ScriptJob
from lumitui.app.knowledge.site_facts.allocation import generation_of
from lumitui.app.launch.from_script.notes import Notes
from lumitui.app.launch.from_script.plain_values import Values, spreads, within, written_at
from lumitui.remote.site.container import Container
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site

_HERE = re.compile(r"^(?:\$\{?(?:PWD|SLURM_SUBMIT_DIR)\}?(?:/|$)|\./)+")


def main_step(job: ScriptJob) -> JobStep:
    """Return the step that becomes the job.

    Raises:
        InputError: the script starts nothing that looks like a training.
    """
    if not job.training:
        raise InputError(
            "The script starts no program that looks like a training.",
            "Start with `lumitui new`, or write `script:` and `args:` yourself.",
        )
    return job.training[-1]


def program_of(
    job: ScriptJob,
    step: JobStep,
    parts: Sequence[OtherStatement],
    site: Site,
    values: Values,
    notes: Notes,
) -> dict[str, object]:
    """Return launcher, strategy, container, workdir and program."""
    data: dict[str, object] = {"launcher": _launcher(job, step, site, notes)}
    if job.rank.world_size == 1:
        data["strategy"] = "single"
    data |= _container(job, step.container, site, values, notes)
    workdir = _workdir(job, step, parts, values, notes)
    if workdir != ".":
        data["workdir"] = workdir
    return data | {"script": _script(job, step, workdir, values, notes)}


def _launcher(job: ScriptJob, step: JobStep, site: Site, notes: Notes) -> str:
    if step.launcher == "mpirun" and site.mpi is None:
        notes.lose("mpirun", "the profile has no mpirun; srun starts the ranks")
        return "srun"
    if step.launcher != "plain":
        return step.launcher
    if step.srun is not None or (job.rank.world_size or 1) > 1:
        if step.srun is None:
            notes.lose("no srun", "the program started its ranks itself; srun starts one per GPU")
        return "srun"
    gpus = job.resources.gpus_per_node or 1
    if gpus * job.nodes > 1:
        notes.lose("no srun", "one process had all GPUs; srun starts one per GPU")
        return "srun"
    return "plain"


def _script(job: ScriptJob, step: JobStep, workdir: str, values: Values, notes: Notes) -> str:
    """Return the program's path inside the project."""
    program = _HERE.sub("", values.put(step.program.known)) if step.program else ""
    folder = (job.folder or "").rstrip("/")
    inside = bool(folder) and program.startswith(f"{folder}/")
    if inside:
        program = program.removeprefix(f"{folder}/")
    if step.python and _is_module(job, step, program):
        path = posixpath.normpath(posixpath.join(workdir, program.replace(".", "/") + ".py"))
        notes.lose(
            f"-m {program}", f"the job runs the file {path}, so its folder is the import path"
        )
        return path
    path = posixpath.normpath(program if inside else posixpath.join(workdir, program))
    outside = program.startswith(("/", "~")) or "$" in program or ".." in path.split("/")
    if outside or not program:
        name = re.sub(r"[^\w.-]", "", posixpath.basename(program)) or "train.py"
        what = step.program.known if step.program else "the program"
        notes.lose(what, f"it is outside the project; copy it there as {name}")
        return name
    beside = step.program is not None and step.program.known.startswith("./")
    if (
        not step.python
        and not beside
        and "/" not in program
        and not program.endswith((".py", ".sh"))
    ):
        notes.lose(program, "the script finds it in PATH; a job file needs a file of the project")
    elif step.python and not path.endswith(".py"):
        notes.lose(program, "lumitui runs only *.py with Python; rename it")
    else:
        notes.keep(program, "script")
    return path


def _is_module(job: ScriptJob, step: JobStep, program: str) -> bool:
    """Return whether Python gets a module's name (`-m`), not a file's."""
    line = written_at(job.text, step.at)
    flag = re.search(rf"\s(?:-\w*m|--module)\s*['\"]?{re.escape(program)}(?:['\"\s\\]|$)", line)
    module = "/" not in program and not program.endswith(".py") and re.fullmatch(r"[\w.]+", program)
    return bool(flag) or (step.program is not None and bool(module))


def arguments_of(job: ScriptJob, step: JobStep, values: Values, notes: Notes) -> list[str]:
    """Return the program's arguments as plain text."""
    arguments = []
    divides = any(item.name == "IFS" and item.step is None for item in job.variables)
    for word in step.arguments:
        if word.value is None:
            text = values.put(word.known)
            text = f"$HOME{text[1:]}" if _is_home(text) and "HOME" in values.names else text
        else:
            text = values.literal(word.value)
        shown = text if text == word.known else f"{word.known}, now {text},"
        if word.value is None and (values.is_open(text) or re.search(r"[<>]\(", text)):
            notes.lose(shown, "only the site knows its value; write it in `args:`")
        elif word.value is None and text.startswith("~"):
            notes.lose(shown, "`~` is the home on the site; write the path in `args:`")
        elif word.at.line == word.at.end_line and spreads(written_at(job.text, word.at)):
            notes.lose(shown, "bash expands it to several words or file names; `args:` does not")
        elif divides and not word.quotes and "$" in word.text:
            notes.lose(word.text, f"the script's IFS splits it; `args:` has {text} as one word")
        arguments.append(text)
    return arguments


def _is_home(text: str) -> bool:
    return text == "~" or text.startswith("~/")


def _workdir(
    job: ScriptJob, step: JobStep, parts: Sequence[OtherStatement], values: Values, notes: Notes
) -> str:
    """Return the folder of the project in which the program starts, after each `cd` before it."""
    path = "."
    for command in job.commands:
        moves = command.program == "cd" and command.shell == "batch" and command.step is None
        if not moves or command.at.file:
            continue
        apart = [part for part in parts if part.whole and within(command.at, part.at)]
        if any(part.names != ("cd",) for part in apart):
            continue
        written = written_at(job.text, command.at) or "cd"
        to = values.put(command.words[0].known) if command.words else "~"
        folder = _HERE.sub("", to).rstrip("/")
        if command.at > step.at:
            notes.lose(written, "it runs after the program has started")
        elif (to != folder and folder in ("", ".")) or (
            job.folder and to.rstrip("/") == job.folder
        ):
            path = "."
            notes.derive(written, "the program starts in the project")
        elif folder.startswith(("/", "~")) or re.search(r"[$`]|^-$", folder):
            path = "."
            notes.lose(written, "each run has its own folder, with a copy of the project")
        elif ".." in posixpath.normpath(posixpath.join(path, folder)).split("/"):
            notes.lose(written, "each run has its own folder, with a copy of the project")
        else:
            path = posixpath.normpath(posixpath.join(path, folder))
            notes.keep(written, "workdir")
    return path


def _container(
    job: ScriptJob, call: ContainerCall | None, site: Site, values: Values, notes: Notes
) -> dict[str, object]:
    own = site.containers.get(site.default_container or "")
    if call is None:
        return _no_container(job, own, notes)
    if not site.containers:
        image = f" {call.image.known}" if call.image else ""
        words = " ".join(option.raw or f"--{option.name}" for option in call.options.all)
        what = f"{call.program} {call.verb} {words}{image}"
        notes.lose(" ".join(what.split()), f"the profile of {site.name} has no containers")
        return {}
    choice: dict[str, object] = {}
    image = values.put(call.image.known) if call.image else ""
    home = generation_of(image, site)
    container = home[1] if home else own
    if home and home[0] != site.default_container:
        choice["generation"] = home[0]
    if not image and site.containers:
        notes.lose(call.program, "it names no image; the job uses the profile's")
    if image and "$" in image:
        notes.lose(image, "only the site knows the image's path; the job uses the profile's image")
    elif image and (container is None or image != container.image):
        choice["image"] = image
        notes.keep(image, "container.image")
    elif image:
        notes.derive(image, "it is the profile's image")
    choice |= _binds(call, container, values, notes)
    if not own and "generation" not in choice and not choice.get("image"):
        choice["generation"] = next(iter(site.containers))
    return {"container": choice} if choice else {}


def _no_container(job: ScriptJob, own: Container | None, notes: Notes) -> dict[str, object]:
    if own is None:
        return {}
    lines = " ".join(own.modules)
    if any(name.partition("/")[0] in re.split(r"[\s/]", lines) for name in job.modules):
        notes.derive("the module's own container", "the profile starts it")
        return {}
    return {"container": {"none": True}}


def _binds(
    call: ContainerCall, container: Container | None, values: Values, notes: Notes
) -> dict[str, object]:
    usual = {*(container.call if container else ())}
    usual_parts = {part for word in usual for part in word.split(",")}
    binds: list[str] = []
    choice: dict[str, object] = {}
    for word in call.binds:
        bind = values.put(word.known)
        source, _, mount = bind.partition(":")
        if bind in usual_parts:
            notes.derive(f"-B {bind}", "the profile binds it")
        elif "$" in bind or "`" in bind or bind.startswith("~"):
            notes.lose(f"-B {word.known}", "only the site knows the path")
        elif container and source.endswith(".sqsh") and mount.startswith(container.venv_mount):
            choice["venv"] = source
            notes.keep(f"-B {bind}", "container.venv")
        else:
            binds.append(bind)
            notes.keep(f"-B {bind}", "container.binds")
    for option in call.options.all:
        if option.name in ("bind", "volume", "container-mounts") or (
            option.name == "env" and "=" in (option.value or "")
        ):
            continue
        text = f"--{option.name}" + (f"={option.value}" if option.value else "")
        if text in usual or option.raw.strip() in usual:
            notes.derive(f"{call.program} {text}", "the profile's command has it")
        else:
            notes.lose(f"{call.program} {text}", "the profile's container command lacks it")
    return choice | ({"binds": binds} if binds else {})
