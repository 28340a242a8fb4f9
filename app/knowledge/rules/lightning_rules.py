"""Rules about PyTorch Lightning: what it compares with Slurm, and a release that was withdrawn."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.program.program_facts import Call
from lumitui.app.knowledge.program.step_program import StepProgram, runs
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import Position

_SLURM = (
    "github.com/Lightning-AI/pytorch-lightning, plugins/environments/slurm.py and "
    "connectors/accelerator_connector.py"
)


def _trainers(job: ScriptJob) -> Iterator[tuple[StepProgram, Call]]:
    """Yield the Trainers that Lightning starts by srun alone, one task for each device."""
    for run in runs(job):
        if run.lightning and run.step.srun is not None and run.step.launcher == "plain":
            for _program, call in run.calls("Trainer"):
                if not call.open:
                    yield run, call


@rule(
    "lightning-devices",
    "error",
    "a number of devices that is not the tasks on a node",
    why="Under srun each task is one device. Lightning compares `devices` with "
    "--ntasks-per-node, and ends or hangs where they differ.",
    source=f"{_SLURM}; github.com/Lightning-AI/pytorch-lightning/issues/20391",
)
def _devices(job: ScriptJob, site: Site) -> Iterator[Hit]:
    tasks = job.rank.per_node
    if tasks is None:
        return
    for run, call in _trainers(job):
        argument = call.get("devices")
        known = run.value(argument)
        count = int(known) if isinstance(known, str) and known.isdecimal() else known
        if type(count) is int and count > 0 and count != tasks:
            yield Hit(
                f"The Trainer takes {count} devices on each node, and Slurm starts {tasks} "
                f"task{'s' * (tasks != 1)} there: Lightning needs as many.",
                f"Write #SBATCH --ntasks-per-node={count}, or devices={tasks}.",
                call.at,
            )


@rule(
    "lightning-nodes",
    "error",
    "a number of nodes that is not the job's",
    why="Lightning compares `num_nodes` (default 1) with the job's nodes, and ends if they differ.",
    source=f"{_SLURM}; github.com/Lightning-AI/pytorch-lightning/issues/10098",
)
def _nodes(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if (job.rank.world_size or 0) < 2:
        return
    for run, call in _trainers(job):
        argument = call.get("num_nodes")
        count = 1 if argument is None else run.number(argument)
        if count is not None and count != job.nodes:
            given = (
                f"says num_nodes={count}" if argument else "says nothing of nodes, which means 1"
            )
            yield Hit(
                f"The Trainer {given}, and the job has {job.nodes}: Lightning ends.",
                f"Write num_nodes={job.nodes}, or int(os.environ['SLURM_NNODES']).",
                call.at,
            )


@rule(
    "withdrawn-lightning",
    "error",
    "a release of Lightning that was withdrawn",
    why="2.6.2 and 2.6.3 were published by an attacker and taken back: pip no longer finds them, "
    "and an environment that has them is not safe.",
    source="github.com/Lightning-AI/pytorch-lightning/issues/21691",
)
def _withdrawn(job: ScriptJob, site: Site) -> Iterator[Hit]:
    pinned = re.compile(r"\b((?:pytorch-)?lightning)\s*==\s*(2\.6\.[23])\b")
    found = [
        (match, word.at)
        for command in job.commands
        for word in command.words
        if command.program.startswith(("pip", "python", "uv"))
        and (match := pinned.search(word.known))
    ]
    for file, text in job.files.items():
        if file.endswith(".txt"):
            found += [
                (match, Position(number, match.start() + 1, number, match.end() + 1, file))
                for number, line in enumerate(text.splitlines(), 1)
                if (match := pinned.search(line))
            ]
    for match, at in found:
        yield Hit(
            f"{match[1]} {match[2]} was withdrawn: it was published by an attacker.",
            f"Write {match[1]}==2.6.4, and change the credentials that were used with it.",
            at,
        )
