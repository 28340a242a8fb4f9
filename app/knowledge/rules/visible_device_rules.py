"""Rules about which GPUs a rank sees, and who decides that."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import removal, some
from lumitui.app.knowledge.script_job import Option, ScriptJob, Variable
from lumitui.app.knowledge.site_facts.allocation import gpus_of_node, site_says
from lumitui.app.knowledge.site_facts.process_counts import has_one_rank, shows_own_gpu
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


@rule(
    "visible-twice",
    "error",
    "two lists of GPUs, of which one indexes into the other",
    why="HIP_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES count the GPUs that ROCR_VISIBLE_DEVICES has "
    "left over, from 0. The same numbers in both name GPUs that are not there.",
    source="AMD ROCm documentation, GPU isolation techniques",
)
def _twice(job: ScriptJob, site: Site) -> Iterator[Hit]:
    outer = job.variable("ROCR_VISIBLE_DEVICES")
    if outer is None or site.node.gpu_vendor != "amd":
        return
    left = _numbers(outer.value)
    by_rank = re.search(r"SLURM_(LOCALID|PROCID)|LOCAL_RANK", outer.value) is not None
    for name in ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        inner = job.variable(name)
        if inner is None or inner.value in ("$ROCR_VISIBLE_DEVICES", "${ROCR_VISIBLE_DEVICES}"):
            continue
        numbers = _numbers(inner.value)
        too_high = left and numbers and max(numbers) >= len(left)
        if too_high or (by_rank and inner.value == outer.value):
            yield Hit(
                f"{name}={inner.value} counts within ROCR_VISIBLE_DEVICES={outer.value}, which "
                "leaves "
                f"{'one GPU' if by_rank else some(len(left or ()), 'GPU')}, numbered from 0.",
                f"Remove {name}.",
                inner.at,
            )


_CHOOSES = re.compile(
    r"set_device\(\s*(?!0\b|[\"']cuda:0)|cuda:\{|[\"']cuda:[\"']\s*\+|device_ids\s*=\s*\[\s*(?!0\b)\w"
)
"""How a program takes the GPU with its rank's own number."""


@rule(
    "select-gpu",
    "error",
    "one GPU for each rank, and ranks that choose theirs by number",
    why="A rank that sees only one GPU has it as number 0: `torch.cuda.set_device(LOCAL_RANK)` "
    "ends with `invalid device ordinal` on all ranks but the first.",
    source="derived from LUMI user guide, lumig-job (select_gpu), and torch.cuda.set_device",
)
def _select(job: ScriptJob, site: Site) -> Iterator[Hit]:
    chosen = [variable for variable in job.settings(*_VISIBLE) if shows_own_gpu(variable)]
    local = job.variable("LOCAL_RANK")
    if not chosen or (local is not None and local.value == "0") or job.tasks_per_node == 1:
        return
    if all(has_one_rank(job, step) for step in job.training if step.python):
        return  # none is Python, or torchrun says LOCAL_RANK=0 to each
    programs = [text for name, text in job.files.items() if name.endswith(".py")]
    sure = any(_CHOOSES.search(text) for text in programs)
    if programs and not sure:
        return
    yield Hit(
        f"{chosen[-1].name}={chosen[-1].value} shows each rank one GPU, which is its number 0"
        + (", and the program takes the one with the number of LOCAL_RANK." if sure else "."),
        "Leave it out, so that each rank sees all GPUs; or set LOCAL_RANK=0 for each rank.",
        chosen[-1].at,
        severity=None if sure else "warning",
    )
