"""Rules about simultaneous work: background steps and array tasks."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.bash.expand import evaluate
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import one_of
from lumitui.app.knowledge.script_job import CommandOptions, JobStep, ScriptJob
from lumitui.app.knowledge.site_facts.allocation import cores_of_node
from lumitui.remote.site.profile import Site

_STARTERS = ("srun", "singularity", "apptainer", "mpirun", "mpiexec", "python", "python3", "bash",
             "sh", "ray", "tail")  # fmt: skip
"""Programs that a script waits for if they run in the foreground."""
_MOST = 100
"""Maximum number of steps of a script to compare."""
_GPUS = ("gpus", "gpus-per-node", "gpus-per-task", "gres", "tres-per-task")
_OWN_CORES = ("exact", "exclusive", "cpus-per-task", "threads-per-core")
"""With one of these, a step takes only the cores it requests."""
_OWN_MEMORY = ("mem", "mem-per-cpu", "mem-per-gpu")
_ELSEWHERE = ("overlap", "jobid", "het-group", "pack-group", "nodelist", "relative", "nodefile")
"""With one of these, a step does not wait, or the user has divided the nodes."""


@rule(
    "missing-wait",
    "error",
    "background steps that the script does not wait for",
    why="When the script ends, Slurm ends the job and all steps that still run.",
    source="sbatch(1); bash(1) wait",
)
def _missing_wait(job: ScriptJob, site: Site) -> Iterator[Hit]:
    waits = [item.at.line for item in job.commands if item.program == "wait"]
    foreground = [step.at.line for step in job.steps if not step.background]
    foreground += [
        item.at.line
        for item in job.commands
        if item.program.rpartition("/")[2] in _STARTERS
        and not any(step.background and step.at.line == item.at.line for step in job.steps)
    ]
    last = max([*waits, *foreground], default=0)
    for step in job.training:
        if step.background and step.at.line > last:
            yield Hit(
                "The step runs in the background, and the script ends without waiting for it: "
                "Slurm then ends the step.",
                "Write `wait` after the last step.",
                step.at,
            )


@rule(
    "background-steps-overlap",
    "warning",
    "steps that should run at the same time but wait for each other",
    why="By default, a step takes all resources of the job; the next one waits: `Step "
    "creation temporarily disabled, retrying`.",
    source="srun(1) --exact, --mem, --gpus; measured with Slurm 22.05.8 (CR_CORE_MEMORY)",
)
def _background_steps_overlap(job: ScriptJob, site: Site) -> Iterator[Hit]:
    beside = [step for step in job.training if step.background and step.srun]
    before: JobStep | None = None
    for step in beside[:_MOST]:
        together = before is not None and not _waits(job, before, step)
        if step.repeated and not _waits_in_loop(job, step):
            together = True
        takes = _takes_all(job, site, step.srun) if step.srun else []
        if together and takes:
            yield Hit(
                f"The step should run beside another one, but takes all {one_of(takes, 'and')} "
                "of the job: one waits for the other.",
                f"Set the resources of each step: srun {_cure(job, takes)}.",
                step.at,
            )
        before = step


def _takes_all(job: ScriptJob, site: Site, srun: CommandOptions) -> list[str]:
    """Return the resources that a step takes completely, in words; "" if it has its own nodes."""
    several = job.nodes > 1 or not job.options.has("nodes")
    if srun.has(*_ELSEWHERE) or (several and srun.has("nodes")):
        return []
    own = srun.has(*_OWN_CORES) or job.variable("SRUN_CPUS_PER_TASK") is not None
    asked, has = srun.number("cpus-per-task") or 0, cores_of_node(job, site)
    if has and has > 1 and asked * (srun.number("ntasks") or 1) >= has:
        own = False
    found = [] if own else ["cores"]
    if job.options.has("mem") and not srun.has(*_OWN_MEMORY):
        found.append("memory")
    if _gpus_of(job.options) and not _divides_gpus(job, srun):
        found.append("GPUs")
    return found


def _gpus_of(options: CommandOptions) -> str:
    """Return the option that requests GPUs, or ""."""
    found = [
        item.name
        for item in options.all
        if item.name in _GPUS and (item.name != "gres" or "gpu" in (item.value or ""))
    ]
    return found[-1] if found else ""


def _divides_gpus(job: ScriptJob, srun: CommandOptions) -> bool:
    """Return whether a step's option applies in addition to the job's, which srun inherits."""
    asked, own = _gpus_of(job.options), _gpus_of(srun)
    if not own:
        return False
    if asked == "gpus-per-node":
        return own in ("gpus-per-node", "gres")
    return asked == "gres" or own == asked


def _cure(job: ScriptJob, takes: list[str]) -> str:
    words = ["--exact"] if "cores" in takes else []
    words += ["--mem=…"] if "memory" in takes else []
    asked = _gpus_of(job.options)
    words += [f"--{'gres=gpu:' if asked == 'gres' else f'{asked}='}…"] if "GPUs" in takes else []
    return " ".join(words)


def _waits(job: ScriptJob, before: JobStep, step: JobStep) -> bool:
    """Return whether the script waits between two steps."""
    return any(
        command.program == "wait" and before.at.line <= command.at.line <= step.at.line
        for command in job.commands
    )


def _waits_in_loop(job: ScriptJob, step: JobStep) -> bool:
    """Return whether a loop waits for each step, or for some steps, before it continues."""
    for line in job.text.split("\n")[max(step.at.end_line, step.at.line) - 1 :]:
        if re.search(r"\bwait\b", line):
            return True
        if re.match(r"\s*done\b", line):
            return False
    return False


@rule(
    "same-port-twice",
    "error",
    "simultaneous launches that use the same port on a node",
    why="All but the first fail with `Address already in use`. torchrun's default port is 29500.",
    source="pytorch, torch/distributed/run.py --master-port, --standalone; "
    "github.com/pytorch/pytorch/issues/126510",
)
def _same_port_twice(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if job.nodes > 1:
        return
    taken = set[str]()
    for step in job.training:
        port = _port(job, step) if step.background and step.launcher == "torchrun" else ""
        if port and (step.repeated or port in taken):
            yield Hit(
                f"Simultaneous launches use the same port, {port}, of one node.",
                "Give each launch --standalone or its own --master_port.",
                step.at,
            )
            return
        taken.add(port)


def _port(job: ScriptJob, step: JobStep) -> str:
    """Return torchrun's port if it is constant, otherwise ""."""
    options = step.launcher_options
    if (
        options.has("standalone")
        or job.variable("PET_MASTER_PORT")
        or job.variable("PET_RDZV_ENDPOINT")
    ):
        return ""
    if options.has("rdzv-endpoint", "rdzv-backend"):
        port = (options.value("rdzv-endpoint") or "").rpartition(":")[2]
    else:
        port = (options.value("master-port") or "29500").strip()
    return port if port.isdecimal() and port != "0" else ""


_TASK = "SLURM_ARRAY_TASK_ID"
_INDEX = re.compile(r"\$\{(\w+)\[([^][{}]{1,99}|\$\{\w+\}|\$\(\([^][]{1,99}\)\))\]\}")
_LENGTH = re.compile(r"\$\{#(\w+)\[[@*]\]\}")
_MOST_TASKS = 100_000
_JUDGED = 500
"""Number of tasks to check at each end of a long array."""
_MOST_SHOWN = 5_000
"""Maximum number of tasks for which a fix offers a shorter array."""
_DEEPEST = 4
"""Maximum depth of variables that refer to other variables."""


def numbers_of(text: str) -> list[int] | None:
    """Return the task ids in `0-9:3,12%4`; None if unreadable."""
    numbers: list[int] = []
    for part in text.partition("%")[0].split(","):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6})(?::(\d{1,6}))?)?", part.strip())
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        numbers += range(first, min(last, first + _MOST_TASKS) + 1, int(match[3] or 1) or 1)
    return sorted(set(numbers))


def _entry(job: ScriptJob, text: str, task: int, depth: int = 0) -> int | None:
    """Return the value of an index like `$((SLURM_ARRAY_TASK_ID / n))` in a task."""

    def count(match: re.Match[str]) -> str:
        variable = job.variable(match[1])
        return match[0] if variable is None or variable.items is None else str(variable.items)

    text = _LENGTH.sub(count, text.strip())
    inner = re.fullmatch(r"\$\(\((.*)\)\)", text)
    names = {_TASK: str(task)}
    for name in re.findall(r"[A-Za-z_]\w*", text) if depth < _DEEPEST else ():
        variable = job.variable(name)
        if name != _TASK and variable is not None and not variable.conditional:
            value = _entry(job, variable.value, task, depth + 1)
            names[name] = "" if value is None else str(value)
    return evaluate(inner[1] if inner else text, names)


@rule(
    "array-beyond-list",
    "error",
    "array tasks for which a list has no entry",
    why="bash expands a missing entry to an empty string, so the task runs with an empty argument.",
    source="bash(1), Arrays; sbatch(1) --array",
)
def _array_beyond_list(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option, tasks = job.options.get("array"), numbers_of(job.resources.array)
    if option is None or not tasks:
        return
    some = tasks if len(tasks) <= 2 * _JUDGED else [*tasks[:_JUDGED], *tasks[-_JUDGED:]]
    reported = set[str]()
    for match in _INDEX.finditer(job.text):
        name, index = match[1], match[2]
        variable = job.variable(name)
        if variable is None or variable.items is None or variable.conditional or name in reported:
            continue
        if re.search(r"[$*?`{]", variable.value) or _entry(job, index, tasks[0]) is None:
            continue
        beyond = [task for task in some if (_entry(job, index, task) or 0) >= variable.items]
        if beyond:
            reported.add(name)
            which = (
                f"task {beyond[0]}" if len(beyond) == 1 else f"tasks {beyond[0]} to {beyond[-1]}"
            )
            last, end = tasks[0] - 1, min(beyond[0], tasks[0] + _MOST_SHOWN)
            while last < end and (_entry(job, index, last + 1) or 0) < variable.items:
                last += 1
            yield Hit(
                f"{name} has {variable.items} entries, but none for {which} of the array.",
                f"Write --array={tasks[0]}-{last}." if last > tasks[0] else "Add entries.",
                option.at,
            )
