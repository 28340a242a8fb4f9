"""The rule about a shell script that each rank starts, and that starts ranks itself. Pure.

In an sbatch script the reader goes into such a file, and `launcher-tasks` speaks.
"""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.bash.script_reader import read_script
from lumitui.app.knowledge.script_job import JobStep, ScriptJob
from lumitui.app.launch.rules.job_file_catalogue import hit
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site

_ONE_TASK = re.compile(r"SLURM_(?:LOCALID|PROCID)|LOCAL_RANK|(?<![A-Z_])RANK\b|flock|mkdir .*lock")
"""A script that asks which task it is may start its ranks in one of them alone."""


def findings(job: ScriptJob, site: Site) -> Iterator[Finding]:
    """Yield what a job's own shell script starts again in each of its ranks."""
    ranks = job.rank.per_node or 1
    for step in job.training:
        name = step.program.known if step.program else ""
        text = _text(job, name)
        if not text or step.python or ranks < 2 or _ONE_TASK.search(text):
            continue
        inner = next(_launches(text, site), None)
        if inner is None:
            continue
        what = "srun" if inner.launcher in ("srun", "plain") else inner.launcher
        program = inner.program.known if inner.program else "the program"
        launcher = what if what in site.launchers else "srun"
        yield hit(
            "launcher-in-each-task",
            "script",
            f"{name} starts ranks with {what}, and is itself started for each of the {ranks} "
            "ranks of a node: each starts all of them again.",
            f"Let the job file start {program}: `launcher: {launcher}` and `script: {program}`.",
        )


def _text(job: ScriptJob, name: str) -> str:
    """Return the text of a shell script of the project; "" for any other program."""
    plain = name.removeprefix("./")
    shells = {file: text for file, text in job.files.items() if not file.endswith(".py")}
    scripts = [text for file, text in shells.items() if file == plain or plain.endswith(f"/{file}")]
    return scripts[0] if len(scripts) == 1 and "\0" not in scripts[0] else ""


def _launches(text: str, site: Site) -> Iterator[JobStep]:
    """Yield the steps of a script that start several ranks."""
    for step in read_script(text, site=site).steps:
        options = step.launcher_options
        single = options.value("nproc-per-node", "np", "num-processes", "num-gpus") == "1"
        if step.trains and (step.srun is not None or step.launcher != "plain") and not single:
            yield step
