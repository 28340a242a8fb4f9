"""Rules about the job's log: where Slurm writes it, and what overwrites it."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.profile import Site

_OUTPUT = "sbatch(1) --output, filename pattern"


@rule(
    "output-overwritten",
    "warning",
    "a log of one name for every job",
    why="The next job writes into the same file: the log of the last failure is gone, and two "
    "jobs at a time mix their lines.",
    source=f"{_OUTPUT}; LUMI-training-materials, 201-Slurm",
)
def output_overwritten(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `#SBATCH --output=train.log`."""
    if job.origin != "script" or job.options.value("open-mode") == "append":
        return
    if job.options.has("array"):
        return  # `array-output` says more of it
    for name in ("output", "error"):
        option = job.options.get(name)
        value = (option.value or "").strip("'\"") if option else ""
        varies = re.search(r"%\d*[jJAax]", value)
        if option and value and not value.startswith("/dev/") and not varies:
            yield Hit(
                f"Every job writes its --{name} to {value}, and the one before is lost.",
                f"Put the job's number in: --{name}={_with_number(value)}.",
                option.at,
            )


def _with_number(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    return f"{folder}{slash}{stem or ending}-%j{dot if stem else ''}{ending if stem else ''}"


@rule(
    "output-folder-late",
    "warning",
    "a folder for the log that only the script creates",
    why="Slurm opens the log before the script starts. If the folder does not exist, the job "
    "ends at once, without a log.",
    source=_OUTPUT,
)
def output_folder_late(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `--output=logs/%j.out` with `mkdir -p logs` in the script."""
    for name in ("output", "error"):
        option = job.options.get(name)
        folder = (option.value or "").strip("'\"").rpartition("/")[0] if option else ""
        folder = folder.removeprefix("./")
        if not option or not folder or "%" in folder:
            continue
        made = any(
            command.program == "mkdir"
            and any(word.known.removeprefix("./").rstrip("/") == folder for word in command.words)
            for command in job.commands
        )
        if made:
            yield Hit(
                f"Slurm needs {folder}/ before the script makes it: the first job ends without a "
                "log.",
                f"Make it before sbatch: mkdir -p {folder}.",
                option.at,
            )
            return


@rule(
    "output-of-tasks",
    "warning",
    "a task pattern in the name of the job's log",
    why="The batch script is one task on one node: %t and %n are always 0 there, so that the log "
    "has the same name for every job.",
    source=_OUTPUT,
)
def output_of_tasks(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `#SBATCH --output=log-%t.out`."""
    for name in ("output", "error"):
        option = job.options.get(name)
        found = re.search(r"(?<!%)%\d*([tns])", option.value or "") if option else None
        if option and found:
            yield Hit(
                f"%{found[1]} in --{name} is 0 for the batch script: it counts tasks or nodes of a "
                "step.",
                f"Write %j here, and %{found[1]} in srun --output.",
                option.at,
            )


@rule(
    "log-truncated",
    "warning",
    "a log that a requeue empties",
    why="A job that is put back into the queue opens its log anew: what was written before the "
    "failure is gone.",
    source="sbatch(1) --open-mode; LUMI-training-materials, 201-Slurm",
)
def log_truncated(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `#SBATCH --requeue` without `--open-mode=append`."""
    option = job.options.get("requeue")
    if option is not None and job.options.value("open-mode") != "append":
        yield Hit(
            "--requeue starts the job again with an empty log.",
            "Add #SBATCH --open-mode=append.",
            option.at,
        )
