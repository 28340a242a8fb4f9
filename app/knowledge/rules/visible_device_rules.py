"""Rules about which GPUs a rank sees, and who decides that."""

from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import removal, some
from lumitui.app.knowledge.script_job import Option, ScriptJob, Variable
from lumitui.app.knowledge.site_facts.allocation import gpus_of_node, site_says
from lumitui.remote.site.finding import Cure
from lumitui.remote.site.profile import Site

_AMD = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
_VISIBLE = ("CUDA_VISIBLE_DEVICES", *_AMD)
_OWN_GPU = ("gpus-per-task", "cpus-per-gpu", "ntasks-per-gpu", "tasks-per-gpu")
_SHARES_AGAIN = "allow-task-sharing"


@rule(
    "gpu-cgroup",
    "warning",
    "an option that gives each task its own GPU",
    why="Each rank then sees one GPU, with the number 0, so that cuda:LOCAL_RANK ends with "
    "`invalid device ordinal`; and the ranks of a node cannot copy from GPU to GPU, so that RCCL "
    "or NCCL hangs or is slow.",
    source="LUMI-training-materials 2day-20260422/201-Slurm and 202-Binding; NVIDIA/nccl #1066",
)
def _cgroup(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if site.task_gpus_apart is False:
        return
    for options in (job.options, *(step.srun for step in job.training if step.srun)):
        shared = f"{options.value('gres-flags')} {job.options.value('gres-flags')}"
        tasks = options.number("ntasks-per-node") or job.tasks_per_node
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
                    "Remove it, and ask for GPUs per node: ranks choose theirs by LOCAL_RANK.",
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
    """Return the GPUs of `0,1,2`; None: it is not such a list."""
    parts = text.replace(" ", "").split(",")
    return [int(part) for part in parts] if all(part.isdecimal() for part in parts) else None


@rule(
    "visible-devices",
    "warning",
    "a list of GPUs set manually",
    why="Slurm sets the list of a job's GPUs itself. Another list leaves GPUs idle, or names GPUs "
    "that the job does not have: `no CUDA-capable device` or `No HIP GPUs are available`.",
    source="sbatch(1), CUDA_VISIBLE_DEVICES; LUMI-training-materials 2day-20260422/202-Binding",
)
def _by_hand(job: ScriptJob, site: Site) -> Iterator[Hit]:
    has = gpus_of_node(job)
    for variable in job.settings(*_VISIBLE):
        numbers = _numbers(variable.value)
        if site_says(site, variable.name):
            continue
        if variable.value.strip() in ("", "-1") and has and variable.step is None:
            yield Hit(
                f"{variable.name} is emptied, so that the ranks see none of the "
                f"{some(has, 'GPU')} of a node.",
                f"Remove {variable.name}: Slurm sets {site.visible_gpus}.",
                variable.at,
            )
        if not numbers or not has:
            continue
        beyond = [number for number in numbers if number >= has]
        if beyond:
            yield Hit(
                f"{variable.name} names GPU {beyond[-1]}, and the job has {some(has, 'GPU')} of a "
                "node, which are numbered from 0.",
                f"Remove {variable.name}: Slurm sets it.",
                variable.at,
                severity="error",
            )
        elif len(numbers) < has and variable.step is None and not _several(job, variable):
            without = (job.rank.per_node or 1) > len(numbers)
            yield Hit(
                f"{variable.name}={variable.value} leaves {has - len(numbers)} of the "
                f"{some(has, 'GPU')} of each node idle"
                + (
                    f", and ranks {len(numbers)} to {(job.rank.per_node or 1) - 1} of a node find "
                    "no GPU of their number: `invalid device ordinal`."
                    if without
                    else "."
                ),
                f"Remove {variable.name}: Slurm sets it to all of them.",
                variable.at,
                severity="error" if without else None,
            )
        elif len(numbers) == has and variable.step is None:
            yield Hit(
                f"{variable.name} is set manually to the job's {some(has, 'GPU')}.",
                f"Remove {variable.name}: Slurm sets it, and the list is wrong as soon as the job "
                "asks for fewer.",
                variable.at,
                severity="note",
            )


def _several(job: ScriptJob, variable: Variable) -> bool:
    """Return whether the variable is set again, for programs that run beside each other."""
    return len({each.value for each in job.settings(variable.name)}) > 1
