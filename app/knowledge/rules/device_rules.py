"""Rules about the GPUs that a rank sees and uses."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.program.program_facts import Call, PythonFile, Role
from lumitui.app.knowledge.program.step_program import StepProgram, runs
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import removal, some
from lumitui.app.knowledge.script_job import GPU_LISTS, Option, ScriptJob, Variable
from lumitui.app.knowledge.site_facts.allocation import gpus_of_node, site_says
from lumitui.app.knowledge.site_facts.process_counts import (
    has_one_rank,
    shows_own_gpu,
    steps_with,
    tasks_per_node_of,
)
from lumitui.remote.site.finding import Cure
from lumitui.remote.site.profile import Site

_TORCH = "docs.pytorch.org/tutorials/intermediate/ddp_tutorial"
_TAKES_DEVICE = ("set_device", "device", "to", "cuda", "DistributedDataParallel")
_CURRENT = re.compile(r"^['\"]cuda['\"]")
_FIRST = re.compile(r"['\"]cuda:0['\"]")


def _device_roles(call: Call) -> frozenset[Role]:
    """Return the roles in the arguments that select a call's device."""
    arguments = [*call.arguments]
    if call.last == "DistributedDataParallel":
        arguments = [one for one in arguments if one.name in ("device_ids", "output_device")]
    elif call.last == "init_process_group":  # `rank=` says nothing about a GPU
        arguments = [one for one in arguments if one.name == "device_id"]
    elif call.last in ("to", "cuda"):
        arguments = arguments[:1]
    return frozenset(role for one in arguments for role in one.mentions)


def _takes(run: StepProgram, role: Role) -> Iterator[tuple[str, Call]]:
    """Yield the calls that select the GPU by this role, each with its file."""
    for program, call in run.calls(*_TAKES_DEVICE):
        if role in _device_roles(call) and (call.last != "device" or "torch" in call.name):
            yield program.file, call


def _words(call: Call) -> str:
    inside = ", ".join(f"{one.name}={one.text}" if one.name else one.text for one in call.arguments)
    text = f"{call.name.removeprefix('?.')}({inside})"
    return text if len(text) <= 60 else f"{call.last}(…)"


@rule(
    "rank-as-device",
    "error",
    "the global rank used as a GPU number, on several nodes",
    why="Each node numbers its GPUs from 0: ranks on the second node fail with `invalid device "
    "ordinal`.",
    source=f"{_TORCH}; github.com/meta-llama/llama-cookbook/issues/90",
)
def _rank_as_device(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if site.node.on_cpu:
        return
    for run in runs(job):
        per_node = run.step.rank.per_node
        if run.nodes < 2 or run.has("spawn") or (per_node is not None and per_node < 2):
            continue
        found = [*_takes(run, "rank")]
        first = f"rank {per_node}" if per_node else "the first rank"
        for file in dict.fromkeys(file for file, _call in found):
            call, *others = [call for where, call in found if where == file]
            lines = dict.fromkeys(str(other.at.line) for other in others)
            lines.pop(str(call.at.line), None)
            also = f" (and on line{'s' * (len(lines) > 1)} {', '.join(lines)})" if lines else ""
            yield Hit(
                f"{file} selects the GPU by the global rank, {_words(call)}{also}: {first} on "
                "the second node finds no such GPU.",
                'Use int(os.environ["LOCAL_RANK"]) instead.',
                call.at,
            )


@rule(
    "one-gpu-for-all",
    "error",
    "one fixed GPU for all ranks of a node",
    why="The other GPUs stay idle; NCCL refuses this: `Duplicate GPU detected`.",
    source=f"{_TORCH}; github.com/NVIDIA/nccl, src/init.cc: Duplicate GPU detected; "
    "github.com/Peterande/D-FINE/issues/289",
)
def _one_gpu(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if site.node.on_cpu:
        return
    local = job.variable("LOCAL_RANK")
    if local and local.value.isdecimal() and not local.conditional and _reads_local_rank(job):
        ranks = max((step.rank.per_node or 1 for step in steps_with(job, local)), default=1)
        if ranks > 1:
            yield Hit(
                f"LOCAL_RANK is {local.value} in all {ranks} ranks of a node, so all use "
                f"GPU {local.value}.",
                "Set it inside srun: srun bash -c 'export LOCAL_RANK=$SLURM_LOCALID; …'.",
                local.at,
            )
    for run in runs(job):
        rank = run.step.rank
        if (rank.per_node or 1) < 2 or rank.visible_gpus == "one" or not run.by_hand:
            continue
        if any(True for _ in run.environment("CUDA_VISIBLE_DEVICES")):
            continue
        for program, call in run.calls(*_TAKES_DEVICE):
            where = [one for one in call.arguments if one.name in ("", "device_ids", "device")][:1]
            if call.last == "DistributedDataParallel":
                where = [one for one in call.arguments if one.name == "device_ids"]
            always = all(_asks_for_gpus(program, one.text) for one in call.guards)
            if where and _is_first(call, where[0].text) and always:
                yield Hit(
                    f"{program.file} uses GPU 0 in all {rank.per_node} ranks of a node, "
                    f"{_words(call)}.",
                    'Use the rank\'s own GPU: torch.device("cuda", int(os.environ["LOCAL_RANK"])).',
                    call.at,
                )


def _asks_for_gpus(program: PythonFile, condition: str) -> bool:
    """Return whether a condition, or the value of a name used as one, is that there are GPUs."""
    values = [one.value.text for one in program.settings if one.target == condition]
    return all("is_available" in text for text in values or [condition])


def _reads_local_rank(job: ScriptJob) -> bool:
    """Return whether srun starts the ranks, and nothing else seems to tell them their GPU."""
    starts = {(step.srun is not None, step.launcher in ("srun", "plain")) for step in job.training}
    other = any("SLURM_LOCALID" in text for text in job.files.values())
    shown = {step.rank.visible_gpus for step in job.training}
    return starts == {(True, True)} and not other and shown == {"all"}


def _is_first(call: Call, text: str) -> bool:
    if call.last in ("set_device", "cuda") and text == "0":
        return True
    return text == "[0]" if call.last == "DistributedDataParallel" else bool(_FIRST.search(text))


@rule(
    "no-own-gpu",
    "error",
    "ranks that never select their own GPU",
    why="Without set_device, `cuda` is GPU 0 in every rank: the ranks share its memory, and "
    "NCCL refuses this or hangs.",
    source=f"{_TORCH}; github.com/clessig/atmorep/issues/77",
)
def _no_own_gpu(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if site.node.on_cpu:
        return
    for run in runs(job):
        rank = run.step.rank
        if (rank.per_node or 1) < 2 or rank.visible_gpus != "all":
            continue
        if not run.by_hand or not run.closed or _knows_its_gpu(run):
            continue
        for program, call in run.calls("to", "cuda", "torch.device"):
            plain = call.last == "cuda" and not call.arguments
            if plain or (call.arguments and _is_current(program, call)):
                yield Hit(
                    f"{program.file} never selects a rank's GPU: all {rank.per_node} ranks "
                    "of a node compute on GPU 0.",
                    'Call torch.cuda.set_device(int(os.environ["LOCAL_RANK"])) first.',
                    call.at,
                )
                return


def _is_current(program: PythonFile, call: Call) -> bool:
    """Return whether a call's device is `"cuda"`, or a name that is set to nothing else.

    A name counts if the module, or the function that contains the call, sets it.
    """
    text = call.arguments[0].text
    settings = [one for one in program.settings if one.target == text]
    if not any(one.function in ("", call.function) for one in settings):
        return bool(_CURRENT.search(text))
    return all(_CURRENT.search(one.value.text) for one in settings)


def _knows_its_gpu(run: StepProgram) -> bool:
    if run.has("set_device", "set_default_device") or any(
        True for _ in run.environment("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
    ):
        return True
    calls = run.calls(*_TAKES_DEVICE, "init_process_group")
    return any(_device_roles(call) for _program, call in calls)


@rule(
    "ranks-unused",
    "warning",
    "several ranks of a program that never reads its rank",
    why="Each rank does all of the work, on all data, and writes the same files.",
    source="docs.csc.fi, Multi-GPU and multi-node machine learning",
)
def _unused(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        told = any(
            re.search(r"RANK|PROCID|LOCALID|NODEID", word.text) for word in run.step.arguments
        )
        if run.world > 1 and not run.knows_ranks and not told and not run.program.fault:
            yield Hit(
                f"The job starts {run.world} ranks of {run.program.file}, which never reads its "
                "rank: each does all of the work.",
                "Start it once, on one GPU, or divide the work with DistributedDataParallel.",
                run.step.at,
            )


_OWN_GPU = ("gpus-per-task", "cpus-per-gpu", "ntasks-per-gpu", "tasks-per-gpu")
_SHARES_AGAIN = "allow-task-sharing"


@rule(
    "gpu-cgroup",
    "warning",
    "an option that gives each task its own GPU",
    why="Each rank sees only GPU 0: cuda:LOCAL_RANK fails with `invalid device ordinal`, and "
    "RCCL or NCCL hangs or is slow.",
    source="LUMI-training-materials 2day-20260422/201-Slurm and 202-Binding; NVIDIA/nccl #1066",
)
def _cgroup(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if site.task_gpus_apart is False:
        return
    started = [(step.srun, tasks_per_node_of(job, step)) for step in job.training if step.srun]
    most = max((tasks or job.tasks_per_node for _, tasks in started), default=job.tasks_per_node)
    for options, own in ((job.options, most), *started):
        shared = f"{options.value('gres-flags')} {job.options.value('gres-flags')}"
        tasks = own or job.tasks_per_node
        if _SHARES_AGAIN in shared or tasks == 1:
            continue
        bind = options.get("gpu-bind")
        if bind is not None and (bind.value or "").endswith("none"):
            continue
        later = [step.srun.value("gpu-bind") for step in job.training if step.srun]
        if options is job.options and later and all(value == "none" for value in later):
            continue
        for option in options.all:
            if option.name in _OWN_GPU or (option.name == "gpu-bind" and _binds(option)):
                yield Hit(
                    f"{_written(option)} hides the other GPUs from each of the "
                    f"{some(tasks, 'task')} of a node.",
                    "Remove it, and request GPUs per node: ranks select their own by LOCAL_RANK.",
                    option.at,
                    removal(job, option),
                    severity="error" if site.task_gpus_apart else None,
                    cure=Cure(option.name, None),
                )


def _binds(option: Option) -> bool:
    return not (option.value or "").removeprefix("verbose,").removeprefix("v,").startswith("none")


def _written(option: Option) -> str:
    return f"--{option.name}" + (f"={option.value}" if option.value else "")


def _numbers(text: str) -> list[int] | None:
    """Return the GPUs in `0,1,2`; None if `text` is not such a list."""
    parts = text.replace(" ", "").split(",")
    return [int(part) for part in parts] if all(part.isdecimal() for part in parts) else None


@rule(
    "visible-devices",
    "warning",
    "a manual list of GPUs",
    why="It may leave GPUs idle, or name GPUs that the job does not have: `no CUDA-capable "
    "device` or `No HIP GPUs are available`.",
    source="sbatch(1), CUDA_VISIBLE_DEVICES; LUMI-training-materials 2day-20260422/202-Binding",
)
def _by_hand(job: ScriptJob, site: Site) -> Iterator[Hit]:
    has = gpus_of_node(job)
    for variable in job.settings(*GPU_LISTS):
        numbers = _numbers(variable.value)
        if site_says(site, variable.name):
            continue
        sets = "it" if variable.name == site.visible_gpus else site.visible_gpus
        if variable.value.strip() in ("", "-1") and has and variable.step is None:
            yield Hit(
                f"{variable.name} is empty, so the ranks see no GPU.",
                f"Remove {variable.name}: Slurm sets {site.visible_gpus}.",
                variable.at,
            )
        if not numbers or not has:
            continue
        beyond = [number for number in numbers if number >= has]
        if beyond:
            yield Hit(
                f"{variable.name} contains GPU {beyond[-1]}, but the job has {some(has, 'GPU')} "
                "per node, numbered from 0.",
                f"Remove {variable.name}: Slurm sets {sets}.",
                variable.at,
                severity="error",
            )
        elif len(numbers) < has and variable.step is None and not _several(job, variable):
            ranks = max((step.rank.per_node or 1 for step in steps_with(job, variable)), default=1)
            without = ranks > len(numbers)
            yield Hit(
                f"{variable.name}={variable.value} leaves {has - len(numbers)} of the "
                f"{some(has, 'GPU')} of each node idle"
                + (
                    f", and ranks with LOCAL_RANK {len(numbers)} or higher find no GPU: `invalid "
                    "device ordinal`."
                    if without
                    else "."
                ),
                f"Remove {variable.name}: Slurm sets {sets} to all of them.",
                variable.at,
                severity="error" if without else None,
            )
        elif len(numbers) == has and variable.step is None:
            yield Hit(
                f"{variable.name} lists the job's GPUs manually.",
                f"Remove {variable.name}: Slurm sets {sets}, and the list is wrong as soon as the "
                "job requests a different number of GPUs.",
                variable.at,
                severity="note",
            )


def _several(job: ScriptJob, variable: Variable) -> bool:
    """Return whether the script sets the variable again, for simultaneous programs."""
    return len({each.value for each in job.settings(variable.name)}) > 1


_ADAPTS = re.compile(r"VISIBLE_DEVICES|device_count")
"""A program that may read how many GPUs it sees."""
_USUAL = re.compile(r"is_available|distributed|world_size")
"""A condition that holds in a run of several ranks."""
_KEEPS_LIST = ("plain", "srun", "torchrun")
"""Launchers that do not change the list of visible GPUs."""


@rule(
    "hidden-gpus",
    "error",
    "ranks that see only their own GPU, and select it by LOCAL_RANK",
    why="That GPU is number 0, so cuda:LOCAL_RANK fails with `invalid device ordinal` in "
    "every rank except 0.",
    source="LUMI user guide, lumig-job: select_gpu; github.com/deepspeedai/DeepSpeed/pull/3165; "
    "github.com/ACEsuit/mace/issues/435",
)
def _hidden(job: ScriptJob, site: Site) -> Iterator[Hit]:
    told = any("$" not in one.value for one in job.settings("LOCAL_RANK", "SLURM_LOCALID"))
    for run in () if told else runs(job):
        if (run.step.rank.per_node or 1) < 2:
            continue
        lists = [
            one
            for one in job.settings(*GPU_LISTS)
            if one.shell != "batch" and one.step in (None, job.steps.index(run.step))
        ]
        adapts = any(_ADAPTS.search(job.files.get(one.file, "")) for one in run.files)
        given = adapts or run.given("local_rank", "gpu", "device") or not lists
        if given or run.step.launcher not in _KEEPS_LIST or has_one_rank(job, run.step):
            continue
        for file, call in _takes(run, "local"):
            plain = all(_USUAL.search(one.text) for one in call.guards)
            if plain and shows_own_gpu(lists[-1]):
                name = lists[-1].name
                yield Hit(
                    f"{name} shows each rank one GPU, as number 0, but {file} uses the number "
                    f"LOCAL_RANK, {_words(call)}: `invalid device ordinal`.",
                    f"Remove {name}, or make the program always use GPU 0.",
                    lists[-1].at,
                )
                break
