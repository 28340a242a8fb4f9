"""A rule about PyTorch Lightning: the number of nodes, which it compares with Slurm's."""

from collections.abc import Iterator

from lumitui.app.knowledge.program.step_program import runs
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.profile import Site

_SLURM = (
    "github.com/Lightning-AI/pytorch-lightning, plugins/environments/slurm.py and "
    "connectors/accelerator_connector.py"
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
    for run in runs(job):
        if not run.lightning or run.step.srun is None or run.step.launcher != "plain":
            continue  # else Lightning starts the ranks itself
        for _program, call in run.calls("Trainer"):
            argument = call.get("num_nodes")
            count = 1 if argument is None else run.number(argument)
            if call.open or count in (None, job.nodes):
                continue
            given = (
                f"says num_nodes={count}" if argument else "says nothing of nodes, which means 1"
            )
            yield Hit(
                f"The Trainer {given}, and the job has {job.nodes}: Lightning ends.",
                f"Write num_nodes={job.nodes}, or int(os.environ['SLURM_NNODES']).",
                call.at,
            )
