"""Rules about files: folders of one node, home, other projects, and the job's log."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import Command, Option, ScriptJob
from lumitui.app.knowledge.site_facts.allocation import work_folder
from lumitui.app.knowledge.site_facts.expansions import names_in, put_in
from lumitui.app.knowledge.site_facts.process_counts import tasks_of
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE

_NODE_FOLDER = re.compile(r"^(/tmp|/var/tmp|/dev/shm|\$\{?(TMPDIR|LOCAL_SCRATCH|NODE_TMP)\b)")
_HOME = re.compile(
    r"^(~|\$\{?HOME\}?|/users/|/home/|/gpfs/home/|/ccs/home/)(?!/\.\.(?:/|$))(?=/|$|\w)"
)
_RESULTS = re.compile(
    r"^--?(output|out|save|checkpoint|ckpt|results?|log|work|run)s?([_-]?(dir|path|folder|to))?$"
)
_COPIES = ("tar", "cp", "rsync", "unzip", "unsquashfs", "pigz", "zstd", "mv", "gunzip", "dd")


@rule(
    "first-node-only",
    "error",
    "files that exist on only the first node",
    why="The batch script fills /tmp or a local disk of the first node; ranks on other "
    "nodes do not find the files.",
    source="csc-user-guide, ml-multi.md; LUMI-AI-Guide pull request 108",
)
def _first_node_only(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if job.nodes < 2:
        return
    for variable in job.variables:
        from_mktemp = variable.shell == "batch" and re.match(
            r"\$\(mktemp\s[^)]*-d\b", variable.value
        )
        sent = any(one.exported and variable.name in names_in(one.value) for one in job.variables)
        if from_mktemp and (variable.exported or sent):
            yield Hit(
                f"mktemp creates ${variable.name} on only the first of {job.nodes} nodes.",
                "Include the job's id in the name, and create it on every node: srun "
                "--ntasks-per-node=1 --ntasks=$SLURM_NNODES mkdir -p /tmp/$USER-$SLURM_JOB_ID.",
                variable.at,
                severity="warning",
            )
    spread = {command.program for command in job.commands if _is_spread(job, command)}
    for command in job.commands:
        alone = command.step is None and command.shell == "batch"
        target = _written(job, command)
        if not alone or not target or command.program in spread:
            continue
        made = command.program == "mkdir"
        yield Hit(
            f"{target} is written on only the first of {job.nodes} nodes.",
            f"Write srun --ntasks-per-node=1 --ntasks=$SLURM_NNODES before {command.program}.",
            command.at,
            severity="warning" if made else None,
        )


def _is_spread(job: ScriptJob, command: Command) -> bool:
    """Return whether a step runs the command on every node."""
    if command.step is None:
        return False
    step = job.steps[command.step]
    return step.srun is not None and (tasks_of(job, step) or 1) >= job.nodes


def _written(job: ScriptJob, command: Command) -> str:
    """Return the node-local folder that a command writes to, or ""."""
    texts = [word.text for word in command.words if not word.text.startswith("-")]
    words = [_place(job, text) for text in texts]
    if command.program == "mkdir":
        return next((word for word in words if _NODE_FOLDER.match(word)), "")
    if command.program not in _COPIES:
        return ""
    if command.program in ("cp", "rsync", "mv"):
        words = words[-1:]
    return next((word for word in words if _NODE_FOLDER.match(word)), "")


@rule(
    "results-on-node",
    "warning",
    "results in a folder that is deleted when the job ends",
    why="The site empties local disks and /tmp when the job ends: checkpoints are lost.",
    source="the site's profile, node.local_disk; docs.csc.fi, disk",
)
def _results_on_node(job: ScriptJob, site: Site) -> Iterator[Hit]:
    trained = {number for number, step in enumerate(job.steps) if step.trains}
    launch = max((n for n, each in enumerate(job.commands) if each.step in trained), default=-1)
    back = any(
        command.program in ("cp", "rsync", "mv", "tar")
        and any(_NODE_FOLDER.match(_place(job, word.text)) for word in command.words)
        for command in job.commands[launch + 1 :]
    )
    for step in job.training:
        for name, value in step.named_arguments():
            folder = _place(job, value.text)
            if _RESULTS.match(name) and _NODE_FOLDER.match(folder) and not back:
                yield Hit(
                    f"{name} points to {folder}, which the site empties when the job ends.",
                    "Write to scratch, or copy the results back after the program.",
                    value.at if value.at.line else step.at,
                )
                return


def _place(job: ScriptJob, text: str) -> str:
    """Return a path with the script's variables expanded, except a node-local folder's."""
    return text if _NODE_FOLDER.match(text) else put_in(job, text)


@rule(
    "runs-in-home",
    "warning",
    "a job that works in home",
    why="Output fills the small home quota; at some sites, compute nodes cannot write to it.",
    source="LUMI user guide, storage; docs.csc.fi, disk",
)
def _runs_in_home(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option = job.options.get("chdir")
    first = min((step.at.line for step in job.training), default=0)
    folders = [(option.value or "", option.at)] if option else []
    folders += [
        (put_in(job, command.words[0].text), command.at)
        for command in job.commands
        if command.program == "cd" and command.words and command.step is None
        and command.at.line < first
    ]  # fmt: skip
    if not folders and job.folder:
        folders = [(job.folder, NOWHERE)]
    for folder, at in folders[-1:]:
        if _HOME.match(folder):
            yield Hit(
                f"The job works in {folder}, but home has a small quota.",
                f"Put the project on scratch: {work_folder(job, site)}.",
                at,
            )


@rule(
    "outside-the-project",
    "note",
    "a path relative to the folder where sbatch is called",
    why="Submitted from another folder, or from a snapshot of the project, the job does not find "
    "the file.",
    source="sbatch(1) --chdir",
)
def _outside_the_project(job: ScriptJob, site: Site) -> Iterator[Hit]:
    moves = job.options.has("chdir") or any(
        command.program == "cd" and command.shell == "batch" for command in job.commands
    )
    if moves:
        return
    for step in job.training:
        image = step.container.image if step.container else None
        for word in (image, step.program, *step.arguments):
            if word is not None and word.known.rpartition("=")[2].startswith("../"):
                yield Hit(
                    f"{word.known} depends on the folder where sbatch is called.",
                    "Write the full path, or --chdir with the project's folder.",
                    word.at if word.at.line else step.at,
                )
                return


_OUTPUT = "sbatch(1) --output, filename pattern"


def logs_of(job: ScriptJob) -> Iterator[tuple[Option, str]]:
    """Yield the options that set the job's logs, with their paths."""
    for option in (job.options.get("output"), job.options.get("error")):
        if option is not None and option.value:
            yield option, option.value.strip("'\"")


@rule(
    "output-overwritten",
    "warning",
    "the same log name for every job",
    why="The next job overwrites the log, and simultaneous jobs mix their lines.",
    source=f"{_OUTPUT}; LUMI-training-materials, 201-Slurm",
)
def _output_overwritten(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if job.origin != "script" or job.options.value("open-mode") == "append":
        return
    if job.options.has("array"):
        return  # `array-output` reports it in more detail
    for option, path in logs_of(job):
        varies = re.search(r"%\d*[jJAax]", path)
        if path and not path.startswith("/dev/") and not varies:
            yield Hit(
                f"Every job writes its --{option.name} to {path}, so the previous log is lost.",
                f"Include the job's id: --{option.name}={_with_number(path)}.",
                option.at,
            )


def _with_number(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    return f"{folder}{slash}{stem or ending}-%j{dot if stem else ''}{ending if stem else ''}"


@rule(
    "output-folder-late",
    "warning",
    "a log folder that only the script creates",
    why="Slurm opens the log before the script starts: the job ends immediately, without a log.",
    source=_OUTPUT,
)
def _output_folder_late(job: ScriptJob, site: Site) -> Iterator[Hit]:
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
                f"Slurm needs {folder}/ before the script creates it: the first job ends without "
                "a log.",
                f"Create it before you call sbatch: mkdir -p {folder}.",
                option.at,
            )
            return


@rule(
    "output-of-tasks",
    "warning",
    "a task pattern in the name of the job's log",
    why="The batch script is one task on one node: %t and %n are always 0.",
    source=_OUTPUT,
)
def _output_of_tasks(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for option, path in logs_of(job):
        if pattern := re.search(r"(?<!%)%\d*([tns])", path):
            yield Hit(
                f"%{pattern[1]} in --{option.name} is 0 for the batch script: it numbers tasks "
                "or nodes of a step.",
                f"Write %j here, and %{pattern[1]} in srun --output.",
                option.at,
            )


@rule(
    "log-truncated",
    "warning",
    "a log that a requeue empties",
    why="A requeued job opens its log again, and loses everything written before the failure.",
    source="sbatch(1) --open-mode; LUMI-training-materials, 201-Slurm",
)
def _log_truncated(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option = job.options.get("requeue")
    if option is not None and job.options.value("open-mode") != "append":
        yield Hit(
            "--requeue restarts the job with an empty log.",
            "Add #SBATCH --open-mode=append.",
            option.at,
        )
