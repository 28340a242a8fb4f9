"""The adviser's rules about a launch's request to Slurm: cores, memory, disk, options, signals."""

from collections.abc import Iterator

from lumitui.app.job.launch import Launch
from lumitui.app.job.stop_lead import lead_of, signal_of
from lumitui.app.job.strategies import STRATEGIES
from lumitui.app.knowledge.bash.directives import read_directives
from lumitui.app.knowledge.bash.option_tables import SBATCH
from lumitui.app.knowledge.script_job import Option
from lumitui.app.launch.layout import needed_cores
from lumitui.app.launch.option_keys import KEY_OF_OPTION, without_dependency
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.job_file_catalogue import LaunchRule, hit
from lumitui.remote.site import walltime
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.source_position import at_key


def _too_few_cores(launch: Launch, place: Placement) -> Iterator[Finding]:
    layout = launch.layout
    needed = needed_cores(place, layout.ranks_per_node)
    if place.site.cores_fixed or place.launcher.tasks != "node" or layout.cpus_per_task >= needed:
        return
    if place.site.scheduler == "slurm":
        bound = bool(layout.masks) or place.torchrun_binding != "none"
        yield hit(
            "few-cores",
            "cpus_per_task",
            f"The ranks of a node share {layout.cpus_per_task} cores"
            + (": the node's first, not those near their GPUs." if bound else "."),
            f"Omit `cpus_per_task`: the job then requests {needed}.",
            severity="error" if bound else "warning",
            fix=Fix("use the site's default", at_key("cpus_per_task"), None),
        )


def _no_memory(launch: Launch, place: Placement) -> Iterator[Finding]:
    if launch.spec.memory and not place.site.memory_option:
        yield hit(
            "memory-option",
            "memory",
            f"A job at {place.site.name} must not request memory: it comes with the cores.",
            "Remove `memory:`.",
            fix=Fix("use the site's default", at_key("memory"), None),
        )


def _disk(launch: Launch, place: Placement) -> Iterator[Finding]:
    site = place.site
    if launch.spec.local_disk is not None and site.local_disk is None:
        own = f" Its nodes have: {site.node.local_disk}." if site.node.local_disk else ""
        yield hit(
            "local-disk",
            "local_disk",
            f"Jobs at {site.name} cannot request a local disk: `local_disk:` has no effect.{own}",
            "Remove `local_disk:`.",
            fix=Fix("remove it", at_key("local_disk"), None),
        )


def _part_of_a_node(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec, layout, partition = launch.spec, launch.layout, place.partition
    one = STRATEGIES[spec.strategy].single_rank or place.launcher.tasks == "one"
    partial = layout.gpus_per_node < place.site.node.gpus and not layout.on_cpu
    if partition.allocation == "node" and partial and layout.world_size == 1 and one:
        yield _one_rank(launch, place)
    elif partition.allocation == "node" and partial:
        gpus = place.site.node.gpus
        yield hit(
            "idle-gpus",
            "gpus_per_node",
            f"{spec.partition} allocates and bills whole nodes: {gpus - layout.gpus_per_node} GPUs "
            "per node stay idle.",
            f"Use all {gpus}, or a shared partition.",
            fix=Fix(f"use all {gpus}", at_key("gpus_per_node"), str(gpus)),
        )


def _one_rank(launch: Launch, place: Placement) -> Finding:
    """Return the finding on one rank on a whole node, which more GPUs alone would not fix."""
    spec, gpus = launch.spec, place.site.node.gpus
    single = STRATEGIES[spec.strategy].single_rank
    keys = [("launcher", place.site.launchers[0])] if place.launcher.tasks == "one" else []
    keys += [("strategy", "ddp")] if single else []
    keys += [("gpus_per_node", str(gpus))] if spec.gpus_per_node else []
    written = " and ".join(f"`{key}: {value}`" for key, value in keys)
    parts = place.site.partitions.items()
    kept = ((name, one) for name, one in parts if one.allocation == "shared" and not one.preempts)
    shared = next((name for name, one in kept if not one.too_small(spec.nodes, 1)), None)
    what = f"strategy: {spec.strategy}" if single else f"launcher: {place.launcher.name}"
    others = f". For one rank, use the shared partition {shared}" if shared else ""
    fixes = [("partition", shared)] if shared and place.launcher.tasks == "one" else keys
    # Not the launcher that starts more ranks: another finding led here from it.
    fix = Fix(f"use {fixes[0][1]}", at_key(fixes[0][0]), fixes[0][1]) if len(fixes) == 1 else None
    return hit(
        "idle-gpus",
        keys[0][0],
        f"`{what}` starts one rank, but {spec.partition} allocates and bills whole nodes: "
        f"{gpus - 1} GPUs stay idle.",
        f"Set {written} for a rank on each GPU{others}.",
        fix=fix,
    )


_OWN = {
    "account", "array", "chdir", "clusters", "comment", "cpus-per-task", "error", "exclusive",
    "gpus", "gpus-per-node", "gpus-per-socket", "gres", "job-name", "mem", "mem-per-cpu",
    "mem-per-gpu", "nodes", "ntasks", "ntasks-per-node", "open-mode", "output", "parsable",
    "partition", "signal", "test-only", "time", "wait", "wrap",
}  # fmt: skip
"""Long options that lumitui writes itself, or with which it would not find its job."""


def _options(launch: Launch, place: Placement) -> Iterator[Finding]:
    ours = _OWN | {"dependency"} if launch.spec.after else _OWN
    for option in launch.spec.sbatch:
        for word, name in _named(option):
            if name in ours:
                others = tuple(other for other in launch.spec.sbatch if other != option) or None
                fix = Fix(f"remove {option}", at_key("sbatch"), others)
                # Final: another name or array would keep lumitui from finding its job.
                yield hit(
                    "own-option", "sbatch", _own(word.raw, name), _key(name), fix=fix, final=True
                )


def _named(option: str) -> Iterator[tuple[Option, str]]:
    """Yield the options in an entry of `sbatch:`, each with the long names that it may mean.

    A prefix that is ambiguous here may be unique in another version of Slurm.
    """
    for one in read_directives(f"#SBATCH {option}").options.all:
        yield from ((one, name) for name in SBATCH.full(one.name))


def _threads(launch: Launch, place: Placement) -> Iterator[Finding]:
    layout, spec = launch.layout, launch.spec
    if place.site.node.threads_per_core < 2 or not layout.planned_cores:
        return
    # On the other nodes, even with --overcommit, a job has all cores.
    few = bool(layout.masks) and place.partition.allocation == "shared" and not spec.exclusive
    for entry in spec.sbatch:
        for option, name in _named(entry):
            overcommits = name == "overcommit" and few
            if overcommits or _counts_threads(name, option.value or ""):
                others = tuple(other for other in spec.sbatch if other != entry) or None
                yield hit(
                    "threads-as-cores",
                    "sbatch",
                    f"With {option.raw}, Slurm allocates only some of the planned cores"
                    + (", and srun refuses the masks." if layout.masks else "."),
                    f"Remove {option.raw}. If the ranks need it, set `binding: none`: then lumitui "
                    "neither plans nor proves their cores.",
                    fix=Fix(f"remove {entry}", at_key("sbatch"), others),
                )


def _counts_threads(name: str, value: str) -> bool:
    """Return whether an option of sbatch makes a job's `--cpus-per-task` count threads."""
    if name == "extra-node-info":  # SOCKETS:CORES:THREADS
        return value.split(":")[2:] != ["1"]
    if name == "threads-per-core":
        return value != "1"
    return name == "ntasks-per-core" or (name, value) == ("hint", "multithread")


def _no_account(launch: Launch, place: Placement) -> Iterator[Finding]:
    account = place.site.account
    if account.required and launch.spec.account == "none":
        like = f", like `account: {account.example}`" if account.example else ""
        yield hit(
            "account",
            "account",
            f"The job file names no account, but {place.site.name} bills every job to one.",
            f"Set your own project{like}, or write it into the profile: `account: {{default: …}}`.",
        )


def _job_number(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec = launch.spec
    if not spec.after and without_dependency(spec.sbatch) != spec.sbatch:
        yield hit(
            "dependency-number",
            "sbatch",
            "`sbatch:` has --dependency with the number of a job: lumitui does not know that job, "
            "and a resubmission does not wait for it.",
            "If it is one of lumitui's runs, use `after: RUN` instead.",
        )


def _own(word: str, name: str) -> str:
    if name == "array":
        return f"{word} would start several jobs for one run, all writing to its folder."
    if name == "wait":
        return f"{word} would make sbatch wait until the job ends."
    return f"lumitui itself writes --{name}, and {word} would contradict it."


def _key(name: str) -> str:
    if name == "array":
        return "List the values under `grid:`, like `seed: [1, 2, 3]`: each becomes a run."
    if name in ("output", "error"):
        return f"Omit --{name}: the log is in the run's folder, and `lumitui logs` shows it."
    return f"Use `{key}:` instead." if (key := KEY_OF_OPTION.get(name)) else f"Omit --{name}."


def _no_save(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec = launch.spec
    long = walltime.seconds_of(spec.time) > 4 * 3600
    if spec.script and not spec.signal and spec.chain == 1 and long:
        yield hit(
            "no-checkpoint-signal",
            "signal",
            f"The script gets no signal before its time limit of {spec.time}.",
            "If it saves on a signal, set it: `signal: USR1@120`.",
        )


def _early_signal(launch: Launch, place: Placement) -> Iterator[Finding]:
    signal, lead, time = signal_of(launch.spec), lead_of(launch.spec), launch.spec.time
    limit = walltime.seconds_of(time)
    if signal and lead and 2 * lead > limit:
        at_once, shorter = lead >= limit, f"{signal.partition('@')[0]}@{limit // 4}"
        yield hit(
            "signal-early",
            "signal",
            f"{signal} is due {lead} s before the time limit of {time}: "
            + ("as soon as the job starts." if at_once else "in the first half of the job."),
            f"Set a longer `time:`, or a shorter lead, like `signal: {shorter}`.",
            severity="error" if at_once else "warning",
            fix=Fix(f"set {shorter}", at_key("signal"), shorter),
        )


def _no_heartbeat(launch: Launch, place: Placement) -> Iterator[Finding]:
    if launch.spec.script and launch.spec.hang:
        yield hit(
            "no-heartbeat",
            "hang",
            "`hang:` has no effect: only the bundled trainers report whether their ranks make "
            "progress.",
            "Remove `hang:`; PyTorch ends a hung collective after its own timeout.",
            fix=Fix("remove it", at_key("hang"), None),
        )


RULES: tuple[LaunchRule, ...] = (
    _too_few_cores, _no_memory, _disk, _options, _threads, _no_account, _job_number,
    _part_of_a_node, _no_save, _early_signal, _no_heartbeat,
)  # fmt: skip
