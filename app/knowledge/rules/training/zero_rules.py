"""Rules about what DeepSpeed's configuration turns on: ZeRO, offloading, loss scale."""

from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.program.deepspeed_config import Config, Offload
from lumitui.app.knowledge.program.step_program import configurations
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site


def _offloads(config: Config) -> Iterator[tuple[str, Offload]]:
    for name, found in (
        ("offload_optimizer", config.offload_optimizer),
        ("offload_param", config.offload_param),
    ):
        if found is not None:
            yield name, found


@rule(
    "offload-without-disk",
    "warning",
    "offloading to a disk that the nodes do not have",
    why="Where nodes have no disk, /tmp is memory: what is swapped there counts as the job's "
    "memory. On a shared file system thousands of files are rewritten in every step.",
    source="the site's profile, node.local_disk",
)
def _no_disk(job: Job, site: Site) -> Iterator[Hit]:
    shared = ("/scratch", "/flash", "/project", "/projappl", "/users", "/home", "/gpfs", "/pfs")
    for _run, config in configurations(job):
        for name, found in _offloads(config):
            path = found.nvme_path
            if found.device != "nvme" or not path:
                continue
            diskless = site.node.local_disk.startswith("none")
            if path.startswith(shared) and not path.startswith(("/scratch/tmp", "/scratch_local")):
                what = f"{path} is a shared file system, and every step rewrites it"
            elif diskless:
                what = f"the nodes of {site.name} have no disk ({site.node.local_disk})"
            else:
                continue
            yield Hit(
                f"{config.file} offloads by {name} to {path}: {what}.",
                'Write "device": "cpu", or take more GPUs with ZeRO stage 3.',
                config.at("zero_optimization", name, "nvme_path"),
            )


RULES: tuple[Rule, ...] = (_no_disk,)
"""Every rule of this subject."""
