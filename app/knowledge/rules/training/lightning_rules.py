"""Rules about PyTorch Lightning, which compares its Trainer's arguments with Slurm's."""

from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.model.source_position import NOWHERE, Position
from lumitui.app.knowledge.program.program_facts import Call
from lumitui.app.knowledge.program.step_program import Run, runs
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.app.knowledge.rules.phrases import some
from lumitui.remote.site.profile import Site

_SLURM = (
    "github.com/Lightning-AI/pytorch-lightning, plugins/environments/slurm.py and "
    "connectors/accelerator_connector.py"
)


def _trainers(job: Job) -> Iterator[tuple[Run, Call]]:
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
    source=_SLURM,
)
def _devices(job: Job, site: Site) -> Iterator[Hit]:
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


def _told(job: Job, name: str) -> Iterator[tuple[int, Position]]:
    """Yield the numbers that LightningCLI gets on the command line: `--trainer.devices 4`."""
    for step in job.training:
        if step.srun is None or step.launcher != "plain":
            continue
        for number, word in enumerate(step.arguments):
            key, equals, value = word.known.partition("=")
            following = step.arguments[number + 1 : number + 2]
            value = value if equals else following[0].known if following else ""
            if key == f"--trainer.{name}" and value.isdecimal() and int(value) > 0:
                yield int(value), word.at if word.at.line else step.at


@rule(
    "lightning-cli",
    "error",
    "devices or nodes on LightningCLI's command line that are not the job's",
    why="Lightning compares --trainer.devices with the tasks on a node and --trainer.num_nodes "
    "with the nodes, and ends where they differ.",
    source=_SLURM,
)
def _cli(job: Job, site: Site) -> Iterator[Hit]:
    tasks = job.rank.per_node
    for count, at in _told(job, "devices"):
        if tasks is not None and count != tasks:
            yield Hit(
                f"--trainer.devices is {count}, and Slurm starts {some(tasks, 'task')} a node.",
                f"Write #SBATCH --ntasks-per-node={count}.",
                at,
            )
    for count, at in _told(job, "num_nodes"):
        if count != job.nodes:
            yield Hit(
                f"--trainer.num_nodes is {count}, and the job has {some(job.nodes, 'node')}.",
                f"Write --trainer.num_nodes={job.nodes}.",
                at,
            )


@rule(
    "lightning-nodes",
    "error",
    "a number of nodes that is not the job's",
    why="Lightning compares `num_nodes` (1 where it is not given) with the job's nodes, and ends "
    "where they differ.",
    source=_SLURM,
)
def _nodes(job: Job, site: Site) -> Iterator[Hit]:
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
    "lightning-without-srun",
    "warning",
    "Lightning on several GPUs without srun",
    why="Inside a job Lightning expects that srun starts one task for each device. Without srun it "
    "warns, starts the ranks itself, and runs on the first node alone.",
    source=_SLURM,
)
def _without(job: Job, site: Site) -> Iterator[Hit]:
    tasks = job.resources.tasks or (job.resources.tasks_per_node or 1) * job.nodes
    for run in runs(job):
        if run.lightning and run.step.srun is None and run.step.launcher == "plain" and tasks > 1:
            yield Hit(
                f"The job asks for {tasks} tasks, and {run.program.file} starts without srun: "
                "Lightning finds one task of them.",
                "Write srun in front of the program.",
                run.step.at,
            )


@rule(
    "lightning-tasks",
    "error",
    "a total number of tasks, where Lightning needs tasks per node",
    why="With --ntasks above 1 and no --ntasks-per-node, Lightning ends: `You set --ntasks=… in "
    "your SLURM bash script, but this variable is not supported`.",
    source=_SLURM,
)
def _tasks(job: Job, site: Site) -> Iterator[Hit]:
    total = job.options.get("ntasks")
    if total is None or (job.options.number("ntasks") or 1) < 2:
        return
    if job.options.has("ntasks-per-node"):
        return
    for run, _call in _trainers(job):
        if run.step.srun is not None and run.step.srun.has("ntasks-per-node"):
            continue
        yield Hit(
            f"--ntasks={total.value} is given without --ntasks-per-node, and Lightning refuses it.",
            f"Write --ntasks-per-node={max(1, (job.options.number('ntasks') or 1) // job.nodes)}.",
            total.at,
        )
        return


@rule(
    "lightning-spawns",
    "error",
    "a strategy of Lightning that starts its own processes, under srun",
    why="`ddp_spawn`, `ddp_fork` and `ddp_notebook` start a process for each device in each task: "
    "8 x 8 on a node of eight.",
    source="lightning.ai/docs/pytorch/stable, strategies; plugins/environments/slurm.py",
)
def _spawns(job: Job, site: Site) -> Iterator[Hit]:
    if (job.rank.per_node or 1) < 2:
        return
    for run, call in _trainers(job):
        strategy = run.value(call.get("strategy"))
        if isinstance(strategy, str) and any(
            word in strategy for word in ("spawn", "fork", "notebook")
        ):
            yield Hit(
                f'strategy="{strategy}" starts processes in each of the {job.rank.per_node} tasks '
                "of a node.",
                'Write strategy="ddp".',
                call.at,
            )


@rule(
    "lightning-requeue",
    "note",
    "a requeue of Lightning that no signal starts",
    why="SLURMEnvironment(auto_requeue=True) writes a checkpoint and puts the job back when it "
    "gets a signal. Slurm sends it only with --signal.",
    source="lightning.ai/docs/pytorch/stable/clouds/cluster_advanced, auto-requeue",
)
def _requeue(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        for program, call in run.calls("SLURMEnvironment"):
            requeue = call.get("auto_requeue", 0)
            off = requeue is not None and requeue.value is False
            if not off and not job.options.has("signal") and job.origin == "script":
                yield Hit(
                    f"{program.file} lets Lightning requeue the job at a signal, and the script "
                    "asks for none: the time limit ends it.",
                    "Add #SBATCH --signal=SIGUSR1@90.",
                    call.at,
                )


@rule(
    "lightning-requeue-refused",
    "warning",
    "a signal for Lightning's requeue, in a job that may not be requeued",
    why="Lightning writes a checkpoint and calls `scontrol requeue`, which Slurm refuses for a job "
    "with --no-requeue: the training does not go on.",
    source="lightning.ai/docs/pytorch/stable/clouds/cluster_advanced; slurm.schedmd.com, "
    "--no-requeue",
)
def _refused(job: Job, site: Site) -> Iterator[Hit]:
    given = job.options.get("no-requeue")
    signal = job.options.value("signal") or ""
    if given is None or "USR1" not in signal.upper():
        return
    for run in runs(job):
        off = any(
            (argument := call.get("auto_requeue", 0)) is not None and argument.value is False
            for _program, call in run.calls("SLURMEnvironment")
        )
        if run.lightning and not off:
            yield Hit(
                f"--signal={signal} makes Lightning requeue the job, and --no-requeue forbids it.",
                "Remove --no-requeue, or write SLURMEnvironment(auto_requeue=False).",
                given.at if given.at != NOWHERE else run.step.at,
            )
            return


RULES: tuple[Rule, ...] = (
    _cli,
    _devices,
    _nodes,
    _without,
    _tasks,
    _spawns,
    _requeue,
    _refused,
)
"""Every rule of this subject."""
