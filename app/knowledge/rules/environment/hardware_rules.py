"""Rules about variables that make a library take the GPU for another one."""

from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site


@rule(
    "other-gpu-kernels",
    "warning",
    "a variable that makes ROCm take kernels of another GPU",
    why="HSA_OVERRIDE_GFX_VERSION is for GPUs that ROCm does not support. Those of a cluster are "
    "supported: with the override it loads kernels that crash or compute wrongly.",
    source="rocm.docs.amd.com, ROCR-Runtime environment variables: HSA_OVERRIDE_GFX_VERSION",
)
def other_gpu_kernels(job: Job, site: Site) -> Iterator[Hit]:
    """Find `HSA_OVERRIDE_GFX_VERSION=10.3.0` on a cluster's GPUs."""
    if site.scheduler != "slurm" or site.node.gpu_vendor != "amd":
        return
    for variable in job.settings("HSA_OVERRIDE_GFX_VERSION"):
        if variable.value.strip():
            yield Hit(
                f"HSA_OVERRIDE_GFX_VERSION={variable.value} makes ROCm load kernels of another GPU "
                f"than {site.node.gpu}: they crash or compute wrongly.",
                "Remove HSA_OVERRIDE_GFX_VERSION: ROCm knows this GPU.",
                variable.at,
            )


RULES: tuple[Rule, ...] = (other_gpu_kernels,)
"""Every rule of this subject."""
