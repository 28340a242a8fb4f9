"""The eight job scripts of the LUMI AI Guide, in its two eras, as data for tests.

Source: Lumi-supercomputer/LUMI-AI-Guide (text CC-BY-4.0, code MIT), `multi-gpu-and-node/` at
ea60bc1 (17 February 2025, the seed era) and `05-multi-gpu-and-node/` at a7e3387 (19 May 2026, the
current era). Values are the scripts' own text: nothing is expanded or corrected here. What our
scripts set otherwise on purpose is in `tests/golden/guide_differences.yaml`; what they ask sbatch
for and start is in `tests/golden/seeds.yaml`.
"""

from dataclasses import dataclass, field
from typing import Literal

Era = Literal["seed", "current"]

MASKS = (
    "0x00fe000000000000",
    "0xfe00000000000000",
    "0x0000000000fe0000",
    "0x00000000fe000000",
    "0x00000000000000fe",
    "0x000000000000fe00",
    "0x000000fe00000000",
    "0x0000fe0000000000",
)
"""`CPU_BIND_MASKS` of the srun scripts: the seven cores nearest to GCD 0 to 7."""

RESERVED_MASK = 0x0101010101010101
"""Cores 0, 8 … 56: a mask with one of these bits is refused (low-noise mode, August 2023)."""

UNION_OF_MASKS = 0xFEFEFEFEFEFEFEFE
"""All 56 usable cores."""


@dataclass(frozen=True)
class Script:
    """One job script as the guide has it."""

    name: str
    era: Era
    strategy: Literal["ddp", "ds"]
    launcher: Literal["torchrun", "srun"]
    nodes: int
    directives: dict[str, str]
    """#SBATCH options with their values."""
    modules: tuple[str, ...]
    """Shell lines before the container is used."""
    image: str
    exports: dict[str, str]
    """Variables of the batch script, as written: `$NAME` stands for itself."""
    setup: tuple[str, ...]
    """Further lines of the batch script that are neither."""
    container_call: tuple[str, ...]
    """The words that start it."""
    masks: tuple[str, ...] = field(default=())


_MODULES: dict[Era, tuple[str, ...]] = {
    "seed": (
        "module use /appl/local/containers/ai-modules",
        "module load singularity-AI-bindings",
    ),
    "current": (
        "module purge",
        "module use /appl/local/laifs/modules",
        "module load lumi-aif-singularity-bindings",
    ),
}
_LAIF = "lumi-multitorch-u24r70f21m50t210-20260415_130625"
_IMAGES: dict[Era, str] = {
    "seed": "../resources/lumi-pytorch-rocm-6.2.1-python-3.12-pytorch-20240918-vllm-4075b35.sif",
    "current": f"/appl/local/laifs/containers/{_LAIF}/"
    "lumi-multitorch-full-u24r70f21m50t210-20260415_130625.sif",
}
_MASTER_ADDR = "$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)"
_MASTER_PORTS: dict[Era, str] = {"seed": "29500", "current": "1${SLURM_JOB_ID:0-4}"}


def _directives(era: Era, launcher: str, nodes: int) -> dict[str, str]:
    options = {
        "--account": "project_xxxxxxxxx",
        "--partition": "standard-g",
        "--nodes": str(nodes),
        "--gpus-per-node": "8",
    }
    if launcher == "srun":
        options |= {"--ntasks-per-node": "8", "--cpus-per-task": "7", "--mem-per-gpu": "60G"}
    else:
        options |= {"--ntasks": "1"} if nodes == 1 else {"--tasks-per-node": "1"}
        options |= {"--cpus-per-task": "56", "--mem": "480G"}
    options |= {"--time": "1:00:00"}
    return options | ({"--output": "slurm-%x-%j.out"} if era == "current" else {})


def _exports(era: Era, strategy: str, launcher: str, nodes: int) -> dict[str, str]:
    if era == "seed":
        variables = {"SINGULARITYENV_PREPEND_PATH": "/user-software/bin"}
        if (strategy, launcher, nodes) != ("ds", "torchrun", 1):
            variables |= {
                "NCCL_SOCKET_IFNAME": "hsn0,hsn1,hsn2,hsn3",
                "NCCL_NET_GDR_LEVEL": "PHB",
            }
    else:
        variables = {
            "MIOPEN_CUSTOM_CACHE_DIR": "$MIOPEN_DIR/cache",
            "MIOPEN_USER_DB": "$MIOPEN_DIR/config",
            "TORCH_HOME": "/scratch/${SLURM_JOB_ACCOUNT}/${USER}/torch_home",
        }
    if (strategy, launcher, nodes) != ("ddp", "torchrun", 1):
        variables |= {"MASTER_ADDR": _MASTER_ADDR, "MASTER_PORT": _MASTER_PORTS[era]}
    if launcher == "srun":
        variables |= {
            "WORLD_SIZE": "$SLURM_NPROCS",
            "LOCAL_WORLD_SIZE": "$SLURM_GPUS_PER_NODE",
        }
    return variables


def _script(
    era: Era, strategy: Literal["ddp", "ds"], launcher: Literal["torchrun", "srun"], nodes: int
) -> Script:
    return Script(
        name=f"run_{strategy}_{launcher}{'_4' if nodes == 4 else ''}.sh",
        era=era,
        strategy=strategy,
        launcher=launcher,
        nodes=nodes,
        directives=_directives(era, launcher, nodes),
        modules=_MODULES[era],
        image=_IMAGES[era],
        exports=_exports(era, strategy, launcher, nodes),
        setup=("MIOPEN_DIR=$(mktemp -d)", 'mkdir -p "$TORCH_HOME"') if era == "current" else (),
        container_call=("singularity", "run" if era == "current" else "exec"),
        masks=MASKS if launcher == "srun" else (),
    )


_ERAS: tuple[Era, ...] = ("seed", "current")
_STRATEGIES: tuple[Literal["ddp", "ds"], ...] = ("ddp", "ds")
_LAUNCHERS: tuple[Literal["torchrun", "srun"], ...] = ("torchrun", "srun")
SCRIPTS: tuple[Script, ...] = tuple(
    _script(era, strategy, launcher, nodes)
    for era in _ERAS
    for strategy in _STRATEGIES
    for launcher in _LAUNCHERS
    for nodes in (1, 4)
)
"""Eight scripts in two eras."""
NAMES = [f"{script.name}-{script.era}" for script in SCRIPTS]
"""What each script is called in the tests and in tests/golden."""
