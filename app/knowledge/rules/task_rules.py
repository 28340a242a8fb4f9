"""Rules about how nodes and tasks are requested, and about options that are given twice."""

from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import removal, rewrite, some
from lumitui.app.knowledge.script_job import Option, ScriptJob
from lumitui.app.knowledge.site_facts.allocation import asks_for_gpus
from lumitui.remote.site.profile import Site

_MAY_REPEAT = ("export", "mail-type", "comment", "exclude", "nodelist")


@rule(
    "option-twice",
    "warning",
    "one option with two values",
    why="sbatch silently takes the last one, so the first one misleads a reader.",
    source="sbatch(1); slurm, src/common/slurm_opt.c",
)
def _twice(job: ScriptJob, site: Site) -> Iterator[Hit]:
    seen: dict[str, Option] = {}
    for option in job.options.all:
        before = seen.get(option.name)
        seen[option.name] = option
        if before is None or option.name in _MAY_REPEAT or before.value == option.value:
            continue
        if option.name == "gres" and _parts(before) <= _parts(option):
            continue
        both = option.name == "gres" and _kinds(before).isdisjoint(_kinds(option))
        yield Hit(
            f"--{option.name} is given twice: {option.value} counts, and {before.value} does not"
            + (", so that the job does not get it." if both else "."),
            f"Write --gres={before.value},{option.value} in one option."
            if both
            else f"Remove --{option.name}={before.value} or the other one.",
            option.at if both else before.at,
            rewrite(option, f"--gres={before.value},{option.value}")
            if both
            else removal(job, before),
        )


def _parts(option: Option) -> set[str]:
    return set((option.value or "").split(","))


def _kinds(option: Option) -> set[str]:
    return {part.partition(":")[0] for part in _parts(option)}


@rule(
    "tasks-conflict",
    "warning",
    "numbers of tasks that contradict each other",
    why="sbatch warns that it `can't honor --ntasks-per-node`, and ignores it: the job starts "
    "a different number of ranks than the script says.",
    source="sbatch(1) --ntasks-per-node; slurm, src/common/slurm_opt.c",
)
def _conflict(job: ScriptJob, site: Site) -> Iterator[Hit]:
    total, each = job.options.number("ntasks"), job.options.number("ntasks-per-node")
    nodes, option = job.options.number("nodes"), job.options.get("ntasks")
    if None in (total, each, nodes) or option is None:
        return
    assert total is not None and each is not None and nodes is not None
    if total != each * nodes:
        yield Hit(
            f"--ntasks={total} does not fit {some(nodes, 'node')} with {some(each, 'task')} each, "
            f"which are {each * nodes}.",
            "Remove --ntasks: nodes and tasks per node say it all.",
            option.at,
            removal(job, option),
        )


@rule(
    "tasks-total",
    "note",
    "a total number of tasks, which does not change with the nodes",
    why="If you change the number of nodes, --ntasks stays the same, and Slurm spreads the ranks "
    "differently. "
    "Without --nodes Slurm puts the tasks on as many nodes as it likes.",
    source="LUMI-training-materials 2day-20260422/201-Slurm; "
    "PrincetonUniversity/multi_gpu_training",
)
def _total(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option, total = job.options.get("ntasks"), job.options.number("ntasks")
    if option is None or total is None or job.options.has("ntasks-per-node"):
        return
    nodes = job.options.number("nodes")
    if nodes is None and not job.options.has("nodes") and total > 1 and asks_for_gpus(job):
        yield Hit(
            f"--ntasks={total} without --nodes: Slurm may spread the tasks over any number of "
            "nodes, each with its own GPUs.",
            "Write --nodes and --ntasks-per-node.",
            option.at,
            severity="warning",
        )
    elif nodes is not None and nodes > 1 and total % nodes == 0:
        right = f"--ntasks-per-node={total // nodes}"
        yield Hit(
            f"--ntasks={total} stays as it is when the number of nodes changes.",
            f"Write {right} in its place.",
            option.at,
            rewrite(option, right),
        )
