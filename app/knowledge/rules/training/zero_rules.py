"""Rules about what DeepSpeed's configuration turns on: ZeRO, offloading, loss scale."""

from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.program.deepspeed_config import Config, Offload
from lumitui.app.knowledge.program.step_program import configurations
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site

_ZERO = "deepspeed.readthedocs.io, ZeRO: offload_optimizer, offload_param"


@rule(
    "offload-stage",
    "warning",
    "offloading that the ZeRO stage does not have",
    why="ZeRO offloads the optimizer from stage 1 on, and the weights only at stage 3. Otherwise "
    "the setting has no effect, and the GPU's memory is not spared.",
    source=_ZERO,
)
def _stage(job: Job, site: Site) -> Iterator[Hit]:
    for _run, config in configurations(job):
        stage = config.stage if config.stage is not None else 0
        if not isinstance(stage, int):
            continue
        for name, found, least in (
            ("offload_optimizer", config.offload_optimizer, 1),
            ("offload_param", config.offload_param, 3),
        ):
            if found is not None and stage < least:
                yield Hit(
                    f"{config.file} offloads by {name} at ZeRO stage {stage}, which needs stage "
                    f"{least}: it has no effect.",
                    f'Write "stage": {max(least, 2)}, or remove {name}.',
                    config.at("zero_optimization", name),
                )


def _offloads(config: Config) -> Iterator[tuple[str, Offload]]:
    for name, found in (
        ("offload_optimizer", config.offload_optimizer),
        ("offload_param", config.offload_param),
    ):
        if found is not None:
            yield name, found


@rule(
    "nvme-path-missing",
    "error",
    "offloading to NVMe without a path",
    why="DeepSpeed swaps to files below nvme_path, and ends without one.",
    source=_ZERO,
)
def _no_path(job: Job, site: Site) -> Iterator[Hit]:
    for _run, config in configurations(job):
        for name, found in _offloads(config):
            if found.device == "nvme" and not found.nvme_path:
                yield Hit(
                    f'{config.file} offloads by {name} to "nvme", and names no nvme_path.',
                    "Give nvme_path a folder on a disk of the node.",
                    config.at("zero_optimization", name),
                )


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


@rule(
    "fixed-loss-scale",
    "warning",
    "a fixed loss scale",
    why="With a fixed scale an overflow is neither skipped nor cured: the loss becomes NaN. 0 lets "
    "DeepSpeed adapt it.",
    source="deepspeed.ai/docs/config-json, fp16.loss_scale",
)
def _loss_scale(job: Job, site: Site) -> Iterator[Hit]:
    for _run, config in configurations(job):
        if config.fp16 is True and config.loss_scale:
            yield Hit(
                f"{config.file} fixes the loss scale at {config.loss_scale:g}: an overflow is not "
                "cured.",
                'Write "loss_scale": 0.',
                config.at("fp16", "loss_scale"),
            )


@rule(
    "unused-with-deepspeed",
    "note",
    "find_unused_parameters with DeepSpeed",
    why="It is an option of DDP. DeepSpeed's engine shares gradients itself and ignores it.",
    source="huggingface.co/docs/transformers/deepspeed; deepspeed/runtime/engine.py",
)
def _unused(job: Job, site: Site) -> Iterator[Hit]:
    for run, config in configurations(job):
        names = ("ddp_find_unused_parameters", "find_unused_parameters")
        for program, call in run.calls("TrainingArguments", "DistributedDataParallel"):
            if any(call.is_true(name) for name in names):
                yield Hit(
                    f"{program.file} asks DDP to find unused parameters, and {config.file} gives "
                    "the gradients to DeepSpeed, which ignores it.",
                    "Leave it out.",
                    call.at,
                )


@rule(
    "activation-checkpointing-unused",
    "note",
    "activation checkpointing that the program never calls",
    why="The key sets DeepSpeed's own checkpointing up. It spares memory only where the model "
    "calls deepspeed.checkpointing.checkpoint.",
    source="deepspeed.readthedocs.io, Activation Checkpointing",
)
def _activation(job: Job, site: Site) -> Iterator[Hit]:
    for run, config in configurations(job):
        if config.activation_checkpointing and run.closed:
            calls = ("deepspeed.checkpointing.checkpoint", "deepspeed.checkpointing.configure")
            if not run.has(*calls) and not run.uses("megatron"):
                yield Hit(
                    f"{config.file} sets activation checkpointing up, and {run.program.file} never "
                    "calls it: no memory is spared.",
                    "Call model.gradient_checkpointing_enable(), or "
                    "deepspeed.checkpointing.checkpoint in the model.",
                    config.at("activation_checkpointing"),
                )


RULES: tuple[Rule, ...] = (
    _stage,
    _no_path,
    _no_disk,
    _loss_scale,
    _unused,
    _activation,
)
"""Every rule of this subject."""
