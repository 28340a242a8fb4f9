"""The adviser's rules about what a launch asks Slurm for: time, nodes, cores, memory, signals."""

import re
from collections.abc import Iterator

from lumitui.app.compose.finding import Finding, Fix, Rule
from lumitui.app.compose.layout import needed_cores
from lumitui.app.compose.placement import Placement
from lumitui.app.compose.price import memory_gib
from lumitui.app.job.launch import Launch
from lumitui.remote import walltime


def _limits(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec, partition = launch.spec, place.partition
    if walltime.seconds_of(spec.time) > walltime.seconds_of(partition.max_time):
        yield Finding(
            "time-limit",
            "error",
            f"{spec.time} is more than {spec.partition} allows ({partition.max_time}).",
            "Ask for less, and continue from the checkpoint: `chain: 2` does it by itself.",
            "the site's profile, partitions",
            field="time",
            fix=Fix(f"ask for {partition.max_time}", "time", partition.max_time),
        )
    elif partition.doubtful_time and walltime.seconds_of(spec.time) > walltime.seconds_of(
        partition.doubtful_time
    ):
        yield Finding(
            "doubtful-time",
            "warning",
            f"{spec.partition} may end jobs at {partition.doubtful_time}: its documents differ.",
            f"Ask for {partition.doubtful_time}, or see `lumitui doctor {place.site.name}`.",
            "the site's profile, partitions",
            field="time",
            fix=Fix(f"ask for {partition.doubtful_time}", "time", partition.doubtful_time),
        )
    if spec.nodes > partition.max_nodes:
        other = f" or use {partition.grows_to}" if partition.grows_to else ""
        yield Finding(
            "nodes",
            "error",
            f"{spec.nodes} nodes are more than {spec.partition} has ({partition.max_nodes}).",
            f"Ask for fewer{other}.",
            "the site's profile, partitions",
            field="nodes",
            fix=_room(spec.nodes, place),
        )
    most = partition.max_gpus_per_node
    if most is not None and launch.layout.gpus_per_node > most:
        yield Finding(
            "gpus",
            "error",
            f"{launch.layout.device.some(launch.layout.gpus_per_node)} per node are more than "
            f"{spec.partition} gives.",
            f"Ask for {most}.",
            "the site's profile, partitions",
            field="gpus_per_node",
            fix=Fix(f"ask for {most}", "gpus_per_node", str(most)),
        )


def _room(nodes: int, place: Placement) -> Fix:
    """Return what ends a wish for more nodes than the partition has."""
    name, seen = place.partition.grows_to, set[str]()
    while name is not None and name not in seen:
        if nodes <= place.site.partitions[name].max_nodes:
            return Fix(f"use {name}", "partition", name)
        seen.add(name)
        name = place.site.partitions[name].grows_to
    most = place.partition.max_nodes
    return Fix(f"ask for {most}", "nodes", str(most))


def _cores(launch: Launch, place: Placement) -> Iterator[Finding]:
    layout, usable = launch.layout, len(place.site.node.usable_cores)
    asked = layout.tasks_per_node * layout.cpus_per_task
    if asked > usable and place.site.scheduler == "slurm":
        yield Finding(
            "cores",
            "error",
            f"{asked} cores per node are more than the {usable} that a job may use.",
            f"Leave out `cpus_per_task`: {place.site.cores_per_gpu} per GPU fit.",
            "lumi-userguide, lumig-job.md: 'jobs requesting 64 cores/node will never run'",
            field="cpus_per_task",
            fix=Fix("leave it to the site", "cpus_per_task", None),
        )


def _too_few_cores(launch: Launch, place: Placement) -> Iterator[Finding]:
    layout = launch.layout
    needed = needed_cores(place, layout.ranks_per_node)
    if place.launcher.tasks != "node" or layout.cpus_per_task >= needed:
        return
    if place.site.scheduler == "slurm":
        bound = place.torchrun_binding != "none"
        yield Finding(
            "few-cores",
            "error" if bound else "warning",
            f"The ranks of a node share {layout.cpus_per_task} cores"
            + (": its first ones, not those near their GPUs." if bound else "."),
            f"Leave out `cpus_per_task`: the job then asks for {needed}.",
            "pytorch, torch/numa/binding.py; sched_setaffinity(2)",
            field="cpus_per_task",
            fix=Fix("leave it to the site", "cpus_per_task", None),
        )


def _memory(launch: Launch, place: Placement) -> Iterator[Finding]:
    asked, most = memory_gib(place, launch.layout), place.site.node.memory_gib
    if asked > most and place.site.scheduler == "slurm":
        yield Finding(
            "memory",
            "error",
            f"{asked:g} GiB per node are more than the {most} that a job may use.",
            "Ask for less, or leave out `memory:`.",
            "the site's profile, node.memory_gib",
            field="memory",
            fix=Fix("leave it to the site", "memory", None),
        )


def _part_of_a_node(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec, layout, partition = launch.spec, launch.layout, place.partition
    partial = layout.gpus_per_node < place.site.node.gpus and not layout.on_cpu
    if partition.allocation == "node" and partial:
        yield Finding(
            "idle-gpus",
            "warning",
            f"{spec.partition} gives and bills whole nodes: "
            f"{place.site.node.gpus - layout.gpus_per_node} GPUs per node stay idle.",
            f"Use all {place.site.node.gpus}, or a shared partition.",
            "lumi-userguide, billing.md",
            field="gpus_per_node",
            fix=Fix(f"use all {place.site.node.gpus}", "gpus_per_node", str(place.site.node.gpus)),
        )
    if partition.allocation == "shared" and spec.nodes > 1 and partial:
        yield Finding(
            "scattered",
            "warning",
            f"The job uses {layout.gpus_per_node} of {place.site.node.gpus} GPUs on each of "
            f"{spec.nodes} nodes.",
            "Fill whole nodes before adding nodes: traffic inside a node is faster.",
            "csc-user-guide, ml-multi.md",
            field="gpus_per_node",
            fix=Fix(f"use all {place.site.node.gpus}", "gpus_per_node", str(place.site.node.gpus)),
        )


def _options(launch: Launch, place: Placement) -> Iterator[Finding]:
    per_gpu = re.compile(
        r"^--(?:cpus-per-gpu|gpus-per-task|n?tasks-per-gpu|gpu-bind)(?:=(?!none)|$)"
    )
    ours = re.compile(
        r"^--(?:job-name|comment|output|error|chdir|open-mode|nodes|partition|account|time|wrap|"
        r"array|ntasks|ntasks-per-node|cpus-per-task|parsable|signal|exclusive|gres|"
        r"mem|mem-per-cpu|mem-per-gpu|gpus|gpus-per-node|gpus-per-socket)(?:=|$|\s)|"
        r"^-[JNpAtnconeDaG]"
    )
    for option in launch.spec.sbatch:
        if per_gpu.match(option):
            yield Finding(
                "gpu-cgroup",
                "error",
                f"{option} hides the other GPUs from each rank.",
                "Remove it: ranks choose their GPU by LOCAL_RANK.",
                "LUMI-training-materials 2day-20260422/202-Binding",
                field="sbatch",
                fix=Fix(f"remove {option}", "sbatch", _others(launch.spec.sbatch, option)),
            )
        elif ours.match(option):
            yield Finding(
                "own-option",
                "error",
                f"{option} is written by lumitui itself.",
                "Use the key of the job file, or leave it out.",
                "DESIGN, job script",
                field="sbatch",
                fix=Fix(f"remove {option}", "sbatch", _others(launch.spec.sbatch, option)),
            )


def _others(options: tuple[str, ...], option: str) -> tuple[str, ...] | None:
    return tuple(other for other in options if other != option) or None


def _no_save(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec = launch.spec
    if spec.script and not spec.signal and walltime.seconds_of(spec.time) > 4 * 3600:
        yield Finding(
            "no-checkpoint-signal",
            "note",
            f"No signal warns the script before its time limit of {spec.time}.",
            "If it saves on a signal, name it: `signal: USR1@300`.",
            "sbatch(1) --signal",
            field="signal",
        )


def _no_heartbeat(launch: Launch, place: Placement) -> Iterator[Finding]:
    if launch.spec.script and launch.spec.hang:
        yield Finding(
            "no-heartbeat",
            "warning",
            "`hang:` does nothing here: only the bundled trainers say whether their ranks move.",
            "Remove it; PyTorch ends a collective that hangs after its own time limit.",
            "trainers/engine/heartbeat",
            field="hang",
            fix=Fix("remove it", "hang", None),
        )


RULES: tuple[Rule, ...] = (
    _limits,
    _cores,
    _too_few_cores,
    _memory,
    _options,
    _part_of_a_node,
    _no_save,
    _no_heartbeat,
)
