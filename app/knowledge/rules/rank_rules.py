"""Rules about how a program learns which rank it is."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.program.step_program import StepProgram, runs
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.profile import Site


@rule(
    "ranks-unused",
    "warning",
    "several ranks of a program that never asks for its rank",
    why="Each rank does the whole work, on all data, and writes the same files: the GPUs are "
    "paid for, and nothing is faster.",
    source="docs.csc.fi, Multi-GPU and multi-node machine learning",
)
def _unused(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        told = any(
            re.search(r"RANK|PROCID|LOCALID|NODEID", word.text) for word in run.step.arguments
        )
        if run.world > 1 and not run.knows_ranks and not told and not run.program.fault:
            yield Hit(
                f"The job starts {run.world} ranks of {run.program.file}, which never asks for its "
                "rank: each does the whole work.",
                "Start it once, on one GPU, or share the work with DistributedDataParallel.",
                run.step.at,
            )


@rule(
    "rank-variable-missing",
    "error",
    "a rank read from an environment variable that nothing sets",
    why="srun sets Slurm's variables alone. RANK, LOCAL_RANK and WORLD_SIZE are torchrun's, and "
    "the program ends with a KeyError.",
    source="LUMI-AI-Guide 05: export RANK=$SLURM_PROCID in each task; "
    "github.com/ai-dynamo/aiconfigurator/pull/1554",
)
def _absent(job: ScriptJob, site: Site) -> Iterator[Hit]:
    slurm = {"RANK": "SLURM_PROCID", "LOCAL_RANK": "SLURM_LOCALID", "WORLD_SIZE": "SLURM_NTASKS"}
    for run in runs(job):
        if run.step.launcher != "plain" or run.step.srun is None or run.world < 2:
            continue
        if run.step.srun.has("export") or run.has("deepspeed.init_distributed"):
            continue
        made = {one.target for program in run.files for one in program.settings}
        for name, source in slurm.items():
            read = any(name in one.reads for one in run.files)
            if read and job.variable(name) is None and f"environ[{name}]" not in made:
                yield Hit(
                    f"{run.program.file} reads {name}, which srun does not set: every rank ends "
                    "with a KeyError.",
                    f"Write `srun bash -c 'export {name}=${source}; exec python …'`, or read "
                    f"{source}.",
                    run.step.at,
                )
                break


@rule(
    "local-rank-argument",
    "error",
    "a local rank from an argument that no launcher gives",
    why="torchrun sets the variable LOCAL_RANK and gives no argument: `--local_rank` keeps its "
    "default, and all ranks of a node take the same GPU.",
    source="docs.pytorch.org/docs/stable/elastic/run, Transitioning from torch.distributed.launch; "
    "github.com/awslabs/slapo/pull/64",
)
def _argument(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if (job.rank.per_node or 1) < 2:
        return
    for run in runs(job):
        if run.step.launcher != "torchrun" or _by_launch(run) or run.trainer or run.lightning:
            continue
        read = any("LOCAL_RANK" in one.reads | one.asks for one in run.files)
        used = run.uses("deepspeed") or run.given("local_rank") or not run.closed
        for program in run.files:
            for option in program.options:
                if option.name == "local_rank" and _is_used(run) and not (read or used):
                    follows = (
                        "argparse ends each rank with exit code 2, as it is required"
                        if option.required
                        else f"all {job.rank.per_node} ranks of a node get the default"
                    )
                    yield Hit(
                        f"{program.file} takes its local rank from {option.flags[0]}, and torchrun "
                        f"gives no such argument: {follows}.",
                        'Remove the argument, and read int(os.environ["LOCAL_RANK"]).'
                        if option.required
                        else 'Read int(os.environ["LOCAL_RANK"]).',
                        option.at,
                    )


def _is_used(run: StepProgram) -> bool:
    """Return whether the argument decides anything."""
    return any("local_rank" in one.text for program in run.files for call in program.calls
               for one in call.arguments if not call.name.endswith("add_argument"))  # fmt: skip


def _by_launch(run: StepProgram) -> bool:
    """Return whether torch.distributed.launch starts it, which gives the argument."""
    return "torch.distributed.launch" in run.job.text and not run.step.launcher_options.has(
        "use-env"
    )
