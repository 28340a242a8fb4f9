"""A script's request to Slurm as keys of a job file."""

import re

from lumitui.app.adopt.notes import Notes
from lumitui.app.lint.model.job import Job
from lumitui.app.lint.model.words import Option
from lumitui.app.lint.semantics.allocation import is_exclusive, queue_of
from lumitui.remote.notation import walltime
from lumitui.remote.site.partition import Partition
from lumitui.remote.site.profile import Site

_READ = {
    "account", "partition", "qos", "nodes", "ntasks", "ntasks-per-node", "tasks-per-node", "gpus",
    "gpus-per-node", "gres", "cpus-per-task", "mem", "mem-per-cpu", "mem-per-gpu", "time",
    "exclusive", "signal", "job-name",
}  # fmt: skip
_TASKS = {"ntasks", "ntasks-per-node", "tasks-per-node"}
"""Those that say how many GPUs there are only where no other option does."""
_LATER = {"gres", "cpus-per-task", "mem", "mem-per-cpu", "mem-per-gpu"}
"""Those that may be what lumitui would ask for anyway: that is known once the rest is."""
_OURS = {
    "output": "the log is in the run's folder", "error": "the log is in the run's folder",
    "open-mode": "lumitui writes it", "chdir": "a run has a folder of its own",
    "comment": "lumitui writes it", "parsable": "lumitui writes it",
    "export": "the job gets what the job file names",
    "gpu-bind": "it hides GPUs from the ranks, which choose by LOCAL_RANK",
    "gpus-per-task": "it hides GPUs from the ranks, which choose by LOCAL_RANK",
    "ntasks-per-gpu": "there is one rank for each GPU",
    "cpus-per-gpu": "the profile knows the cores of a GPU",
}  # fmt: skip
"""Options that lumitui answers for by itself."""
_LOST = {
    "array": "make a run of each value with `grid:`",
    "wrap": "name the program as `script:`",
    "requeue": "this job file has it not; `chain:` writes it where a job continues",
}
_SIGNAL = re.compile(r"(?:(?P<to>[BR]+):)?(?:SIG)?(?P<name>[A-Z0-9]{1,12})(?:@(?P<lead>\d{1,5}))?$")
_GUESSED_TIME = "01:00:00"


def request_of(job: Job, site: Site, notes: Notes) -> dict[str, object]:
    """Return the keys that say where a job runs, how long, and on how much."""
    queue = queue_of(job, site)
    name = queue.name if queue else job.resources.partition or next(iter(site.partitions))
    data: dict[str, object] = {"site": site.name}
    if job.resources.account:
        data["account"] = job.resources.account
    data["partition"] = name
    if job.resources.partition is None:
        notes.lose("--partition", f"the script names none; {name} stands in the job file")
    data |= _size(job, site, notes) | _time(job, notes) | _signal(job, notes)
    if is_exclusive(job):
        data |= _exclusive(job, queue.partition if queue else None, notes)
    for option in job.options.all:
        said = option.raw.strip() or f"--{option.name}"
        if option.name in _TASKS and job.resources.gpus_per_node:
            notes.derive(said, _OURS["ntasks-per-gpu"])
        elif option.name in _READ - _LATER:
            notes.keep(said, _key(option.name))
    partition = queue.partition if queue else None
    return data | _disk(job, site, notes) | _others(job, site, partition, notes)


def _key(option: str) -> str:
    return {
        "ntasks": "gpus_per_node", "ntasks-per-node": "gpus_per_node", "gpus": "gpus_per_node",
        "tasks-per-node": "gpus_per_node", "gpus-per-node": "gpus_per_node", "qos": "partition",
        "cpus-per-task": "cpus_per_task", "mem": "memory", "mem-per-cpu": "memory",
        "mem-per-gpu": "memory", "job-name": "name",
    }.get(option, option)  # fmt: skip


def _size(job: Job, site: Site, notes: Notes) -> dict[str, object]:
    asked, most = job.resources, site.node.gpus
    gpus = asked.gpus_per_node or (job.rank.per_node if site.node.on_cpu else None)
    nodes = asked.nodes
    if nodes is None and asked.tasks and gpus and asked.tasks > gpus:
        nodes = -(-asked.tasks // gpus)
    if gpus is None:
        gpus = min(job.rank.per_node or 1, most)
        if not site.node.on_cpu:
            notes.lose("GPUs", f"the script asks for none; the job file asks for {gpus} a node")
    data: dict[str, object] = {"nodes": nodes or 1}
    if gpus != most:
        data["gpus_per_node"] = gpus
    return data


def _time(job: Job, notes: Notes) -> dict[str, object]:
    option, seconds = job.options.get("time"), job.resources.seconds
    if option is None or not seconds:
        notes.lose("--time", f"the script gives no limit; {_GUESSED_TIME} is a guess")
        return {"time": _GUESSED_TIME}
    written = option.value or ""
    return {"time": written if ":" in written else walltime.text_of(seconds)}


def _signal(job: Job, notes: Notes) -> dict[str, object]:
    option = job.options.get("signal")
    if option is None:
        return {}
    match = _SIGNAL.match(option.value or "")
    if match is None or "R" in (match["to"] or ""):
        notes.lose(
            f"--signal={option.value}", "a job file's `signal:` is like USR1@120 or B:USR1@120"
        )
        return {}
    to = "B:" if match["to"] else ""
    return {"signal": f"{to}{match['name']}@{match['lead'] or 60}"}


def _exclusive(job: Job, partition: Partition | None, notes: Notes) -> dict[str, object]:
    if partition is not None and partition.allocation == "node":
        notes.derive("--exclusive", "the partition has whole nodes")
        return {}
    return {"exclusive": True}


def _disk(job: Job, site: Site, notes: Notes) -> dict[str, object]:
    """Return the part of a node's disk that `--gres` asks for beside the GPUs."""
    option = job.options.get("gres")
    if option is None:
        return {}
    data: dict[str, object] = {}
    for part in (option.value or "").split(","):
        if part.startswith("gpu"):
            notes.keep(f"--gres={part}", "gpus_per_node")
            continue
        form = site.local_disk.request if site.local_disk else ""
        pattern = re.escape(form).replace(r"\{gib\}", r"(\d+)[gG]?")
        if form and (match := re.fullmatch(pattern, part)):
            data["local_disk"] = int(match[1])
            notes.keep(f"--gres={part}", "local_disk")
        else:
            notes.lose(f"--gres={part}", "the profile knows no such resource")
    return data


def _others(job: Job, site: Site, partition: Partition | None, notes: Notes) -> dict[str, object]:
    """Return the options that a job file has no key for, as `sbatch:`."""
    profiles = {*site.sbatch_arguments, *(partition.arguments if partition else ())}
    found: list[str] = []
    for option in job.options.all:
        text = _text(option)
        if option.name in _READ:
            continue
        if text in profiles:
            notes.derive(text, "the profile has it")
        elif option.name in _OURS:
            notes.derive(text, _OURS[option.name])
        elif option.name in _LOST:
            notes.lose(text, _LOST[option.name])
        elif "$" in text or "\n" in text:
            notes.lose(text, "sbatch expands no variables in it")
        else:
            notes.keep(text, "sbatch")
            found.append(text)
    return {"sbatch": found} if found else {}


def _text(option: Option) -> str:
    return f"--{option.name}" + ("" if option.value is None else f"={option.value}")
