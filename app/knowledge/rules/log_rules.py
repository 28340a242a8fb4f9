"""Rules about the job's log: where Slurm writes it, and what overwrites it."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import Option, ScriptJob
from lumitui.remote.site.profile import Site

_OUTPUT = "sbatch(1) --output, filename pattern"


def logs_of(job: ScriptJob) -> Iterator[tuple[Option, str]]:
    """Yield the options that name the job's logs, with their paths."""
    for option in (job.options.get("output"), job.options.get("error")):
        if option is not None and option.value:
            yield option, option.value.strip("'\"")


@rule(
    "output-overwritten",
    "warning",
    "the same log name for every job",
    why="The next job writes into the same file: the log of the last failure is gone, and two jobs "
    "that run at once mix their lines.",
    source=f"{_OUTPUT}; LUMI-training-materials, 201-Slurm",
)
def output_overwritten(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `#SBATCH --output=train.log`."""
    if job.origin != "script" or job.options.value("open-mode") == "append":
        return
    if job.options.has("array"):
        return  # `array-output` says more of it
    for option, path in logs_of(job):
        varies = re.search(r"%\d*[jJAax]", path)
        if path and not path.startswith("/dev/") and not varies:
            yield Hit(
                f"Every job writes its --{option.name} to {path}, and the one before is lost.",
                f"Put the job's number in: --{option.name}={_with_number(path)}.",
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
    for option, path in logs_of(job):
        folder = path.rpartition("/")[0].removeprefix("./")
        if not folder or "%" in folder:
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
    for option, path in logs_of(job):
        if pattern := re.search(r"(?<!%)%\d*([tns])", path):
            yield Hit(
                f"%{pattern[1]} in --{option.name} is 0 for the batch script: it counts tasks or "
                "nodes of a step.",
                f"Write %j here, and %{pattern[1]} in srun --output.",
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
