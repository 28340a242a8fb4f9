"""Notes what becomes of a script's options of srun and its launcher. Pure."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.script_job import NO_OPTIONS, CommandOptions, Option, ScriptJob
from lumitui.app.launch.from_script.notes import ImportNote, Notes
from lumitui.app.launch.from_script.plain_values import with_numbers

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


def launcher_options(before: ScriptJob, after: ScriptJob, notes: Notes) -> None:
    """Note what becomes of a script's options of srun and launcher in the new script."""
    _srun(before, after, notes)
    step = before.training[-1] if before.training else None
    theirs = after.training[-1].launcher_options if after.training else NO_OPTIONS
    for option in step.launcher_options.all if step else ():
        what = f"{step.launcher if step else ''} {option.raw.strip() or '--' + option.name}"
        ours = theirs.get(option.name)
        if option.name in _NODES and _nodes(option, before) == after.nodes:
            notes.derive(what, "the launch has the job's nodes")
        elif option.name in _COUNTS and before.rank.world_size == after.rank.world_size:
            notes.derive(what, "the launch has the job's ranks")
        elif option.name in _MEANT - set(_NODES):
            notes.derive(what, "the launch sets how its processes find each other")
        elif ours is None:
            notes.lose(what, "the new launch lacks it; set it in the program or its files")
        elif _value(option, before) == _value(ours, after):
            notes.derive(what, "the new launch has the same")
        else:
            new = with_numbers(ours.value or "", after)
            notes.change(what, option.value or "set", new or "set")


def _nodes(option: Option, job: ScriptJob) -> int | None:
    text = _value(option, job).partition(":")[2] or _value(option, job)
    return int(text) if text.isdecimal() else None


def _srun(before: ScriptJob, after: ScriptJob, notes: Notes) -> None:
    step = before.training[-1] if before.training else None
    ours = after.training[-1].srun if after.training else None
    for option in step.srun.all if step and step.srun else ():
        what = f"srun {option.raw.strip() or '--' + option.name}"
        same = (ours or NO_OPTIONS).get(option.name)
        if option.name in _LAYOUT:
            notes.derive(what, "it follows from the layout of the ranks")
        elif option.name in _PLAIN:
            notes.derive(what, "the launch has its own")
        elif option.name in ("output", "error"):
            notes.derive(what, "the log is in the run's folder")
        elif option.name == "export":
            if (option.value or "").partition(",")[0] == "ALL":
                notes.derive(what, "the program gets the job script's variables")
        elif option.name in _REQUEST and option.value == before.options.value(option.name):
            notes.derive(what, "the job has the same")
        elif option.name in ("gpus-per-task", "gpu-bind"):
            notes.lose(what, "each rank sees all GPUs of its node, and uses that of its LOCAL_RANK")
        elif same is not None and _masks(same.value) == _masks(option.value):
            notes.derive(what, "the new launch has the same")
        elif option.name == "cpu-bind":
            notes.change(what, option.value or "set", _binding(same))
        else:
            notes.lose(what, "a job file cannot set options of srun")


def _binding(option: Option | None) -> str:
    if option is None:
        return "the launch binds no rank"
    return "the profile's cores of each GPU"


def _masks(value: str | None) -> tuple[str, ...]:
    """Return a binding in canonical form: masks as numbers."""
    text = re.sub(r"^(?:v|verbose|q|quiet),", "", (value or "").lower()).replace(":", "=", 1)
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
