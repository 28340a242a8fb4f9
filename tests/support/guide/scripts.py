"""The eight job scripts of the LUMI AI Guide, in its two eras, as data for tests.

Source: Lumi-supercomputer/LUMI-AI-Guide (text CC-BY-4.0, code MIT), `multi-gpu-and-node/` at
ea60bc1 (17 February 2025, the seed era) and `05-multi-gpu-and-node/` at a7e3387 (19 May 2026, the
current era). Values are the scripts' own text: nothing is expanded or corrected here. What our
scripts do otherwise on purpose is in `batch_differences.py` and `task_differences.py`.
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
    srun_options: tuple[str, ...]
    container_call: tuple[str, ...]
    """The words before the image."""
    quotes: Literal["'", '"']
    """Around the command of `bash -c`: in double quotes `$` is escaped."""
    inner_exports: dict[str, str]
    """Exported inside the container, in each task."""
    launcher_options: dict[str, str]
    """Options of torchrun; a switch has the value ''."""
    program: str
    deepspeed_options: dict[str, str]
    command: str
    """The launch line as it stands there."""
    masks: tuple[str, ...] = field(default=())

    @property
    def ranks_per_node(self) -> int:
        """Ranks on a node: eight, one a GCD."""
        return 8

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return self.nodes * self.ranks_per_node


_ENVIRONMENT = ("-B", "../resources/visualtransformer-env.sqsh:/user-software:image-src=/")
_IN_PACKAGES = "/user-software/lib/python3.12/site-packages/deepspeed/ops/csrc"
_DEEPSPEED = (
    *("-B", f"../resources/deepspeed_adam:{_IN_PACKAGES}/adam"),
    *("-B", f"../resources/deepspeed_includes:{_IN_PACKAGES}/includes"),
)
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
_RDZV = {
    "--rdzv_id": r"\$SLURM_JOB_ID",
    "--rdzv_backend": "c10d",
    "--rdzv_endpoint": '"$MASTER_ADDR:$MASTER_PORT"',
}


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


def _launcher_options(era: Era, strategy: str, launcher: str, nodes: int) -> dict[str, str]:
    if launcher == "srun":
        return {}
    options = {"--numa-binding": "exclusive"} if era == "current" else {}
    if strategy == "ddp" and nodes == 1:
        return options | {"--standalone": "", "--nnodes": "1", "--nproc_per_node": "8"}
    if strategy == "ds" and nodes == 1:
        return options | {
            "--nproc_per_node": "8",
            "--nnodes": "$SLURM_NNODES",
            "--node_rank": "$SLURM_PROCID",
            "--master_addr": "$MASTER_ADDR",
            "--master_port": "$MASTER_PORT",
        }
    options |= {"--nnodes": "$SLURM_JOB_NUM_NODES", "--nproc_per_node": "8"}
    if strategy == "ds":
        options |= {"--node_rank": "$SLURM_PROCID"}
    return options | _RDZV


_BINDS = {"ddp": "B1", "ds": "B1 B2 B3"}
_SHORT = {
    "B1": " ".join(_ENVIRONMENT),
    "B2": " ".join(_DEEPSPEED[:2]),
    "B3": " ".join(_DEEPSPEED[2:]),
}
# Column: the quotes, the words after `bash -c` up to the program; NUMA is the current era's option.
_INNER: dict[tuple[str, str, int], tuple[Literal["'", '"'], str]] = {
    ("ddp", "torchrun", 1): (
        "'",
        "python -m torch.distributed.run NUMA --standalone --nnodes=1 --nproc_per_node=8",
    ),
    ("ddp", "torchrun", 4): (
        "'",
        "python -m torch.distributed.run NUMA --nnodes=$SLURM_JOB_NUM_NODES --nproc_per_node=8 "
        r"--rdzv_id=\$SLURM_JOB_ID --rdzv_backend=c10d "
        '--rdzv_endpoint="$MASTER_ADDR:$MASTER_PORT"',
    ),
    ("ds", "torchrun", 1): (
        "'",
        "CXX python -m torch.distributed.run NUMA --nproc_per_node 8 --nnodes $SLURM_NNODES "
        "--node_rank $SLURM_PROCID --master_addr $MASTER_ADDR --master_port $MASTER_PORT",
    ),
    ("ds", "torchrun", 4): (
        "'",
        "CXX python -m torch.distributed.run NUMA --nnodes=$SLURM_JOB_NUM_NODES "
        r"--nproc_per_node=8 --node_rank $SLURM_PROCID --rdzv_id=\$SLURM_JOB_ID "
        '--rdzv_backend=c10d --rdzv_endpoint="$MASTER_ADDR:$MASTER_PORT"',
    ),
}
for _nodes in (1, 4):
    _INNER["ddp", "srun", _nodes] = (
        '"',
        r"export RANK=\$SLURM_PROCID && export LOCAL_RANK=\$SLURM_LOCALID && python",
    )
    _INNER["ds", "srun", _nodes] = (
        "'",
        "CXX export RANK=$SLURM_PROCID; export LOCAL_RANK=$SLURM_LOCALID; python",
    )


def _command(era: Era, strategy: str, launcher: str, nodes: int, program: str) -> str:
    quotes, inner = _INNER[strategy, launcher, nodes]
    inner = inner.replace("CXX ", "export CXX=g++-12; " if era == "seed" else "")
    inner = inner.replace("NUMA ", "" if era == "seed" else "--numa-binding=exclusive ")
    options = " --deepspeed --deepspeed_config ds_config.json" if strategy == "ds" else ""
    binding = "--cpu-bind=v,mask_cpu=$CPU_BIND_MASKS " if launcher == "srun" else ""
    call = "singularity run $SIF"
    if era == "seed":
        binds = " ".join(_SHORT[name] for name in _BINDS[strategy].split())
        call = f"singularity exec {binds} $CONTAINER"
    return f"srun {binding}{call} bash -c {quotes}{inner} {program}{options}{quotes}"


def _script(
    era: Era, strategy: Literal["ddp", "ds"], launcher: Literal["torchrun", "srun"], nodes: int
) -> Script:
    program = f"{strategy}_{'visual' if era == 'seed' else 'vision'}transformer.py"
    inner = {"CXX": "g++-12"} if (era, strategy) == ("seed", "ds") else {}
    if launcher == "srun":
        inner |= {"RANK": "$SLURM_PROCID", "LOCAL_RANK": "$SLURM_LOCALID"}
    binds = (*_ENVIRONMENT, *(_DEEPSPEED if strategy == "ds" else ()))
    bound = launcher == "srun"
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
        srun_options=("--cpu-bind=v,mask_cpu=$CPU_BIND_MASKS",) if bound else (),
        container_call=("singularity", "run")
        if era == "current"
        else ("singularity", "exec", *binds),
        quotes=_INNER[strategy, launcher, nodes][0],
        inner_exports=inner,
        launcher_options=_launcher_options(era, strategy, launcher, nodes),
        program=program,
        deepspeed_options={"--deepspeed": "", "--deepspeed_config": "ds_config.json"}
        if strategy == "ds"
        else {},
        command=_command(era, strategy, launcher, nodes, program),
        masks=MASKS if bound else (),
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
