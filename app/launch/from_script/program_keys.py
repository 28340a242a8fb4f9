"""The job file's keys from a script's launch: launcher, program, arguments, container.

Launcher options and command-line words that no key keeps become notes.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lumitui.app.knowledge.bash.command_line import PYTHON
from lumitui.app.knowledge.bash.other_statements import OtherStatement
from lumitui.app.knowledge.program.step_program import one_gpu_of
from lumitui.app.knowledge.script_job import (
    NO_OPTIONS,
    Command,
    CommandOptions,
    CommandWord,
    ContainerCall,
    JobStep,
    Option,
    ScriptJob,
)
from lumitui.app.knowledge.site_facts.allocation import generation_of
from lumitui.app.launch.deepspeed_batch import argument_words, read_config
from lumitui.app.launch.from_script.notes import ImportNote, Notes
from lumitui.app.launch.from_script.own_environment import activated
from lumitui.app.launch.from_script.plain_values import (
    Values,
    spreads,
    with_numbers,
    within,
    written_at,
)
from lumitui.app.launch.from_script.wrapper_script import file_of, wrappers
from lumitui.app.launch.rules.mistakes import is_relative, is_relative_image
from lumitui.remote.site.container import Container
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import Position

_RELATIVE = "a relative path, and the job starts elsewhere; write its path on the site"
_HERE = re.compile(r"^(?:\$\{?(?:PWD|SLURM_SUBMIT_DIR)\}?(?:/|$)|\./)+")


def main_step(job: ScriptJob) -> JobStep:
    """Return the step that becomes the job; InputError if nothing looks like a training run."""
    if not job.training:
        raise InputError(
            "The script starts no program that looks like training.",
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
    home: str,
) -> dict[str, object]:
    """Return launcher, strategy, container, project, workdir and program; see `adopt`."""
    data: dict[str, object] = {"launcher": _launcher(job, step, site, notes)}
    if job.rank.world_size == 1:
        data["strategy"] = "single"
    data |= _container(job, step.container, site, values, notes)
    workdir = _workdir(job, step, parts, values, notes, above=bool(home))
    script = _script(job, step, workdir, values, notes, above=bool(home))
    paths = [
        posixpath.normpath(posixpath.join(job.folder or "", each)) for each in (workdir, script)
    ]
    root = posixpath.commonpath([home, paths[0], posixpath.dirname(paths[1])]) if home else ""
    if home:
        workdir, script = (posixpath.relpath(each, root) for each in paths)
    project = posixpath.relpath(root, home) if home else "."
    data |= {key: each for key, each in (("project", project), ("workdir", workdir)) if each != "."}
    return data | {"script": script}


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
    if gpus * job.nodes > 1 and one_gpu_of(job, step) == "no":
        notes.lose("no srun", "one process had all GPUs; srun starts one per GPU")
        return "srun"
    return "plain"


def _script(
    job: ScriptJob, step: JobStep, workdir: str, values: Values, notes: Notes, *, above: bool
) -> str:
    """Return the program's path from the submit folder; `above` allows one that leads out of it."""
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
    outside = program.startswith(("/", "~")) or "$" in program
    outside = outside or (".." in path.split("/") and not above)
    if outside or not program:
        name = re.sub(r"[^\w.-]", "", posixpath.basename(program)) or "train.py"
        what = step.program.known if step.program else "the program"
        notes.lose(what, f"it is outside the project; copy it there as {name}")
        return name
    beside = step.program is not None and step.program.known.startswith("./")
    if not (step.python or beside or "/" in program or program.endswith((".py", ".sh"))):
        notes.lose(program, "the script finds it in PATH; a job file needs a file in the project")
    elif step.python and not path.endswith(".py"):
        notes.lose(program, "lumitui runs only *.py with Python; rename it")
    else:
        notes.keep(program, "script")
    return path


def _is_module(job: ScriptJob, step: JobStep, program: str) -> bool:
    """Return whether Python gets a module's name (`-m`) instead of a file's."""
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
            text = re.sub(r"^~(?=/|$)", "$HOME", text) if "HOME" in values.names else text
        else:
            text = values.literal(word.value)
        shown = text if text == word.known else f"{word.known}, now {text},"
        if word.value is None and "SLURM_ARRAY_TASK_ID" in word.known:
            notes.lose(
                shown, "it differs for each task of the array; list its values under `grid:`"
            )
        elif word.value is None and (values.is_open(text) or re.search(r"[<>]\(", text)):
            notes.lose(shown, "only the site knows its value; write it in `args:`")
        elif word.value is None and text.startswith("~"):
            notes.lose(shown, "`~` is your home on the site; write the path in `args:`")
        elif word.at.line == word.at.end_line and spreads(written_at(job.text, word.at)):
            notes.lose(shown, "bash expands it to several words or file names; `args:` does not")
        elif divides and not word.quotes and "$" in word.text:
            notes.lose(word.text, f"the script's IFS splits it; `args:` has {text} as one word")
        arguments.append(text)
    return arguments


def deepspeed_of(
    job: ScriptJob, arguments: list[str], workdir: str, notes: Notes
) -> dict[str, object]:
    """Return `deepspeed:` and its `strategy:`, and take their words out of `arguments`.

    lumitui adds these words itself, with a copy of the configuration for the job's ranks.
    """
    name, places = argument_words(arguments)
    path = posixpath.normpath(posixpath.join(workdir, name))
    if not name or path.startswith(("/", "~", "..")) or "$" in path:
        return {}
    written = " ".join(arguments[places.start : places.stop])
    del arguments[places.start : places.stop]
    notes.keep(written, "deepspeed.config")
    data: dict[str, object] = {"deepspeed": {"config": path}}
    try:
        zero = read_config(job.files.get(path, "{}"), path).get("zero_optimization")
    except InputError:
        return data  # the preview shows the error
    stage = zero.get("stage") if isinstance(zero, dict) else None
    offloads = isinstance(zero, dict) and {"offload_optimizer", "offload_param"} & zero.keys()
    if stage in (1, 2, 3) and not offloads:
        notes.keep(f"ZeRO's stage in {path}", "strategy")
        return {"strategy": f"zero{stage}"} | data
    return data


def _workdir(
    job: ScriptJob,
    step: JobStep,
    parts: Sequence[OtherStatement],
    values: Values,
    notes: Notes,
    *,
    above: bool,
) -> str:
    """Return the folder in which the program starts, after each `cd` before it; see `_script`."""
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
        elif not above and ".." in posixpath.normpath(posixpath.join(path, folder)).split("/"):
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
    elif is_relative_image(image) or image.startswith("~"):
        notes.lose(image, f"{_RELATIVE} into `container.image:`; until then it uses the profile's")
    elif image:  # even the profile's: its default may change, and the script names this one
        choice["image"] = image
        notes.keep(image, "container.image")
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
        elif is_relative(source):
            key = "venv" if source.endswith(".sqsh") else "binds"
            notes.lose(f"-B {word.known}", f"{_RELATIVE} into `container.{key}:`")
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


_LAYOUT = {
    "nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "gpus", "gpus-per-node", "gres",
    "mem", "mem-per-cpu", "mem-per-gpu", "hint", "threads-per-core",
}  # fmt: skip
"""Options that follow from the ranks' layout; the report compares the totals instead."""
_PLAIN = {
    "kill-on-bad-exit", "label", "unbuffered", "exclusive", "overlap", "jobid", "wait", "verbose",
    "quiet", "job-name",
}  # fmt: skip
"""Options of srun that do not affect the ranks."""
_REQUEST = {"account", "partition", "time"}
_MEANT = {
    "rdzv-id", "rdzv-backend", "rdzv-endpoint", "rdzv-conf", "node-rank", "machine-rank",
    "master-addr", "master-port", "main-process-ip", "main-process-port", "hostfile", "num-nodes",
    "nnodes", "num-machines", "standalone", "same-network", "multi-gpu", "no-local-rank", "host",
    "machinefile", "launcher", "no-ssh", "force-multi", "no-ssh-check", "use-env",
}  # fmt: skip
"""Options of a launcher by which its processes find each other."""
_COUNTS = {"nproc-per-node", "num-gpus", "num-processes", "np", "npernode", "ppn", "n"}
"""Options with the number of ranks; the report compares the totals instead."""
_NODES = {"nnodes": 1, "num-nodes": 1, "num-machines": 1}


def launcher_options(before: ScriptJob, after: ScriptJob, binding: str, notes: Notes) -> None:
    """Note the fate of options of srun and launcher; `binding` is the new script's of torchrun."""
    _srun(before, after, notes)
    step = before.training[-1] if before.training else None
    theirs = after.training[-1].launcher_options if after.training else NO_OPTIONS
    for option in step.launcher_options.all if step else ():
        what = f"{step.launcher if step else ''} {option.raw.strip() or '--' + option.name}"
        ours = theirs.get(option.name)
        nodes = _value(option, before).rpartition(":")[2] if option.name in _NODES else ""
        if nodes.isdecimal() and int(nodes) == after.nodes:
            notes.derive(what, "the launch uses the job's number of nodes")
        elif option.name in _COUNTS and before.rank.world_size == after.rank.world_size:
            notes.derive(what, "the launch uses the job's number of ranks")
        elif option.name in _MEANT - set(_NODES):
            notes.derive(what, "the launch sets how its processes find each other")
        elif ours is None:
            words = "the new launch does not have it; set it in the program or its files"
            if step and step.launcher == "torchrun":
                words = "a job file cannot set torchrun's options; the profile sets what it needs"
            if option.name == "numa-binding" and binding == "none":
                words = "this site's profile does not bind torchrun's ranks; `launcher: srun` does"
            notes.lose(what, words)
        elif _value(option, before) == _value(ours, after):
            notes.derive(what, "the new launch sets the same")
        else:
            new = with_numbers(ours.value or "", after)
            notes.change(what, option.value or "set", new or "set")


def _srun(before: ScriptJob, after: ScriptJob, notes: Notes) -> None:
    step = before.training[-1] if before.training else None
    ours = after.training[-1].srun if after.training else None
    for option in step.srun.all if step and step.srun else ():
        what = f"srun {option.raw.strip() or '--' + option.name}"
        same = (ours or NO_OPTIONS).get(option.name)
        if option.name in _LAYOUT:
            notes.derive(what, "it follows from the layout of the ranks")
        elif option.name == "kill-on-bad-exit" and same and (option.value or "1") != same.value:
            notes.change(what, option.value or "1", same.value or "1")
        elif option.name in _PLAIN:
            notes.derive(what, "the launch sets its own value")
        elif option.name in ("output", "error"):
            notes.derive(what, "the log is in the run's folder")
        elif option.name == "export":
            if (option.value or "").partition(",")[0] == "ALL":
                notes.derive(what, "the program gets the job script's variables")
        elif option.name in _REQUEST and option.value == before.options.value(option.name):
            notes.derive(what, "the job requests the same")
        elif option.name in ("gpus-per-task", "gpu-bind"):
            notes.lose(
                what, "each rank sees all GPUs of its node, and uses the one numbered LOCAL_RANK"
            )
        elif same is not None and _masks(same.value) == _masks(option.value):
            notes.derive(what, "the new launch sets the same")
        elif option.name == "cpu-bind":
            cores = "the profile's cores for each GPU" if same else "the launch binds no rank"
            notes.change(what, option.value or "set", cores)
        else:
            notes.lose(what, "a job file cannot set options of srun")


def _masks(value: str | None) -> tuple[str, ...]:
    """Return a binding in canonical form: masks as numbers."""
    loud = r"^(?:v|verbose|q|quiet),|,(?:v|verbose|q|quiet)$"
    text = re.sub(loud, "", (value or "").lower()).replace(":", "=", 1)
    kind, _, masks = text.partition("=")
    try:
        numbers = tuple(f"{int(mask, 16):x}" for mask in masks.split(","))
    except ValueError:
        return (text,)
    return (kind, *numbers)


def _value(option: Option, job: ScriptJob) -> str:
    """Return the value, with the job's numbers instead of Slurm's variables."""
    return with_numbers((option.value or "").replace('"', ""), job)


def directives(
    before: CommandOptions, after: CommandOptions, names: set[str]
) -> Iterator[ImportNote]:
    """Yield a note for each of these options of sbatch whose value changed."""
    for name in sorted(names):
        old, new = before.get(name), after.get(name)
        if old is not None and (new is None or _plain(old) != _plain(new)):
            yield ImportNote(
                f"--{name}", f"{old.value or 'set'} → {new.value if new else 'not set'}"
            )


def _plain(option: Option) -> str:
    """Return a value in canonical form: `SIGUSR1@300` is `USR1@300`."""
    return (option.value or "").upper().replace("SIG", "")


_NOTHING = {
    "srun", "torchrun", "deepspeed", "accelerate", "launch", "mpirun", "mpiexec", "python",
    "python3", "exec", "--", "env", "-m", "torch.distributed.run", "torch.distributed.launch",
    "accelerate.commands.launch", "deepspeed.launcher.runner", "command", "nohup",
}  # fmt: skip
"""Words that only start the program."""
_SHELL = re.compile(
    r"^(?:(?:/usr)?/bin/)?(?:ba|da)?sh$|^-[elx]*c$|^-[el]+$|^--login$|^/usr/bin/env$"
)
_QUIET = {"export", "exec", "set", "wait", ":", "true", "exit", "echo", "printf", "unset"}


def line_of(
    job: ScriptJob, step: JobStep, activate: str, notes: Notes, *, replaced: bool = False
) -> None:
    """Note the words of the program's command line that the job file lacks.

    `activate` is the command that the profile runs in its containers before the program, unless the
    user's own environment has `replaced` it.
    """
    index, around = job.steps.index(step), wrappers(job, step)
    explained = [item.at for item in job.variables if item.step == index]
    explained += _explained(step)
    outer = [item for item in job.commands if item.at == step.at][:1]
    inner = [item for item in job.commands if item.step == index and item.at != step.at]
    texts = [word.at for word in step.shells]
    for word in {word.text: word for command in inner for word in command.words}:
        if PYTHON.match(word) and not word.startswith("python"):
            notes.change("interpreter", word, "python")
    outer = _wrapped(outer, around, notes)
    passed_on = _passed_on(inner, step) if around else []
    again = {command.at for command in passed_on}
    inner = [item for item in inner if item in passed_on or item.at not in again]
    for command in (*outer, *inner):
        starts = command in outer or command in passed_on
        if starts or (step.program and within(step.program.at, command.at)):
            whole = command in outer or any(word.at in texts for word in command.words)
            places = explained + texts if whole else explained
            for words in _left(job, command, places, shells=bool(step.shells)):
                if words == "-u":
                    notes.derive("python -u", "the launch sets PYTHONUNBUFFERED")
                else:
                    notes.lose(words, "the new launch does not have it")
        elif activate and _text(job, command) == activate:
            words = "`activate:` replaces it" if replaced else "the launch also runs it"
            notes.derive(activate, words)
        elif command.program in ("cd", "pushd"):
            notes.lose(_text(job, command), "the program starts in `workdir:`")
        elif command.program not in _QUIET and not activated(command):
            notes.lose(_text(job, command), "the job runs only the program")
        elif command.program in ("echo", "printf"):
            notes.lose(_text(job, command), "it only prints")


def _wrapped(outer: Sequence[Command], around: Mapping[str, str], notes: Notes) -> list[Command]:
    """Return the commands up to their wrapper, which has its own commands."""
    cut = []
    for command in outer:
        names = [file_of(word.known) in around for word in command.words]
        end = names.index(True) if True in names else len(names)
        for word in command.words[end : end + 1]:
            notes.derive(word.text, "each of its lines is listed separately")
        cut.append(replace(command, words=command.words[:end]))
    return cut


def _passed_on(inner: Sequence[Command], step: JobStep) -> list[Command]:
    """Return the commands with which wrappers start their arguments."""
    places = {word.at for word in (*step.shells, *([step.program] if step.program else []))}
    return [command for command in inner if places & {word.at for word in command.words}]


def _text(job: ScriptJob, command: Command) -> str:
    words = " ".join(word.text for word in command.words)
    return written_at(job.text, command.at) or f"{command.program} {words}".strip()


def _explained(step: JobStep) -> list[Position]:
    options = [*(step.srun.all if step.srun else ()), *step.launcher_options.all]
    words = [*step.arguments]
    places = []
    if step.program is not None:
        words.append(step.program)
    if step.container is not None:
        options += step.container.options.all
        words += [step.container.image] if step.container.image else []
        places.append(step.container.at)
    return [*places, *(option.at for option in options), *(word.at for word in words)]


def _left(
    job: ScriptJob, command: Command, explained: Sequence[Position], *, shells: bool
) -> Iterator[str]:
    """Yield the unexplained words of a command, with consecutive words joined."""
    first = CommandWord(_program(job, command), command.at)
    words: list[str] = []
    for word in (first, *command.words):
        place = command.at if word is first else word.at
        plain = word.text in _NOTHING or bool(PYTHON.match(word.text))
        plain = plain or (word is first and bool(re.search("singularity|apptainer", word.text)))
        plain = plain or (shells and bool(_SHELL.match(word.text)))
        plain = plain or (word.text in ("exec", "run", "shell") and bool(explained))
        if plain or (word is not first and any(within(place, each) for each in explained)):
            if words:
                yield " ".join(words)
            words = []
        else:
            words.append(word.text)
    if words:
        yield " ".join(words)


def _program(job: ScriptJob, command: Command) -> str:
    """Return a command's program as written, with its folder."""
    written = written_at(job.text, command.at)
    for word in re.findall(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+", written):
        if word.strip("\"'").rstrip("/").rsplit("/", 1)[-1] == command.program:
            return str(word.strip("\"'"))
    return command.program
