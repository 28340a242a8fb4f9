"""Turns a script into a job file, and notes kept, derived, changed and lost parts."""

import math
import posixpath
import re

from lumitui.app.job.spec import JobSpec
from lumitui.app.knowledge.bash.other_statements import other_statements
from lumitui.app.knowledge.program.step_program import one_gpu_of
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.launch.from_script.notes import Notes
from lumitui.app.launch.from_script.own_environment import own_environments
from lumitui.app.launch.from_script.plain_values import Values, numbers_of
from lumitui.app.launch.from_script.program_keys import (
    arguments_of,
    deepspeed_of,
    line_of,
    main_step,
    program_of,
)
from lumitui.app.launch.from_script.request_keys import request_of
from lumitui.app.launch.from_script.script_environment import environment_of, known_of, settings_of
from lumitui.app.launch.from_script.shell_losses import modules_of, shell_of
from lumitui.app.launch.job_price import memory_gib
from lumitui.app.launch.layout import layout_of
from lumitui.app.launch.placement import Placement, placement_of
from lumitui.app.launch.program_call import container_environment
from lumitui.app.launch.site_names import names_in, templates_of
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.validation import validate
from lumitui.remote.site.reading.yaml_document import Document


def adopt(
    job: ScriptJob, site: Site, name: str, notes: Notes, requirements: str = "", home: str = ""
) -> dict[str, object]:
    """Return the keys of a script's job file, in their order in the file.

    `name` is the job's name if the script sets none. `notes` collects the fate of each part.
    `requirements` is the project's file with packages, if it has one. `home` is the job file's
    folder; "": the submit folder, and nothing above it belongs to the project.

    Raises:
        InputError: the script starts no training, or its request is not valid in a job file.
    """
    step = main_step(job)
    parts = tuple(other_statements(job.text, step.at))
    settings = settings_of(job, step, parts)
    variables, all_names = known_of(settings), tuple(templates_of(site))
    names = tuple(name for name in all_names if name not in settings)
    data: dict[str, object] = {"name": _name(job, name, notes)}
    data |= request_of(job, site, notes)
    data |= program_of(job, step, parts, site, Values(variables, {}), notes, home)
    if requirements and home:
        root = posixpath.join(home, str(data.get("project", ".")))
        requirements = posixpath.relpath(posixpath.join(home, requirements), root)
    data = _fitting(job, data, notes, site)
    data |= _share(job, placement_of(spec_of(data), site), notes)
    place = placement_of(spec_of(data), site)
    numbers = numbers_of(layout_of(place), place.spec.account)
    values = Values(variables, numbers, names, all_names)
    arguments = arguments_of(job, step, values, notes)
    data |= deepspeed_of(job, arguments, spec_of(data).workdir, notes)
    if arguments:
        data["args"] = arguments
        lost = {one.what for one in notes.lost}
        if text := " ".join(word for word in arguments if word not in lost):
            notes.keep(text, "args")
    profile = container_environment(place)
    environment = environment_of(settings, values, profile, notes)
    data |= _exported(job, environment, notes)
    data |= own_environments(job, place, values, requirements, notes)
    _named(data, names, site, notes)
    base = place.container.activate if place.container else ""
    line_of(job, step, base, notes, replaced="activate" in data)
    if modules := modules_of(job, place, notes):
        data["modules"] = modules
    shell_of(job, step, parts, profile.keys() - spec_of(data).env.keys(), notes)
    return data


def _name(job: ScriptJob, name: str, notes: Notes) -> str:
    valid = (re.sub(r"[^\w.@+-]+", "-", job.name or name).strip("-") or "job")[:100]
    if job.name == valid:
        notes.keep(f"--job-name={job.name}", "name")
    elif job.name:
        notes.change("--job-name", job.name, valid)
    return valid


def _named(data: dict[str, object], names: tuple[str, ...], site: Site, notes: Notes) -> None:
    spec = spec_of(data)
    texts = (*spec.args, *spec.env.values(), *spec.activate)
    used = {name for text in texts for name in names_in(text, names)}
    account = site.account.in_path(spec.account)
    for name in (name for name in names if name in used):
        path = templates_of(site)[name].format(account=account, user="USER", home="HOME")
        if name in ("USER", "HOME"):
            notes.derive(f"${name}", "lumitui inserts the site's value")
        else:
            notes.change(f"${name}", "its value in your login shell at the site", path)


def _exported(job: ScriptJob, data: dict[str, object], notes: Notes) -> dict[str, object]:
    """Return `env:` and `secrets:` with the variables that `--export=ALL,A=1` sets."""
    step = main_step(job)
    environment = dict(data.get("env") or {})  # type: ignore[call-overload]
    for options in (job.options, *([step.srun] if step.srun else [])):
        option = options.get("export")
        for part in (option.value or "").split(",") if option else ():
            name, equals, value = part.partition("=")
            if equals:
                _set(name, value, environment, notes)
            elif name not in ("ALL", "NIL", "NONE", ""):
                notes.lose(f"--export={part}", "the job gets only the job file's variables")
            elif name in ("NIL", "NONE"):
                notes.lose(f"--export={part}", "the program gets the job script's variables")
    return data | ({"env": environment} if environment else {})


def _set(name: str, value: str, environment: dict[str, str], notes: Notes) -> None:
    text = f"--export={name}={value}"
    try:
        JobSpec.model_validate({"name": "x", "site": "x", "partition": "x", "time": "1:00:00",
                                "script": "x", "env": {name: value}})  # fmt: skip
    except ValueError:
        notes.lose(text.partition("=")[0] + f"={name}", "invalid in `env:`; try `secrets:`")
        return
    if "$" in value:
        notes.lose(text, "only the site knows its value")
        return
    environment[name] = value
    notes.keep(text, f"env.{name}")


def spec_of(data: dict[str, object]) -> JobSpec:
    """Return the validated job for the keys of a script's job file."""
    return validate(Document("", "the script's job file"), JobSpec, data)


def _fitting(
    job: ScriptJob, data: dict[str, object], notes: Notes, site: Site
) -> dict[str, object]:
    """Return the keys, with a launcher and a strategy that fit the number of GPUs."""
    gpus = data.get("gpus_per_node", site.node.gpus)
    one = data["nodes"] == 1 and gpus == 1
    if not one and data.get("strategy") == "single" and one_gpu_of(job, main_step(job)) != "no":
        data |= {"nodes": 1, "gpus_per_node": 1}
        words = "the script starts one process, so the job has one GPU; for one rank per GPU, set "
        words += f"`gpus_per_node: {gpus}`, `launcher: srun` and `strategy: ddp`"
        notes.lose("the other GPUs", words)
        return data
    if data["launcher"] == "plain" and not one:
        data["launcher"] = "srun"
    if data.get("strategy") == "single" and not one:
        data.pop("strategy")
        notes.lose("one rank", "the job has several GPUs, and each gets a rank")
    return data


def _share(job: ScriptJob, place: Placement, notes: Notes) -> dict[str, object]:
    """Return cores and memory if the script's request differs from lumitui's."""
    layout, request, site = layout_of(place), job.resources, place.site
    data: dict[str, object] = {}
    tasks = request.tasks_per_node or layout.tasks_per_node
    if request.cpus_per_task and job.options.has("cpus-per-task"):
        cores = request.cpus_per_task * tasks // layout.tasks_per_node
        what = f"--cpus-per-task={request.cpus_per_task}"
        ours = f"the profile's {layout.cpus_per_task} per task"
        if cores == layout.cpus_per_task:
            same = request.cpus_per_task == cores
            notes.derive(what, ours if same else f"the same total: {ours}")
        elif site.cores_fixed or not cores:
            notes.lose(what, f"the job gets {ours}")
        else:
            data["cpus_per_task"] = cores
            notes.keep(what, "cpus_per_task")
    options = (job.options.get(name) for name in ("mem", "mem-per-gpu", "mem-per-cpu"))
    option = next((each for each in options if each), None)
    memory = request.memory_gib
    if option is None:
        return data
    what = f"--{option.name}={option.value}"
    for other in job.options.all:
        if other.name in ("mem", "mem-per-cpu", "mem-per-gpu") and other is not option:
            notes.lose(f"--{other.name}={other.value}", f"{what} overrides it")
    if memory is None:
        notes.lose(what, "lumitui cannot parse its size; the job requests the profile's memory")
    elif not site.memory_option:
        notes.derive(what, "at this site, memory comes with the cores")
    elif math.isclose(memory, memory_gib(place, layout), rel_tol=1e-3):
        notes.derive(what, f"the profile's {memory:g} GiB per node")
    else:
        whole = memory == int(memory)
        data["memory"] = f"{memory:.0f}G" if whole else f"{math.ceil(memory * 1024)}M"
        notes.keep(what, "memory")
    return data
