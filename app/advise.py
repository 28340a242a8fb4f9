"""What is wrong or unwise about a launch: a table of rules. Pure.

Each rule is one function; its source is the document that says so (names as in the profiles).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from lumitui.app.job import JobSpec, Launch
from lumitui.app.layout import (
    container_of,
    launcher_of,
    memory_gib,
    needed_cores,
    partition_of,
    torchrun_binding,
)
from lumitui.app.strategies import STRATEGIES
from lumitui.remote import walltime
from lumitui.remote.manifest import MAX_BYTES, MAX_FILES
from lumitui.remote.site import Site

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """What the adviser says of a launch; an `error` keeps it from being sent."""

    id: str
    severity: Severity
    message: str
    do: str
    source: str


Rule = Callable[[Launch, Site], Iterator[Finding]]


def _account(launch: Launch, site: Site) -> Iterator[Finding]:
    account = launch.spec.account
    if site.account.required and not re.match(site.account.pattern, account):
        yield Finding(
            "account",
            "error",
            f"The account {account!r} is not one of {site.name}'s.",
            f"Set `account:` to your project, like {site.account.example}.",
            "sbatch(1) --account; the site's profile",
        )


def _retired(launch: Launch, site: Site) -> Iterator[Finding]:
    if site.retired and date.today().isoformat() >= site.retired:
        yield Finding(
            "retired",
            "error",
            f"{site.name} runs no jobs since {site.retired}.",
            "Choose another site.",
            "the site's profile",
        )


def _limits(launch: Launch, site: Site) -> Iterator[Finding]:
    spec, partition = launch.spec, partition_of(launch.spec, site)
    if walltime.seconds_of(spec.time) > walltime.seconds_of(partition.max_time):
        yield Finding(
            "time-limit",
            "error",
            f"{spec.time} is more than {spec.partition} allows ({partition.max_time}).",
            "Ask for less, and continue from a checkpoint in a second run.",
            "the site's profile, partitions",
        )
    if spec.nodes > partition.max_nodes:
        other = f" or use {partition.grows_to}" if partition.grows_to else ""
        yield Finding(
            "nodes",
            "error",
            f"{spec.nodes} nodes are more than {spec.partition} has ({partition.max_nodes}).",
            f"Ask for fewer{other}.",
            "the site's profile, partitions",
        )
    most = partition.max_gpus_per_node
    if most is not None and launch.layout.gpus_per_node > most:
        yield Finding(
            "gpus",
            "error",
            f"{launch.layout.gpus_per_node} GPUs a node are more than {spec.partition} gives.",
            f"Ask for {most}.",
            "the site's profile, partitions",
        )


def _cores(launch: Launch, site: Site) -> Iterator[Finding]:
    layout, usable = launch.layout, len(site.node.usable_cores)
    asked = layout.tasks_per_node * layout.cpus_per_task
    if asked > usable and site.scheduler == "slurm":
        yield Finding(
            "cores",
            "error",
            f"{asked} cores a node are more than the {usable} a job may use.",
            f"Leave out `cpus_per_task`: {site.cores_per_gpu} a GPU fit.",
            "lumi-userguide, lumig-job.md: 'jobs requesting 64 cores/node will never run'",
        )


def _too_few_cores(launch: Launch, site: Site) -> Iterator[Finding]:
    spec, layout = launch.spec, launch.layout
    needed = needed_cores(spec, site, layout.ranks_per_node)
    if launcher_of(spec).tasks != "node" or layout.cpus_per_task >= needed:
        return
    if site.scheduler == "slurm":
        bound = torchrun_binding(spec, site) != "none"
        yield Finding(
            "few-cores",
            "error" if bound else "warning",
            f"The ranks of a node have {layout.cpus_per_task} cores together"
            + (": its first ones, and those near their GPUs are others." if bound else "."),
            f"Leave out `cpus_per_task`: {needed} are asked for then.",
            "pytorch, torch/numa/binding.py; sched_setaffinity(2)",
        )


def _memory(launch: Launch, site: Site) -> Iterator[Finding]:
    asked, most = memory_gib(launch.spec, site, launch.layout), site.node.memory_gib
    if asked > most and site.scheduler == "slurm":
        yield Finding(
            "memory",
            "error",
            f"{asked:g} GiB a node are more than the {most} a job may use.",
            "Ask for less, or leave out `memory:`.",
            "the site's profile, node.memory_gib",
        )


def _launcher(launch: Launch, site: Site) -> Iterator[Finding]:
    if launch.spec.launcher not in site.launchers:
        yield Finding(
            "launcher",
            "error",
            f"The launcher {launch.spec.launcher} does not work at {site.name}.",
            f"Use {' or '.join(site.launchers)}.",
            "the site's profile",
        )


def _part_of_a_node(launch: Launch, site: Site) -> Iterator[Finding]:
    spec, layout, partition = launch.spec, launch.layout, partition_of(launch.spec, site)
    partial = layout.gpus_per_node < site.node.gpus
    if partition.allocation == "node" and partial:
        yield Finding(
            "idle-gpus",
            "warning",
            f"{spec.partition} gives and bills whole nodes: "
            f"{site.node.gpus - layout.gpus_per_node} GPUs a node stay idle.",
            f"Use all {site.node.gpus}, or a shared partition.",
            "lumi-userguide, billing.md",
        )
    if partition.allocation == "shared" and spec.nodes > 1 and partial:
        yield Finding(
            "scattered",
            "warning",
            f"{spec.nodes} nodes with {layout.gpus_per_node} of {site.node.gpus} GPUs each.",
            "Fill whole nodes before adding nodes: traffic inside a node is faster.",
            "csc-user-guide, ml-multi.md",
        )


def _binding(launch: Launch, site: Site) -> Iterator[Finding]:
    spec, layout = launch.spec, launch.layout
    if not site.node.gpu_cores or layout.world_size == 1:
        return
    if not layout.whole_nodes:
        yield Finding(
            "shared-cores",
            "note",
            f"On {spec.partition} nodes are shared: Slurm chooses the cores, no masks are given.",
            "Use a partition of whole nodes, or `exclusive: true` when all GPUs are used.",
            "lumi-userguide, distribution-binding.md",
        )
    elif not layout.masks and spec.binding == "none":
        yield Finding(
            "no-binding",
            "warning",
            "Nothing binds the ranks to the cores nearest to their GPUs.",
            "Remove `binding: none`.",
            "LUMI-AI-Guide, 05-multi-gpu-and-node",
        )


def _environment(launch: Launch, site: Site) -> Iterator[Finding]:
    container = container_of(launch.spec, site)
    for name in container.forbidden_environment if container else ():
        if name in launch.spec.env:
            yield Finding(
                "container-variable",
                "error" if launch.spec.nodes > 1 else "warning",
                f"{name} breaks this generation of containers on several nodes.",
                f"Remove {name} from `env:`.",
                container.note or "the site's profile" if container else "",
            )


def _image(launch: Launch, site: Site) -> Iterator[Finding]:
    choice = launch.spec.container
    patterns = {name: item.images for name, item in site.containers.items() if item.images}
    if choice.none or choice.image is None or not patterns:
        return
    homes = [name for name, pattern in patterns.items() if re.search(pattern, choice.image)]
    taken = choice.generation or site.default_container
    if homes and taken not in homes:
        yield Finding(
            "image-generation",
            "error",
            f"The image is one of the generation {homes[0]}, the job takes it for one of {taken}: "
            "modules, call and torchrun's options would not fit it.",
            f"Set `container: {{generation: {homes[0]}}}`.",
            "the site's profile, containers",
        )
    elif not homes and choice.generation is None:
        yield Finding(
            "image-unknown",
            "note",
            f"The image's name tells no generation: it gets modules, call and options of {taken}.",
            f"Name the one it was built on: `container: {{generation: {' or '.join(patterns)}}}`.",
            "the site's profile, containers",
        )


def _options(launch: Launch, site: Site) -> Iterator[Finding]:
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
            )
        elif ours.match(option):
            yield Finding(
                "own-option",
                "error",
                f"{option} is written by lumitui itself.",
                "Use the key of the job file, or leave it out.",
                "DESIGN, job script",
            )


def _strict_proof(launch: Launch, site: Site) -> Iterator[Finding]:
    layout = launch.layout
    if launch.spec.proof == "strict" and not (layout.exact and layout.planned_cores):
        yield Finding(
            "strict-unchecked",
            "warning",
            "No exact cores are planned here: `proof: strict` stops nothing.",
            "Use `launcher: srun` on whole nodes.",
            "templates/job.sh.j2",
        )


def _lightning_name(launch: Launch, site: Site) -> Iterator[Finding]:
    if launch.spec.name in ("bash", "interactive"):
        yield Finding(
            "job-name",
            "warning",
            f"The name {launch.spec.name!r} switches Lightning's Slurm detection off.",
            "Choose another `name:`.",
            "Lightning-AI/pytorch-lightning, plugins/environments/slurm.py",
        )


def _no_save(launch: Launch, site: Site) -> Iterator[Finding]:
    spec = launch.spec
    if spec.script and not spec.signal and walltime.seconds_of(spec.time) > 4 * 3600:
        yield Finding(
            "no-checkpoint-signal",
            "note",
            f"Nothing tells the script that its {spec.time} are ending.",
            "If it saves on a signal, name it: `signal: USR1@300`.",
            "sbatch(1) --signal",
        )


def _archive(launch: Launch, site: Site) -> Iterator[Finding]:
    spec = launch.spec
    if spec.ship != "archive":
        return
    disk = f" (local disk: {site.node.local_disk})" if site.node.local_disk else ""
    yield Finding(
        "archive",
        "note",
        f"The code goes as one archive, as a project over {MAX_FILES} files or "
        f"{MAX_BYTES / 1e6:.0f} MB does: every node unpacks it into {site.node_folder}{disk} "
        "before the launch, and what the program writes beside its code ends with the job.",
        "Write results to $RUN_DIR, and exclude data in .lumituiignore: `links:` reaches it.",
        "the site's profile, node_folder",
    )
    lost = [pattern for pattern in spec.fetch if pattern.startswith("code/")]
    if lost:
        yield Finding(
            "archive-fetch",
            "warning",
            f"`fetch:` names {lost[0]}, but the code of this job is not in the run's folder.",
            "Let the program write it to $RUN_DIR, and name it from there.",
            "templates/job.sh.j2",
        )


def _site_rules(launch: Launch, site: Site) -> Iterator[Finding]:
    for rule in site.rules:
        text = field_text(launch.spec, rule.field)
        if text is not None and re.search(rule.matches, text, re.MULTILINE):
            yield Finding(rule.id, rule.severity, rule.message, rule.do, rule.source)


def _strategy_stage(launch: Launch, site: Site) -> Iterator[Finding]:
    stage = STRATEGIES[launch.spec.strategy].zero_stage
    for file in launch.files:
        match = re.search(r'"stage":\s*(\d)', file.content)
        if file.name == "ds_config.json" and match and stage and int(match[1]) != stage:
            yield Finding(
                "zero-stage",
                "warning",
                f"The strategy is {launch.spec.strategy}, its configuration has stage {match[1]}.",
                "Make both say the same.",
                "DeepSpeed configuration, zero_optimization.stage",
            )


def _binding_of_torchrun(launch: Launch, site: Site) -> Iterator[Finding]:
    launcher = launcher_of(launch.spec)
    if launcher.binding == "torchrun" and launch.layout.whole_nodes and site.node.gpu_cores:
        container = container_of(launch.spec, site)
        way = container.torchrun_binding if container else site.torchrun_binding
        if way == "none":
            yield Finding(
                "torchrun-unbound",
                "warning",
                "torchrun here does not bind its ranks to cores.",
                "Use `launcher: srun`, which gets masks.",
                "LUMI-AI-Guide #95",
            )


RULES: tuple[Rule, ...] = (
    _retired,
    _account,
    _limits,
    _cores,
    _too_few_cores,
    _memory,
    _launcher,
    _options,
    _environment,
    _image,
    _site_rules,
    _strategy_stage,
    _part_of_a_node,
    _binding,
    _binding_of_torchrun,
    _strict_proof,
    _lightning_name,
    _no_save,
    _archive,
)
_ORDER = {"error": 0, "warning": 1, "note": 2}


def findings(launch: Launch, site: Site) -> list[Finding]:
    """Return everything the rules say of `launch`, errors first."""
    found = [finding for rule in RULES for finding in rule(launch, site)]
    return sorted(found, key=lambda finding: _ORDER[finding.severity])


def field_text(spec: JobSpec, field: str) -> str | None:
    """Return a field of the job file as text (`env.NAME`, `sbatch`, `launcher` …); None: unset."""
    value: object = spec.model_dump(mode="json")
    for part in field.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None or value == [] or value == {}:
        return None
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)
