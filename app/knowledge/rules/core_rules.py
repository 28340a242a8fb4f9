"""Rules about cores: how many a node has, how many a rank gets, and who uses them."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import rewrite, some
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.knowledge.site_facts.allocation import (
    cores_of_node,
    gpu_option,
    gpus_of_node,
    is_exclusive,
    queue_of,
    whole_nodes,
)
from lumitui.remote.site.finding import Cure
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE, Position


def _where(job: ScriptJob) -> Position:
    """Return the option that says how many cores, else the one that says how many tasks or GPUs."""
    option = job.options.get("cpus-per-task") or gpu_option(job) or job.options.get("ntasks")
    return option.at if option else NOWHERE


def _threads(job: ScriptJob) -> bool:
    """Return whether Slurm counts hardware threads, so that numbers of cores say something else."""
    hint, threads = job.options.value("hint"), job.options.number("threads-per-core")
    return hint == "multithread" or (threads or 1) > 1


@rule(
    "cores",
    "error",
    "more cores on a node than a job may use",
    why="sbatch refuses the job, or it waits forever: `Requested node configuration is not "
    "available`. Some cores of a node may be the system's own.",
    source="the site's profile, node.cores and node.reserved_cores",
)
def _cores(job: ScriptJob, site: Site) -> Iterator[Hit]:
    asked, usable, option = cores_of_node(job), len(site.node.usable_cores), job.options.get
    if asked is None or asked <= usable or _threads(job) or site.scheduler != "slurm":
        return
    if job.resources.partition and queue_of(job, site) is None and not job.options.has("qos"):
        return
    tasks, given = job.tasks_per_node, option("cpus-per-task")
    reserved = site.node.cores - usable
    keeps = f" ({reserved} of {site.node.cores} are the system's)" if reserved else ""
    right = f"--cpus-per-task={max(1, usable // tasks)}"
    words = f"{asked} cores on each node are more than the {usable} that a job may use{keeps}."
    gpus = site.node.gpus
    if gpus and asked == site.cores_per_gpu * gpus:  # nothing that a job file could leave out
        share = f"Write at most {usable // gpus} there, a GPU's share of the node's cores."
        yield Hit(
            f"{words} `cores_per_gpu` of {site.name}'s profile is too large.", share, _where(job)
        )
        return
    yield Hit(
        words,
        f"Write {right}." if given else f"Ask for {usable} tasks per node at most.",
        _where(job),
        rewrite(given, right) if given else None,
        cure=Cure("cpus-per-task", right.partition("=")[2]) if given else None,
    )


@rule(
    "fixed-cores",
    "error",
    "a different number of cores than the site gives for the GPUs",
    why="The site's submit plugin refuses fewer cores, and more leave GPUs without any: the job is "
    "refused or waits forever.",
    source="the site's profile, cores_fixed and cores_per_gpu",
)
def _fixed(job: ScriptJob, site: Site) -> Iterator[Hit]:
    asked, gpus, option = cores_of_node(job), gpus_of_node(job), job.options.get("cpus-per-task")
    if not site.cores_fixed or asked is None or not gpus or _threads(job):
        return
    if gpus > site.node.gpus:  # no node has so many, which another rule says
        return
    right, tasks = site.cores_per_gpu * gpus, job.tasks_per_node
    if is_exclusive(job) or asked == right or asked > len(site.node.usable_cores):
        return
    each = f"--cpus-per-task={right // tasks}"
    fewer = asked < right
    yield Hit(
        f"{some(asked, 'core')} on each node are {'fewer' if fewer else 'more'} than {site.name} "
        f"gives for {some(gpus, 'GPU')}: {site.cores_per_gpu} each, {right} in all.",
        f"Write {each}." if right % tasks == 0 else f"Ask for {right} cores per node.",
        _where(job),
        rewrite(option, each) if option and right % tasks == 0 else None,
        severity=None if fewer else "warning",
        cure=Cure("cpus-per-task", str(right // tasks)) if option else None,
    )


@rule(
    "few-cores",
    "warning",
    "one core for each rank",
    why="Without --cpus-per-task Slurm gives each task one core. The rank, its data loaders and "
    "the network's threads then share it, and the GPU waits for data.",
    source="sbatch(1) --cpus-per-task; the site's profile, cores_per_gpu",
)
def _few(job: ScriptJob, site: Site) -> Iterator[Hit]:
    cores, gpus, queue = cores_of_node(job), gpus_of_node(job), queue_of(job, site)
    if queue is None or cores is None or not gpus or site.cores_fixed or is_exclusive(job):
        return
    if job.options.has("cpus-per-gpu", "mincpus") or cores >= 2 * gpus or _binds(job):
        return
    if site.cores_with_gpus and not job.options.has("cpus-per-task"):
        return
    srun = [step for step in job.training if step.srun is not None]
    if any(step.srun and step.srun.has("cpus-per-task") for step in srun):
        return
    if queue.partition.allocation == "node" and not srun:
        return
    tasks = job.tasks_per_node
    right = f"--cpus-per-task={site.cores_per_gpu * gpus // tasks or 1}"
    option = job.options.get("cpus-per-task")
    yield Hit(
        f"The ranks of a node get {some(cores, 'core')} for {some(gpus, 'GPU')}; the share of one "
        f"GPU is {site.cores_per_gpu}.",
        f"Write #SBATCH {right}.",
        _where(job),
        rewrite(option, right) if option else None,
    )


def _binds(job: ScriptJob) -> bool:
    return any(step.srun is not None and step.srun.has("cpu-bind") for step in job.steps)


@rule(
    "idle-cores",
    "warning",
    "all GPUs of a node, but few of its cores",
    why="Nobody else can use the other cores without a GPU: they stay idle, and data loaders that "
    "could use them are slow. A job that does not request all cores does not have the node to "
    "itself either.",
    source="docs.it4i.cz, resources-allocation-policy; the site's profile, cores_per_gpu",
)
def _idle(job: ScriptJob, site: Site) -> Iterator[Hit]:
    asked, gpus, queue = cores_of_node(job), gpus_of_node(job), queue_of(job, site)
    if queue is None or asked is None or gpus != site.node.gpus or site.cores_fixed:
        return
    if is_exclusive(job) or asked < 2 * gpus or _threads(job):
        return
    usable = len(site.node.usable_cores)
    if asked >= site.cores_per_gpu * gpus // 2 and not queue.partition.whole_when_full:
        return
    if asked >= min(usable, site.cores_per_gpu * gpus):
        return
    right, option = (
        f"--cpus-per-task={usable // job.tasks_per_node}",
        job.options.get("cpus-per-task"),
    )
    yield Hit(
        f"The job takes all {gpus} GPUs of each node and {asked} of its {usable} cores.",
        f"Write {right}.",
        _where(job),
        rewrite(option, right) if option else None,
        severity="note" if asked > usable // 4 or whole_nodes(job, site) else None,
    )


@rule(
    "omp-threads",
    "warning",
    "more threads than a rank has cores",
    why="The threads of a rank take turns on its cores, and slow down what runs on the CPU.",
    source="OpenMP, OMP_NUM_THREADS; LUMI user guide, lumig-job",
)
def _threads_of_rank(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for variable in job.settings("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        cores = job.rank.cores
        if not variable.value.isdecimal() or cores is None or _threads(job):
            continue
        if int(variable.value) > cores:
            yield Hit(
                f"{variable.name}={variable.value} gives each rank more threads than its "
                f"{some(cores, 'core')}.",
                f"Set it to {cores}, or to 1 where data loaders use the other cores.",
                variable.at,
            )


_WORKERS = re.compile(r"--?(?:(?:dataloader|data|loader|train)[-_])?(?:num[-_])?workers")


@rule(
    "workers-argument",
    "warning",
    "more loader workers than a rank has cores",
    why="The workers of a rank take turns on its cores; torch warns that `This DataLoader will "
    "create ... worker processes`, and the GPU waits for data.",
    source="torch.utils.data, the warning of DataLoader; LUMI-AI-Guide 05: 7 workers for 7 cores",
)
def _workers(job: ScriptJob, site: Site) -> Iterator[Hit]:
    cores = job.rank.cores
    if cores is None or _threads(job) or site.scheduler != "slurm":
        return
    for step in job.training:
        for name, value in step.named_arguments():
            text = value.known
            if _WORKERS.fullmatch(name) and text.isdecimal() and int(text) > cores:
                yield Hit(
                    f"Each rank starts {some(int(text), 'worker')} for its data, and has "
                    f"{some(cores, 'core')}.",
                    f"Ask for {some(max(1, cores - 1), 'worker')}, or for more cores.",
                    value.at,
                )
