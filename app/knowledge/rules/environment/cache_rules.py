"""Rules about caches: where programs keep weights and compiled kernels."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.app.knowledge.site_facts.site_places import site_says, work_folder
from lumitui.remote.site.profile import Site

_WEIGHTS = ("HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "TRANSFORMERS_CACHE", "TORCH_HOME",
            "HUGGINGFACE_HUB_CACHE", "PIP_CACHE_DIR", "SINGULARITY_CACHEDIR",
            "APPTAINER_CACHEDIR", "WANDB_DIR", "WANDB_CACHE_DIR", "MLFLOW_TRACKING_URI",
            "XDG_CACHE_HOME")  # fmt: skip
_KERNELS = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR",
            "MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR", "CUDA_CACHE_PATH")  # fmt: skip
_HOME = re.compile(r"^(file:)?(~|\$\{?HOME\}?|/users/|/home/|/gpfs/home/|/ccs/home/)(?=/|$|\w)")
_OF_JOB = re.compile(r"SLURM_JOB|SLURM_ARRAY|\$\{?USER|TMPDIR|NODE_TMP|LOCAL_SCRATCH|mktemp|RANDOM")


@rule(
    "cache-in-home",
    "warning",
    "a cache of weights or data in home",
    why="Home is small and has few files everywhere: a model or two fill it, and then programs "
    "fail that write anything there, even their settings.",
    source="the sites' documents of storage; LUMI user guide, storage",
)
def cache_in_home(job: Job, site: Site) -> Iterator[Hit]:
    """Find `HF_HOME=$HOME/.cache`."""
    for variable in job.settings(*_WEIGHTS):
        said = site_says(site, variable.name) and not re.match(r"[~$]", variable.value)
        if _HOME.match(variable.value) and not said:
            yield Hit(
                f"{variable.name} leads to home, which has a small quota.",
                f"Put it on scratch: {work_folder(job, site)}.",
                variable.at,
            )


@rule(
    "kernels-in-home",
    "warning",
    "a cache of compiled kernels in home, for all ranks of several nodes",
    why="Many ranks compile at once and lock files that a shared file system locks slowly or not "
    "at all: some ranks wait, and some fail.",
    source="lumi-apptainer-bench, FINDINGS 4.7; pytorch, TORCHINDUCTOR_CACHE_DIR",
)
def kernels_in_home(job: Job, site: Site) -> Iterator[Hit]:
    """Find `TRITON_CACHE_DIR=$HOME/.triton` on two nodes."""
    for variable in job.settings(*_KERNELS):
        if _HOME.match(variable.value) and not variable.value.startswith("/") and job.nodes > 1:
            yield Hit(
                f"{variable.name} leads to home, where the ranks of {job.nodes} nodes compile into "
                "the same files.",
                f"Take a folder of each node: {variable.name}=/tmp/$USER-$SLURM_JOB_ID.",
                variable.at,
            )


@rule(
    "cache-name-shared",
    "note",
    "a folder below /tmp that all users would share",
    why="Another person's job on the node may have made the folder: yours then may not write "
    "there, and files of killed jobs stay in it.",
    source="LUMI-AI-Guide pull request 108",
)
def cache_name_shared(job: Job, site: Site) -> Iterator[Hit]:
    """Find `MIOPEN_USER_DB_PATH=/tmp/miopen`."""
    for variable in job.settings(*_WEIGHTS, *_KERNELS):
        fixed = variable.value.startswith(("/tmp/", "/dev/shm/", "/var/tmp/"))
        if fixed and not _OF_JOB.search(variable.value):
            yield Hit(
                f"{variable.name} is {variable.value}, which another person's job may own.",
                "Add $USER-$SLURM_JOB_ID to the name.",
                variable.at,
            )


RULES: tuple[Rule, ...] = (cache_in_home, kernels_in_home, cache_name_shared)
