"""Rules about caches: where programs keep weights and compiled kernels."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site

_WEIGHTS = ("HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "TRANSFORMERS_CACHE", "TORCH_HOME",
            "HUGGINGFACE_HUB_CACHE", "PIP_CACHE_DIR", "SINGULARITY_CACHEDIR",
            "APPTAINER_CACHEDIR", "WANDB_DIR", "WANDB_CACHE_DIR", "MLFLOW_TRACKING_URI",
            "XDG_CACHE_HOME")  # fmt: skip
_KERNELS = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR",
            "MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR", "CUDA_CACHE_PATH")  # fmt: skip
_OF_JOB = re.compile(r"SLURM_JOB|SLURM_ARRAY|\$\{?USER|TMPDIR|NODE_TMP|LOCAL_SCRATCH|mktemp|RANDOM")


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


RULES: tuple[Rule, ...] = (cache_name_shared,)
