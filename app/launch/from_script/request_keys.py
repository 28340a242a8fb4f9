"""The keys of a job file for a script's request to Slurm."""

import re

from lumitui.app.knowledge.script_job import Option, ScriptJob
from lumitui.app.knowledge.site_facts.allocation import is_exclusive, queue_of
from lumitui.app.launch.from_script.notes import Notes
from lumitui.app.launch.from_script.plain_values import written_at
from lumitui.app.launch.option_keys import KEY_OF_OPTION
from lumitui.remote.site import walltime
from lumitui.remote.site.partition import Partition
from lumitui.remote.site.profile import Site

_READ = {
    "account", "partition", "qos", "nodes", "ntasks", "ntasks-per-node", "tasks-per-node", "gpus",
    "gpus-per-node", "gres", "cpus-per-task", "mem", "mem-per-cpu", "mem-per-gpu", "time",
    "exclusive", "signal", "job-name",
}  # fmt: skip
_TASKS = {"ntasks", "ntasks-per-node", "tasks-per-node"}
"""Options that set the number of GPUs only if no other option does."""
_ELSEWHERE = {"qos", "signal", "exclusive", "job-name", "partition"}
"""Options whose own functions write their notes."""
_LATER = {"gres", "cpus-per-task", "mem", "mem-per-cpu", "mem-per-gpu"}
"""Options that may equal lumitui's own request, which needs the other keys first."""
_OURS = {
    "output": "the log is in the run's folder", "error": "the log is in the run's folder",
    "open-mode": "lumitui writes it", "parsable": "lumitui writes it",
    "wait": "`lumitui submit --wait` waits",
    "ntasks-per-gpu": "the job has one rank per GPU",
}  # fmt: skip
"""Options that lumitui sets itself."""
_LOST = {
    "array": "list the values under `grid:` to start a run for each",
    "wrap": "set the program with `script:`",
    "requeue": "lumitui writes it only for `chain:`",
    "comment": "lumitui writes its own",
    "chdir": "each run has its own folder, with a copy of the project",
    "cpus-per-gpu": "the job gets the profile's cores per GPU; `cpus_per_task:` sets others",
    "gpu-bind": "each rank sees all GPUs of its node, and uses the one numbered LOCAL_RANK",
    "gpus-per-task": "each rank sees all GPUs of its node, and uses the one numbered LOCAL_RANK",
}
_SIGNAL = re.compile(r"(?:(?P<to>[BR]+):)?(?:SIG)?(?P<name>[A-Z0-9]{1,12})(?:@(?P<lead>\d{1,5}))?$")
_GUESSED_TIME = "01:00:00"


def request_of(job: ScriptJob, site: Site, notes: Notes) -> dict[str, object]:
    """Return the keys for a job's site, queue, time limit and resources."""
    queue = queue_of(job, site)
    partition = queue.partition if queue else None
    requested = job.resources.partition
    name = queue.name if queue else requested or next(iter(site.partitions))
    data: dict[str, object] = {"site": site.name}
    if job.resources.account:
        data["account"] = job.resources.account
    data["partition"] = name
    if requested is None:
        notes.lose("--partition", f"the script names none; the job file has {name}")
    elif requested == name or (partition and (partition.slurm_partition or name) == requested):
        notes.keep(f"--partition={requested}", "partition")
    else:
        notes.change("--partition", requested, name)
    data |= _size(job, site, notes) | _time(job, notes) | _signal(job, notes)
    if is_exclusive(job):
        data |= _exclusive(partition, notes)
    for option in job.options.all:
        text = option.raw.strip() or f"--{option.name}"
        if option is not job.options.get(option.name):
            notes.derive(text, "a later option overrides it")
        elif option.name in _TASKS and job.resources.gpus_per_node:
            notes.derive(text, _OURS["ntasks-per-gpu"])
        elif _misread(option, job):
            notes.lose(text, "lumitui cannot parse its value, and uses its own")
        elif option.name in _READ - _LATER - _ELSEWHERE:
            notes.keep(text, KEY_OF_OPTION[option.name])
        elif option.name == "qos" and _is_queue(option, partition):
            notes.keep(text, "partition")
    _unread(job, notes)
    return data | _disk(job, site, notes) | _others(job, site, partition, notes)


def _misread(option: Option, job: ScriptJob) -> bool:
    """Return whether an option's value is not valid in a job file."""
    if option.name == "nodes":
        return not (option.value or "").isdecimal()
    return option.name == "time" and not job.resources.seconds


def _is_queue(option: Option, partition: Partition | None) -> bool:
    """Return whether an entry of the profile's partitions requests this QOS."""
    return partition is not None and f"--qos={option.value}" in partition.arguments


def _unread(job: ScriptJob, notes: Notes) -> None:
    """Note lines that look like directives, but that sbatch or lumitui cannot read."""
    for trouble in job.troubles:
        if trouble.id in ("directive-after-command", "nearly-a-directive"):
            line = job.text.replace("\r\n", "\n").split("\n")[trouble.at.line - 1].strip()
            notes.lose(line, "sbatch ignores this line, so the job file omits it")
        elif trouble.id in ("stray-word", "unknown-directive", "not-understood"):
            written = written_at(job.text, trouble.at) or f"line {trouble.at.line}"
            notes.lose(written, trouble.message.rstrip("."))


def _size(job: ScriptJob, site: Site, notes: Notes) -> dict[str, object]:
    request, most = job.resources, site.node.gpus
    gpus = request.gpus_per_node or (job.rank.per_node if site.node.on_cpu else None)
    nodes = request.nodes
    if nodes is None and request.tasks and gpus and request.tasks > gpus:
        nodes = -(-request.tasks // gpus)
    if gpus is None:
        gpus = min(job.rank.per_node or 1, most)
        if not site.node.on_cpu:
            notes.lose("GPUs", f"the script requests none; the job file requests {gpus} per node")
    data: dict[str, object] = {"nodes": nodes or 1}
    if gpus != most:
        data["gpus_per_node"] = gpus
    return data


def _time(job: ScriptJob, notes: Notes) -> dict[str, object]:
    option, seconds = job.options.get("time"), job.resources.seconds
    if option is None or not seconds:
        notes.lose("--time", f"the script sets no limit; {_GUESSED_TIME} is a guess")
        return {"time": _GUESSED_TIME}
    written = option.value or ""
    return {"time": written if ":" in written else walltime.text_of(seconds)}


def _signal(job: ScriptJob, notes: Notes) -> dict[str, object]:
    option = job.options.get("signal")
    if option is None:
        return {}
    match = _SIGNAL.match(option.value or "")
    if match is None or "R" in (match["to"] or ""):
        notes.lose(
            f"--signal={option.value}", "`signal:` accepts only forms like USR1@120 or B:USR1@120"
        )
        return {}
    to = "B:" if match["to"] else ""
    notes.keep(f"--signal={option.value}", "signal")
    return {"signal": f"{to}{match['name']}@{match['lead'] or 60}"}


def _exclusive(partition: Partition | None, notes: Notes) -> dict[str, object]:
    if partition is not None and partition.allocation == "node":
        notes.derive("--exclusive", "the partition allocates whole nodes")
        return {}
    notes.keep("--exclusive", "exclusive")
    return {"exclusive": True}


def _disk(job: ScriptJob, site: Site, notes: Notes) -> dict[str, object]:
    """Return the part of a node's disk that `--gres` requests besides the GPUs."""
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
            notes.lose(f"--gres={part}", "the profile has no such resource")
    return data


def _others(
    job: ScriptJob, site: Site, partition: Partition | None, notes: Notes
) -> dict[str, object]:
    """Return the options that have no key of their own, for `sbatch:`."""
    profiles = {*site.sbatch_arguments, *(partition.arguments if partition else ())}
    options: list[str] = []
    for option in job.options.all:
        text = f"--{option.name}" + ("" if option.value is None else f"={option.value}")
        own = option.name in _READ and not (
            (option.name == "qos" and not _is_queue(option, partition))
            or (option.name == "exclusive" and option.value in ("user", "mcs", "topo"))
        )
        if own or option is not job.options.get(option.name):
            continue
        if text in profiles:
            notes.derive(text, "the profile has it")
        elif option.name == "export":
            notes.derive(text, "the job gets the job file's variables")
        elif option.name in _OURS:
            notes.derive(text, _OURS[option.name])
        elif option.name in _LOST:
            notes.lose(text, _LOST[option.name])
        elif "$" in text or "\n" in text:
            notes.lose(text, "sbatch does not expand its variables")
        else:
            notes.keep(text, "sbatch")
            options.append(text)
    return {"sbatch": options} if options else {}
