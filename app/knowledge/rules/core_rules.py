"""Rules about cores: per node, per rank, and in lists of masks."""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from lumitui.app.knowledge.masks import Bind, MaskMistake, Starter, mistakes, read_bind
from lumitui.app.knowledge.program.step_program import one_gpu_of
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.app.knowledge.rules.phrases import INHERIT, removal, rewrite, some
from lumitui.app.knowledge.script_job import NO_OPTIONS, JobStep, Option, ScriptJob, Variable
from lumitui.app.knowledge.site_facts.allocation import (
    cores_of_node,
    generation_of,
    gpu_option,
    gpus_of_node,
    is_exclusive,
    on_other_nodes,
    queue_of,
    threads_of_core,
    whole_nodes,
)
from lumitui.app.knowledge.site_facts.process_counts import (
    PER_NODE_LAUNCHERS,
    steps_with,
    tasks_per_node_of,
)
from lumitui.remote.site.core_sets import mask
from lumitui.remote.site.finding import Cure, Fix, Severity
from lumitui.remote.site.node import NodeShape
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE, Position


def _where(job: ScriptJob) -> Position:
    """Return the position of the option that sets the cores, otherwise the GPUs or tasks."""
    option = job.options.get("cpus-per-task") or gpu_option(job) or job.options.get("ntasks")
    return option.at if option else NOWHERE


def _cpu(job: ScriptJob) -> str:
    """Return the word for what Slurm counts as a CPU of the job."""
    return "hardware thread" if threads_of_core(job) > 1 else "core"


@rule(
    "cores",
    "error",
    "more cores on a node than a job may use",
    why="Slurm refuses the job or leaves it waiting forever: `Requested node configuration is "
    "not available`.",
    source="the site's profile, node.cores and node.reserved_cores",
)
def _cores(job: ScriptJob, site: Site) -> Iterator[Hit]:
    asked, threads, option = cores_of_node(job, site), threads_of_core(job), job.options.get
    cores, usable = site.node.cores * threads, len(site.node.usable_cores) * threads
    if asked is None or asked <= usable or site.scheduler != "slurm":
        return
    if (gpus_of_node(job) or 0) > site.node.gpus:  # another rule reports it
        return
    if on_other_nodes(job, site):
        return
    tasks, given = job.tasks_per_node, option("cpus-per-task")
    keeps = f" (the system reserves {cores - usable} of {cores})" if cores > usable else ""
    right = f"--cpus-per-task={max(1, usable // tasks)}"
    words = f"The job requests {asked} {_cpu(job)}s on each node, but may use only {usable}{keeps}."
    gpus = site.node.gpus
    if gpus and asked == site.cores_per_gpu * gpus:  # set by the profile
        share = f"Write at most {usable // gpus}, a GPU's share of the node's cores."
        yield Hit(
            f"{words} `cores_per_gpu` of {site.name}'s profile is too large.", share, _where(job)
        )
        return
    yield Hit(
        words,
        f"Write {right}." if given else f"Request at most {usable} tasks per node.",
        _where(job),
        rewrite(given, right) if given else None,
        cure=Cure("cpus-per-task", right.partition("=")[2]) if given else None,
    )


@rule(
    "fixed-cores",
    "error",
    "a number of cores that does not match the GPUs",
    why="The site refuses a job with too few cores. With too many, the job is refused or "
    "waits forever.",
    source="the site's profile, cores_fixed and cores_per_gpu",
)
def _fixed(job: ScriptJob, site: Site) -> Iterator[Hit]:
    asked, gpus, option = (
        cores_of_node(job, site),
        gpus_of_node(job),
        job.options.get("cpus-per-task"),
    )
    if not site.cores_fixed or asked is None or not gpus or threads_of_core(job) > 1:
        return
    if gpus > site.node.gpus:  # no node has so many; another rule reports it
        return
    right, tasks = site.cores_per_gpu * gpus, job.tasks_per_node
    if is_exclusive(job) or asked == right or asked > len(site.node.usable_cores):
        return
    each = f"--cpus-per-task={right // tasks}"
    fewer = asked < right
    yield Hit(
        f"The job requests {some(asked, 'core')} per node, but {site.name} allocates {right} for "
        f"{some(gpus, 'GPU')} ({site.cores_per_gpu} per GPU).",
        f"Write {each}." if right % tasks == 0 else f"Request {right} cores per node.",
        _where(job),
        rewrite(option, each) if option and right % tasks == 0 else None,
        severity=None if fewer else "warning",
        cure=Cure("cpus-per-task", str(right // tasks)) if option else None,
    )


@rule(
    "few-cores",
    "warning",
    "only one core for each rank",
    why="The rank, its data loaders and the network threads share one core, and the GPU "
    "waits for data.",
    source="sbatch(1) --cpus-per-task; the site's profile, cores_per_gpu",
)
def _few(job: ScriptJob, site: Site) -> Iterator[Hit]:
    cores, gpus, queue = cores_of_node(job, site), gpus_of_node(job), queue_of(job, site)
    if queue is None or cores is None or not gpus or site.cores_fixed or is_exclusive(job):
        return
    given = job.options.has("cpus-per-gpu", "mincpus") or cores >= 2 * gpus or _binds(job)
    if given:
        return
    srun = [step.srun for step in job.training if step.srun is not None]
    own = any(options.has("cpus-per-task") for options in srun)
    if own or (queue.partition.allocation == "node" and not srun):
        return
    right = f"--cpus-per-task={site.cores_per_gpu * gpus // job.tasks_per_node or 1}"
    option = job.options.get("cpus-per-task")
    not_inherited = srun and site.srun_has_cpus is False and not job.variable("SRUN_CPUS_PER_TASK")
    yield Hit(
        f"The ranks of a node get {some(cores, 'core')} for {some(gpus, 'GPU')}; the share of one "
        f"GPU is {site.cores_per_gpu}.",
        f"Write #SBATCH {right}{' and, before srun, ' + INHERIT if not_inherited else ''}.",
        _where(job),
        rewrite(option, right) if option else None,
    )


def _binds(job: ScriptJob) -> bool:
    return any(step.srun is not None and step.srun.has("cpu-bind") for step in job.steps)


@rule(
    "idle-cores",
    "warning",
    "all GPUs of a node, but few of its cores",
    why="Your data loaders are slow, and no other job can use the remaining cores.",
    source="the site's profile, cores_per_gpu; docs.it4i.cz, resources-allocation-policy",
)
def _idle(job: ScriptJob, site: Site) -> Iterator[Hit]:
    asked, gpus, queue = cores_of_node(job, site), gpus_of_node(job), queue_of(job, site)
    if queue is None or asked is None or gpus != site.node.gpus or site.cores_fixed:
        return
    lone = gpus > 1 and any(one_gpu_of(job, step) != "no" for step in job.training)
    threads = threads_of_core(job)
    # More cores would not use more of a lone GPU.
    if is_exclusive(job) or threads > site.node.threads_per_core or lone:
        return
    usable, right = len(site.node.usable_cores), site.cores_per_gpu * gpus
    least = min(usable, right) if queue.partition.whole_when_full else right // 2
    told = f"--cpus-per-task={usable * threads // job.tasks_per_node}"
    every = f"all {gpus} GPUs" if gpus > 1 else "the GPU"
    places = [(asked // threads, job.options.get("cpus-per-task"), _where(job), "The job takes")]
    for step in job.training if len(job.training) == 1 else ():
        own = step.srun.get("cpus-per-task") if step.srun else None
        if own and step.srun and tasks_per_node_of(job, step) == job.tasks_per_node:
            cores = (step.srun.number("cpus-per-task") or usable) * job.tasks_per_node
            places.append((cores // threads, own, own.at, "The ranks have"))
    for cores, option, at, words in places:
        if 2 * gpus <= cores < least:
            yield Hit(
                f"{words} {every} of each node, but only {cores} of its {usable} cores.",
                f"Write {told}.",
                at,
                rewrite(option, told) if option else None,
                severity="note" if cores > usable // 4 or whole_nodes(job, site) else None,
            )


@rule(
    "omp-threads",
    "warning",
    "more threads than a rank has cores",
    why="The threads take turns on the cores, which slows down all work on the CPU.",
    source="OpenMP, OMP_NUM_THREADS; LUMI user guide, lumig-job",
)
def _threads_of_rank(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for variable in job.settings("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        known = [step.rank.cores for step in steps_with(job, variable) if step.rank.cores]
        cores = min(known, default=None)
        if not variable.value.isdecimal() or cores is None:
            continue
        if int(variable.value) > cores:
            yield Hit(
                f"{variable.name}={variable.value} gives each rank more threads than its "
                f"{some(cores, _cpu(job))}.",
                f"Set it to {cores}, or to 1 if data loaders use the other cores.",
                variable.at,
            )


_WORKERS = re.compile(r"--?(?:(?:dataloader|data|loader|train)[-_])?(?:num[-_])?workers")


@rule(
    "workers-argument",
    "warning",
    "more data-loader workers than a rank has cores",
    why="torch warns that `This DataLoader will create ... worker processes`, and the GPU waits "
    "for data.",
    source="torch.utils.data, the warning of DataLoader; LUMI-AI-Guide 05: 7 workers for 7 cores",
)
def _workers(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for step in job.training if site.scheduler == "slurm" else ():
        cores = step.rank.cores
        if cores is None:
            continue
        for name, value in step.named_arguments():
            text = value.known
            if _WORKERS.fullmatch(name) and text.isdecimal() and int(text) > cores:
                yield Hit(
                    f"Each rank starts {some(int(text), 'data-loader worker')}, but has "
                    f"{some(cores, _cpu(job))}.",
                    f"Use {some(max(1, cores - 1), 'worker')}, or request more cores.",
                    value.at,
                )


_NUMA = "numa-binding"
"""torchrun's option that binds its workers to the cores near their GPUs."""
_SOURCE = "srun(1) --cpu-bind; the site's profile, node.gpu_cores"


def _mask_binds(job: ScriptJob, name: str = "cpu-bind") -> Iterator[tuple[JobStep, Option, Bind]]:
    """Yield each readable list of masks, cores or GPUs in srun's options."""
    for step in job.steps:
        option = step.srun.get(name) if step.srun else None
        bind = read_bind(option.value or "") if option else None
        if option is not None and bind is not None:
            yield step, option, bind


_Places = tuple[Position, ...]
"""The position of a list, and of the options that use the variable with it."""


def _judged(job: ScriptJob, site: Site) -> Iterator[tuple[MaskMistake, _Places, Fix | None]]:
    """Yield each mistake with the places of its list, and the list's mechanical fix."""
    if on_other_nodes(job, site):
        return
    for name in ("cpu-bind", "gpu-bind"):
        users: dict[Variable | None, list[Position]] = {}
        for _, option, _ in _mask_binds(job, name):
            users.setdefault(_holder(job, option), []).append(option.at)
        for step, option, bind in _mask_binds(job, name):
            tasks = tasks_per_node_of(job, step) or job.tasks_per_node
            workers = step.launcher in PER_NODE_LAUNCHERS
            if workers and tasks > 1:
                continue
            starter: Starter = "torchrun" if workers else "srun"
            asked = (step.srun or NO_OPTIONS).number("cpus-per-task") or job.resources.cpus_per_task
            chosen = step.srun.value("gpu-bind") if step.srun else None
            gpus = read_bind(chosen or "")
            found = mistakes(bind, site.node, tasks=tasks, starter=starter, cores=asked, gpus=gpus)
            ordered = tasks == gpus_of_node(job) and all(one.id != "mask-empty" for one in found)
            ordered = ordered and bool(gpus or not chosen) and not _orders_gpus(job)
            variable = _holder(job, option)
            known = ordered and not workers and not chosen and tasks == site.node.gpus
            fix = _relisted(job, option, variable, bind, site.node) if known else None
            for mistake in found:
                if ordered or mistake.id != "mask-order":
                    places: _Places = (option.at,)
                    if variable and mistake.id != "mask-torchrun":
                        first = min(mistake.tasks, default=0)
                        places = (_adds(job, variable, first).at, *users[variable])
                    at = _of_tasks(job, places[0], len(bind.entries), mistake.tasks)
                    yield mistake, (at, *places[1:]), fix


_ENTRY = re.compile(r"[^\s,\"'=:]+(?=,)|(?<=,)[^\s,\"'=:]+")


def _of_tasks(job: ScriptJob, at: Position, count: int, tasks: Collection[int]) -> Position:
    """Return the place of the entries of consecutive tasks in a list of `count` entries.

    If they are not consecutive, or the list is not written in one piece, it is the whole place.
    """
    if at.file or at.field or at.line != at.end_line or not tasks:
        return at
    text = job.text.split("\n")[at.line - 1][: at.end_column - 1]
    entries = [*_ENTRY.finditer(text, at.column - 1)]
    first, last = min(tasks), max(tasks)
    if len(entries) != count or last >= count or last - first >= len(tasks):
        return at
    return replace(at, column=entries[first].start() + 1, end_column=entries[last].end() + 1)


_OWN_ORDER = re.compile(
    r"_VISIBLE_DEVICES=[\"']?"
    r"(?!\\?\$\{?(?:SLURM_LOCALID|LOCAL_RANK|\w+_VISIBLE_DEVICES)\b|0,1\b)(?:\\?\$|\d+,)"
)


def _orders_gpus(job: ScriptJob) -> bool:
    """Return whether a script gives its ranks the GPUs in an order of its own."""
    return any(map(_OWN_ORDER.search, (job.text, *job.files.values())))


def _holder(job: ScriptJob, option: Option) -> Variable | None:
    """Return the variable whose assignment in the script contains an option's list."""
    names, value = re.findall(r"\$\{?(\w+)", option.raw), option.value or ""
    return next(
        (
            one
            for one in reversed(job.variables)
            if one.name in names
            and one.at.line
            and not (one.at.file or one.at.field)
            and "," in one.value
            and one.value in value
        ),
        None,
    )


def _adds(job: ScriptJob, variable: Variable, entry: int) -> Variable:
    """Return the assignment that adds an entry to a list which the script extends line by line."""
    parts = (
        one
        for one in job.variables
        if one.name == variable.name and variable.value.startswith(one.value)
    )
    return next((one for one in parts if one.value.count(",") >= entry), variable)


def _relisted(
    job: ScriptJob, option: Option, variable: Variable | None, bind: Bind, node: NodeShape
) -> Fix | None:
    """Return the fix of a list with the node's own masks in another order, or with reserved cores.

    A script that chooses the GPU of each rank itself may need another order.
    """
    masks = [one.numbers - set(range(node.cores)) | one.numbers & node.usable_cores
             for one in bind.entries]  # fmt: skip
    if bind.kind != "mask_cpu" or not {*masks} == {*node.cores_of_gpu} != set():
        return None
    if len(masks) != node.gpus or (masks != [*node.cores_of_gpu] and "VISIBLE_DEVICES" in job.text):
        return None
    old = ",".join(one.written for one in bind.entries)
    new = ",".join(mask(cores, node.cores) for cores in node.cores_of_gpu)
    if old == new:
        return None
    holders = [one.at for one in (variable,) if one] + [
        one.at for one in reversed(job.variables) if old in one.value and one.at < option.at
    ]
    found = (_written(job, old, at) for at in (option.at, *holders))
    return next((Fix("write the node's own masks", at, new) for at in found if at), None)


def _written(job: ScriptJob, text: str, at: Position) -> Position | None:
    """Return where `text` is written between the ends of `at`; None if it is not there as such."""
    if not at.line or at.file or at.field:
        return None
    lines = job.text.split("\n")[: at.end_line or at.line]
    for number in range(at.line, len(lines) + 1):
        column = lines[number - 1].find(text, at.column - 1 if number == at.line else 0)
        if column >= 0:
            return Position(number, column + 1, number, column + 1 + len(text))
    return None


def _mistake(name: str, severity: Severity, title: str, why: str, source: str = _SOURCE) -> Rule:
    """Return the rule about one kind of mistake in lists."""

    def check(job: ScriptJob, site: Site) -> Iterator[Hit]:
        for mistake, (at, *also), fix in _judged(job, site):
            if mistake.id == name:
                do = mistake.do.replace("bind SITE", f"bind {site.name}")
                fix = fix if name in ("mask-order", "mask-reserved") else None
                severity = mistake.severity
                yield Hit(mistake.message, do, at, fix, severity=severity, also=tuple(also))

    return Rule(name, severity, title, why, source, check=check)


@rule(
    "mask-shared",
    "error",
    "masks on shared nodes",
    why="srun refuses the step if the masks contain cores that the job does not have: `CPU "
    "binding outside of job step allocation`.",
    source="LUMI user guide, distribution-binding; lumi-apptainer-bench, GATES_20260807_RESULTS",
)
def _shared(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if whole_nodes(job, site) is not False:
        return
    for _, option, bind in _mask_binds(job):
        if not bind.of_gpus:
            whole = [name for name, one in site.partitions.items() if one.allocation == "node"]
            memory = f" and --mem={site.memory_per_node}" if site.memory_per_node else ""
            yield Hit(
                "Masks contain fixed core numbers, but on shared nodes Slurm gives the job "
                "arbitrary cores.",
                "Omit --cpu-bind, or use whole nodes: "
                f"{whole[0] + ', or ' if whole else ''}--exclusive{memory}.",
                option.at,
                removal(job, option),
            )


@rule(
    "numa-binding-shared",
    "warning",
    "torchrun's --numa-binding with only some of a node's cores",
    why="If a rank gets no core near its GPU, torchrun fails with `Must bind to a non-empty "
    "set of CPU indices`.",
    source="pytorch, torch/numa/binding.py; LUMI user guide, distribution-binding",
)
def _numa_shared(job: ScriptJob, site: Site) -> Iterator[Hit]:
    usable, domains, whole = len(site.node.usable_cores), len(set(site.node.gpu_numa)), None
    if domains > 1:
        whole = whole_nodes(job, site)
    for step in job.steps if whole is not None else ():
        option = step.launcher_options.get(_NUMA) if step.launcher == "torchrun" else None
        cores = _cores_of_task(job, step, site)
        if option is None:
            continue
        if not whole and (cores_of_node(job, site) or 0) < usable:
            yield Hit(
                "--numa-binding needs cores near each GPU, but on shared nodes Slurm gives the "
                "job arbitrary cores.",
                "Omit --numa-binding, or use whole nodes.",
                option.at,
            )
        elif whole and cores and cores <= usable - usable // domains and threads_of_core(job) == 1:
            yield Hit(
                f"--numa-binding needs cores near each GPU, but srun gives torchrun {cores} of the "
                f"node's {usable} cores, so one of its {domains} NUMA domains may have no core.",
                f"Write --cpus-per-task={usable}.",
                option.at,
            )


def _cores_of_task(job: ScriptJob, step: JobStep, site: Site) -> int | None:
    """Return the cores of the only task that srun starts on each node; None if not sure."""
    if step.srun is None or step.srun.has("cpu-bind") or "node.gpu_numa" in site.unverified:
        return None
    if tasks_per_node_of(job, step) != 1:
        return None
    if step.srun.has("cpus-per-task"):
        return step.srun.number("cpus-per-task")
    passed = job.variable("SRUN_CPUS_PER_TASK") or site.srun_has_cpus
    return job.resources.cpus_per_task if passed else None


mask_unreadable = _mistake(
    "mask-unreadable",
    "error",
    "a mask that is not a hexadecimal number",
    "srun refuses the step: `Failed to validate number`.",
    "srun(1) --cpu-bind; tried with srun of Slurm 24.11",
)
mask_empty = _mistake("mask-empty", "error", "a mask without a core", "srun refuses the step.")
mask_outside = _mistake(
    "mask-outside",
    "error",
    "a mask for a different kind of node",
    "srun refuses the step: the cores do not exist on these nodes.",
)
mask_reserved = _mistake(
    "mask-reserved",
    "error",
    "a mask with cores that the system reserves",
    "srun refuses the step: `CPU binding outside of job step allocation`.",
    "LUMI-training-materials User-Updates/Update-202308, lumig-lownoise",
)
mask_count = _mistake(
    "mask-count",
    "warning",
    "more or fewer masks than tasks on a node",
    "Slurm starts again at the first mask, so tasks share cores.",
    "srun(1) --cpu-bind; LUMI user guide, distribution-binding",
)
mask_overlap = _mistake(
    "mask-overlap",
    "warning",
    "masks that share cores",
    "Two ranks take turns on the same cores, and all others wait for them.",
)
mask_few = _mistake(
    "mask-few",
    "warning",
    "masks with fewer cores than the job requests for each task",
    "The threads of a rank take turns on its few cores, and the other requested cores stay idle.",
    "srun(1) --cpu-bind, map_cpu: one core for each task",
)
mask_order = _mistake(
    "mask-order",
    "warning",
    "masks in a different order than the GPUs",
    "The cores of rank i are near another GPU: each copy between memory and GPU crosses the node. "
    "The finding is only a note if that GPU is in the same NUMA domain.",
    "LUMI user guide, lumig-job and distribution-binding",
)
mask_torchrun = _mistake(
    "mask-torchrun",
    "error",
    "masks for ranks started by torchrun",
    "srun binds each torchrun to the first mask: all its workers share those cores.",
    "derived from srun(1) --cpu-bind; pytorch, torch/numa/binding.py",
)
gpu_outside = _mistake(
    "gpu-outside",
    "error",
    "a GPU that the node does not have",
    "srun refuses the step.",
    "srun(1) --gpu-bind; the site's profile, node.gpus",
)
gpu_overlap = _mistake(
    "gpu-overlap",
    "warning",
    "one GPU for several tasks",
    "The ranks share its memory and time, and NCCL refuses this: `Duplicate GPU detected`.",
    "srun(1) --gpu-bind; NVIDIA/nccl, src/init.cc",
)


_BINDS_ITSELF = re.compile(r"cpu_affinity|sched_setaffinity|numa_bind|\bpsutil\b.*affinity")
_BINDERS = ("numactl", "taskset", "hwloc-bind")


def _bound_otherwise(job: ScriptJob, step: JobStep) -> bool:
    """Return whether the program, a wrapper or another option binds the ranks."""
    number = job.steps.index(step)
    wrapped = any(
        command.program.rpartition("/")[2] in _BINDERS and command.step in (None, number)
        for command in job.commands
    )
    own = any(_BINDS_ITSELF.search(text) for text in job.files.values())
    named = job.variable("ACCELERATE_CPU_AFFINITY") or job.variable("SLURM_CPU_BIND")
    options = step.srun
    closest = options is not None and options.has("gpu-bind", "distribution", "mem-bind")
    return wrapped or own or named is not None or closest or job.options.has("gpu-bind")


@rule(
    "no-binding",
    "warning",
    "ranks on whole nodes without binding to the cores near their GPUs",
    why="Slurm gives rank i the i-th block of cores of the node, which is near another GPU. The "
    "ranks of one torchrun share all cores.",
    source="LUMI-AI-Guide, 05-multi-gpu-and-node, and its pull request 100; LUMI user guide, "
    "distribution-binding",
)
def _unbound(job: ScriptJob, site: Site) -> Iterator[Hit]:
    gpus = gpus_of_node(job)
    if gpus != site.node.gpus or whole_nodes(job, site) is not True:
        return
    cores = [core for own in site.node.cores_of_gpu for core in sorted(own)]
    if not site.node.gpu_cores or cores == sorted(cores):
        return  # cores and GPUs have the same order: GPU i is nearest to the i-th block
    for step in job.training:
        option = step.srun.get("cpu-bind") if step.srun else None
        value = (option.value or "") if option else ""
        if (option and "none" not in value) or _bound_otherwise(job, step):
            continue
        if step.launcher == "torchrun" and step.rank.per_node == gpus and job.origin == "script":
            image = step.container.image if step.container else None
            generation = generation_of(image.known, site) if image else None
            binds = generation is not None and generation[1].torchrun_binding == "numa"
            if binds and not step.launcher_options.has(_NUMA, "no-python"):
                yield Hit(
                    f"torchrun binds none of its {gpus} ranks, so they share all cores of a node.",
                    "Pass --numa-binding=exclusive to torchrun.",
                    step.at,
                    severity="note",
                )
        if step.srun is None or step.launcher not in ("srun", "plain"):
            continue
        own = step.srun.has("ntasks", "ntasks-per-node")
        if (tasks_per_node_of(job, step) if own else job.resources.tasks_per_node) != gpus:
            continue
        yield Hit(
            (
                "--cpu-bind=none lets each rank run on any core, not only"
                if option
                else "Rank i gets the i-th block of cores of the node, not"
            )
            + f" those near its GPU (near GPU 0: {site.node.gpu_cores[0]}).",
            f"Pass --cpu-bind=mask_cpu: to srun, with the masks that `lumitui bind {site.name}` "
            "prints.",
            option.at if option else step.at,
            severity="note" if "node.gpu_cores" in site.unverified else None,
        )
