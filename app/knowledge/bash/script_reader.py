"""Reader of a script into a neutral job."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from lumitui.app.knowledge.bash.command_line import of_srun
from lumitui.app.knowledge.bash.directives import BYTE_ORDER_MARK, read_directives
from lumitui.app.knowledge.bash.interpreter import Interpreter
from lumitui.app.knowledge.bash.origins import File, ParsedSource
from lumitui.app.knowledge.bash.parsed_text import Tree
from lumitui.app.knowledge.bash.resource_options import count_of, gpus_of, nodes_of, resources_of
from lumitui.app.knowledge.bash.scope import Scope
from lumitui.app.knowledge.bash.shell_state import Reading
from lumitui.app.knowledge.bash.syntax_mistakes import troubles_of
from lumitui.app.knowledge.script_job import (
    GPU_LISTS,
    MOST_DIGITS,
    NO_OPTIONS,
    CommandOptions,
    ContainerCall,
    JobStep,
    Rank,
    Resources,
    ScriptJob,
    Trouble,
    Variable,
)
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import Position

_COUNTS = {"torchrun": "nproc-per-node", "deepspeed": "num-gpus"}
_ASKED = ("$SLURM_NTASKS", "${SLURM_NTASKS}", "$SLURM_NPROCS")
_NODES = ("$SLURM_NNODES", "${SLURM_NNODES}", "$SLURM_JOB_NUM_NODES", "${SLURM_JOB_NUM_NODES}")
_PER_NODE = ("$SLURM_NTASKS_PER_NODE", "${SLURM_NTASKS_PER_NODE}")
_GPUS = ("$SLURM_GPUS_ON_NODE", "${SLURM_GPUS_ON_NODE}", "$SLURM_GPUS_PER_NODE",
         "${SLURM_GPUS_PER_NODE}", "gpu", "auto")  # fmt: skip


def rank_of(
    step: JobStep,
    request: Resources,
    options: CommandOptions,
    variables: Sequence[Variable],
    *,
    inherits: bool | None = None,
) -> Rank:
    """Return the resources of a rank of `step`; `options` are sbatch's.

    `variables`: those that the step may receive.
    `inherits`: whether srun takes `--cpus-per-task` from sbatch; None if unknown.
    """
    nodes = _nodes(step, request)
    tasks_per_node, tasks = _tasks(step, request, nodes)
    gpus = _gpus(step, request, options, nodes, tasks_per_node)
    starts = _started(step, gpus)
    if step.launcher in ("torchrun", "deepspeed", "accelerate"):
        per_node = None if starts is None or tasks_per_node is None else starts * tasks_per_node
        if step.launcher == "accelerate":
            per_node = starts // nodes if starts and nodes and starts % nodes == 0 else None
        world = None if per_node is None or nodes is None else per_node * nodes
    elif step.launcher == "mpirun":
        world = _number(step.launcher_options.value("np"), _ASKED, request.tasks) or request.tasks
        per_node = world // nodes if world and nodes and world % nodes == 0 else None
    else:
        per_node, world = tasks_per_node, tasks
    shares = {"plain": 1, "mpirun": 1, "accelerate": per_node}.get(step.launcher, starts)
    return Rank(
        per_node=per_node,
        world_size=world,
        gpus_per_node=gpus,
        cores=_cores(step, request, variables, shares, inherits),
        visible_gpus=_visible(step, request, options, variables),
    )


def _nodes(step: JobStep, request: Resources) -> int | None:
    if step.srun is None:
        several = step.launcher in ("mpirun", "accelerate", "deepspeed")
        return (request.nodes or 1) if several else 1
    own = step.srun.value("nodes")
    if own is None or own in _NODES:
        return request.nodes or 1
    return nodes_of(own)


def _tasks(step: JobStep, request: Resources, nodes: int | None) -> tuple[int | None, int | None]:
    """Return the tasks that Slurm starts per node and in total; one each if not requested."""
    srun = step.srun
    if srun is None:
        return 1, nodes
    total = _number(srun.value("ntasks"), _ASKED, request.tasks, nodes=request.nodes)
    each = _number(srun.value("ntasks-per-node"), _PER_NODE, request.tasks_per_node)
    if (srun.has("ntasks") and total is None) or (srun.has("ntasks-per-node") and each is None):
        return None, None
    if total is None and each is not None and nodes:
        total = each * nodes
    if total is None and srun.has("nodes") and nodes and request.nodes not in (None, nodes):
        each = request.tasks_per_node
        total = each * nodes if each else None
    elif total is None:
        total = request.tasks or nodes
    if total is None or nodes is None:
        return None, total
    return -(-total // nodes), total


def _number(
    text: str | None, names: tuple[str, ...], value: int | None, *, nodes: int | None = None
) -> int | None:
    if text is None:
        return None
    if text.isdecimal() and len(text) <= MOST_DIGITS:
        return int(text)
    if text in _NODES:
        return nodes
    return value if text in names else None


_GPU_REQUESTS = ("gpus", "gpus-per-node", "gpus-per-task", "gres", "tres-per-task")


def _gpus(
    step: JobStep, request: Resources, options: CommandOptions, nodes: int | None, each: int | None
) -> int | None:
    """Return the GPUs on each node that a step of `each` tasks there may use."""
    if step.srun is None:
        return request.gpus_per_node
    if step.srun.has(*_GPU_REQUESTS):
        return gpus_of(step.srun, nodes, each)[0]
    named = [name for name in _GPU_REQUESTS if options.has(name)]
    return gpus_of(options, nodes, each)[0] if named == ["gpus-per-task"] else request.gpus_per_node


def _started(step: JobStep, gpus: int | None) -> int | None:
    """Return the processes that a launcher starts in each task."""
    options = step.launcher_options
    if step.launcher == "accelerate":
        return options.number("num-processes")
    name = _COUNTS.get(step.launcher)
    if name is None:
        return 1
    if not options.has(name):
        return 1 if step.launcher == "torchrun" else gpus
    return _number(options.value(name), _GPUS, gpus)


def _cores(
    step: JobStep,
    request: Resources,
    variables: Sequence[Variable],
    shares: int | None,
    inherits: bool | None,
) -> int | None:
    """Return a rank's cores: those of its task, shared by all processes of its launcher."""
    if not shares:
        return None
    if step.srun is None:
        if step.launcher == "mpirun":
            return request.cpus_per_task
        tasks, cores = request.tasks_per_node or 1, request.cpus_per_task
        return None if cores is None else max(1, tasks * cores // shares)
    own = step.srun.value("cpus-per-task")
    if own is not None:
        cores = _number(
            own, ("$SLURM_CPUS_PER_TASK", "${SLURM_CPUS_PER_TASK}"), request.cpus_per_task
        )
    elif not inherits and not any(v.name == "SRUN_CPUS_PER_TASK" for v in variables):
        # srun of 22.05 to 23.02 does not inherit sbatch's `--cpus-per-task`; some sites changed
        # that. With masks, a task has their cores, whatever srun's options request.
        alone = inherits is False and not step.srun.has("cpu-bind")
        return 1 if alone and request.cpus_per_task else None
    else:
        cores = request.cpus_per_task
    return None if cores is None else max(1, cores // shares)


def _visible(
    step: JobStep, request: Resources, options: CommandOptions, variables: Sequence[Variable]
) -> Literal["one", "all", "none"] | None:
    srun = step.srun or NO_OPTIONS
    if step.srun is not None and step.launcher == "plain":
        if any(v.name in GPU_LISTS and "SLURM_LOCALID" in v.value for v in variables):
            return "one"
        bind = srun.value("gpu-bind") or options.value("gpu-bind") or ""
        if bind.startswith(("single:1", "per_task:1", "map_gpu", "closest", "mask_gpu")):
            return "one" if not bind.startswith(("closest", "mask_gpu")) else None
        each = srun.value("gpus-per-task") or options.value("gpus-per-task")
        if each is not None and bind != "none":
            return "one" if (count_of(each) or ("", 0))[1] == 1 else None
    if any(v.name in GPU_LISTS for v in variables):
        return None
    count, _, total = gpus_of(srun, request.nodes, request.tasks_per_node)
    if count or total or request.gpus_per_node or request.gpus_total:
        return "all"
    return None


_LARGEST = 262_144
"""Maximum length of a script in characters; Slurm accepts 4 MiB (`max_script_size`)."""
_PREPARES = ("download", "prepare", "preprocess", "prefetch", "setup", "convert", "tokenize",
             "tokenise", "make_", "build_", "check_", "merge_", "plot", "collect_",
             "fetch", "preflight", "probe")  # fmt: skip


def read_script(
    text: str, *, site: Site, files: Mapping[str, str] | None = None, folder: str | None = None
) -> ScriptJob:
    """Return the job that a script describes at `site`; never raises, whatever the text.

    `files` maps the paths that the job uses to their texts; `folder` is the submit folder.
    """
    clean = (
        text.removeprefix(BYTE_ORDER_MARK)
        .replace("\r\n", "\n")
        .replace("\r", " ")
        .replace("\0", " ")
    )
    directives = read_directives(clean)
    reading = Reading(files or {})
    reading.troubles += [*_of_bytes(text), *directives.troubles]
    if not _is_odd(clean):
        tree = Tree(ParsedSource.of(File(clean)))
        reading.troubles += troubles_of(tree)
        Interpreter(reading, tree, Scope()).walk()
    else:
        message = "The script is too long; lumitui reads only its #SBATCH lines."
        reading.troubles.append(Trouble("not-understood", message, File(clean).position(0, 1)))
    resources = resources_of(directives.options, site)
    variables = tuple(reading.variables)
    steps = tuple(_in_container(_with_roles(reading.steps), of_srun(directives.options)))
    name = directives.options.value("job-name") or ""
    written = {name: source.text for name, source in reading.written.items()}
    return ScriptJob(
        origin="script",
        name=name,
        text=text,
        options=directives.options,
        resources=resources,
        variables=variables,
        commands=tuple(reading.commands),
        steps=tuple(_with_ranks(steps, resources, directives.options, variables, site)),
        modules=tuple(reading.modules),
        shebang=directives.shebang,
        troubles=tuple(dict.fromkeys(reading.troubles)),
        files=MappingProxyType({**(files or {}), **written}),
        written=MappingProxyType({name: _lines(each) for name, each in reading.written.items()}),
        folder=folder,
    )


def _lines(source: ParsedSource) -> tuple[Position, ...]:
    """Return the position of each line of a file that the script writes."""
    positions, start = [], 0
    for line in source.text.split("\n"):
        positions.append(source.position(start, start + max(1, len(line))))
        start += len(line) + 1
    return tuple(positions)


def _is_odd(text: str) -> bool:
    """Return whether parsing could take long: nobody writes that many operators in a row."""
    signs = sum(text.count(sign) for sign in "|<>(=")
    return len(text) > _LARGEST or (len(text) > 8_192 and signs * 6 > len(text))


def _of_bytes(text: str) -> Iterator[Trouble]:
    """Yield the mistakes in the bytes of a text, such as its encoding and line endings."""
    if text.startswith(BYTE_ORDER_MARK):
        message = "A byte order mark precedes the first line, so sbatch finds no `#!` and "
        message += "refuses the job."
        yield Trouble("bad-shebang", message, File(text).position(0, 1), "byte order mark")
    if "\r" in text and "\n" not in text:
        message = "The script has only CR line endings, so sbatch and bash see a single line."
        yield Trouble("windows-line-ends", message, File(text).position(0, 1))
    for what, sign, message in (
        (
            "windows-line-ends",
            "\r\n",
            "The script has Windows line endings (CR LF): sbatch refuses the job.",
        ),
        (
            "not-text",
            "\0",
            "The script is not UTF-8 (it has NUL characters): sbatch refuses the job.",
        ),
    ):
        place = text.find(sign)
        if place >= 0:
            yield Trouble(what, message, File(text).position(place, place + 1))


def _with_roles(steps: Sequence[JobStep]) -> Iterator[JobStep]:
    """Yield the steps; a single process beside a launched training counts as preparation."""
    launched = any(step.trains and (step.srun or step.launcher != "plain") for step in steps)
    for step in steps:
        program = step.program.known.rsplit("/", 1)[-1].lower() if step.program else ""
        alone = step.srun is None and step.launcher == "plain"
        prepares = program.startswith(_PREPARES) and step.launcher == "plain" and len(steps) > 1
        yield replace(step, trains=False) if (alone and launched) or prepares else step


def _with_ranks(
    steps: Sequence[JobStep],
    request: Resources,
    options: CommandOptions,
    variables: Sequence[Variable],
    site: Site,
) -> Iterator[JobStep]:
    """Yield the steps, each with its own ranks."""
    for number, step in enumerate(steps):
        own = [one for one in variables if one.step in (None, number)]
        rank = rank_of(step, request, options, own, inherits=site.srun_has_cpus)
        yield replace(step, rank=rank)


def _in_container(steps: Iterable[JobStep], container: ContainerCall | None) -> Iterator[JobStep]:
    """Yield the steps; those without a container use the one that sbatch enters by a plugin."""
    for step in steps:
        own = container is None or step.container is not None
        yield step if own else replace(step, container=container)
