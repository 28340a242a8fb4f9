"""The rule about a shell script that each rank runs and that starts ranks itself. Pure.

For an sbatch script, the reader opens such a file, and the rule `launcher-tasks` applies.
"""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.bash.script_reader import read_script
from lumitui.app.knowledge.script_job import JobStep, ScriptJob
from lumitui.app.launch.rules.job_file_catalogue import hit
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site

_ONE_TASK = re.compile(r"SLURM_(?:LOCALID|PROCID)|LOCAL_RANK|(?<![A-Z_])RANK\b|flock|mkdir .*lock")
"""Marks of a script that checks which task it is, and may start ranks in only one of them."""


def findings(job: ScriptJob, site: Site) -> Iterator[Finding]:
    """Yield a finding if each rank runs a shell script that starts ranks itself."""
    ranks = job.rank.per_node or 1
    for step in job.training:
        name = step.program.known if step.program else ""
        text = _text(job, name)
        if not text or step.python or ranks < 2 or _ONE_TASK.search(text):
            continue
        inner = next(_launches(text, site), None)
        if inner is None:
            continue
        starter = "srun" if inner.launcher in ("srun", "plain") else inner.launcher
        program = inner.program.known if inner.program else "the program"
        launcher = starter if starter in site.launchers else "srun"
        yield hit(
            "launcher-in-each-task",
            "script",
            f"{name} starts ranks with {starter}, but each of the {ranks} ranks of a node runs it, "
            "so each starts all ranks again.",
            f"Start {program} from the job file: `launcher: {launcher}` and `script: {program}`.",
        )


def _text(job: ScriptJob, name: str) -> str:
    """Return the text of a shell script in the project; "" for any other program."""
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
