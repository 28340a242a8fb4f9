"""Rules about DeepSpeed's configuration: its batch for the job's ranks, and where it offloads."""

from collections.abc import Iterator

from lumitui.app.knowledge.program.deepspeed_config import TRAIN, Config, Offload
from lumitui.app.knowledge.program.step_program import configurations
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.profile import Site

_CONFIG = "github.com/deepspeedai/DeepSpeed, deepspeed/runtime/config.py"


@rule(
    "deepspeed-batch",
    "error",
    "batch sizes that do not fit the number of ranks",
    why="DeepSpeed ends unless train_batch_size is micro batch x accumulation x ranks.",
    source=f"{_CONFIG}, _batch_assertion",
)
def _batch(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run, config in configurations(job):
        train, micro, steps = config.train, config.micro, config.accumulation
        if not run.world or not isinstance(train, int) or "auto" in (micro, steps):
            continue
        if any(type(value) is int and value < 1 for value in (train, micro, steps)):
            yield Hit(
                f"{config.file} has a batch size or an accumulation below 1: DeepSpeed ends.",
                "Write whole numbers from 1.",
                config.at(TRAIN),
            )
            continue
        share = train // run.world
        if isinstance(micro, int) and isinstance(steps, int):
            if micro * steps * run.world != train:
                yield Hit(
                    f"{TRAIN} is {train} in {config.file}, but {micro} per GPU x {steps} steps x "
                    f"{run.world} ranks are {micro * steps * run.world}: DeepSpeed ends.",
                    f"Write {TRAIN}: {micro * steps * run.world}, or leave it out.",
                    config.at(TRAIN),
                )
            continue
        part = micro if isinstance(micro, int) else steps if isinstance(steps, int) else 1
        if share < 1:
            yield Hit(
                f"{TRAIN} is {train} in {config.file}, less than the {run.world} ranks of this "
                "job: each would get no sample.",
                f"Write {TRAIN}: {run.world}, or a multiple of it, or take fewer nodes.",
                config.at(TRAIN),
            )
        elif part < 1 or train % (run.world * part):
            each = f" x {part}" if part != 1 else ""
            yield Hit(
                f"{TRAIN} is {train} in {config.file}, which {run.world} ranks{each} do not divide "
                "evenly: DeepSpeed ends.",
                f"Write a multiple of {run.world * max(1, part)}, like "
                f"{max(1, round(train / (run.world * max(1, part)))) * run.world * max(1, part)}.",
                config.at(TRAIN),
            )


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
def _no_disk(job: ScriptJob, site: Site) -> Iterator[Hit]:
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
