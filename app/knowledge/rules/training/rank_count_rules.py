"""Rules about the training itself: what changes with the number of ranks, and what it costs."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.program.step_program import Run, runs
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site

_GOYAL = "arXiv 1706.02677 (Goyal et al.), section 2.1: linear scaling and warm-up"
_OPTIMIZERS = ("SGD",)
"""Those for which the source measured that the rate grows with the batch; Adam's does not so."""
_SHARED = ("DistributedDataParallel", "FullyShardedDataParallel", "fully_shard", "initialize",
           "init_process_group", "prepare")  # fmt: skip
"""What makes one training of all ranks."""
_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR")
_NODE_OWN = ("/tmp", "/dev/shm", "/local", "/var/tmp", "$TMPDIR", "$LOCAL_SCRATCH")


@rule(
    "learning-rate-not-scaled",
    "note",
    "a fixed learning rate on several nodes",
    why="More ranks make a larger global batch and fewer steps an epoch. With the same learning "
    "rate the model learns less in an epoch.",
    source=_GOYAL,
)
def _rate(job: Job, site: Site) -> Iterator[Hit]:
    if job.nodes < 2:
        return
    for run in runs(job):
        by_config = any(config.optimizer for config in run.configs)
        if run.world < 2 or run.trainer or by_config or _scales(run) or not run.has(*_SHARED):
            continue
        for program, call in run.calls(*_OPTIMIZERS):
            rate = call.get("lr", 1)
            known = run.value(rate)
            if rate is None or not isinstance(known, int | float) or "world" in rate.mentions:
                continue
            if not rate.constant and run.given("lr", "learning_rate"):
                continue  # somebody has chosen it for this job
            yield Hit(
                f"{program.file} keeps the learning rate {known:g} on {run.world} ranks, whose "
                "global batch is that many times as large.",
                "Multiply it by the number of ranks and warm up for some epochs, or keep the "
                "global batch.",
                call.at,
            )
            break


def _scales(run: Run) -> bool:
    """Return whether some value is multiplied or divided by the number of ranks."""
    return any(
        "world" in one.value.mentions and re.search(r"[*/]", one.value.text)
        for program in run.files
        for one in program.settings
    )


@rule(
    "accumulation-on-nodes",
    "note",
    "accumulated gradients on several nodes",
    why="Accumulation stands in for GPUs that are not there. With more ranks the same global batch "
    "needs fewer micro steps.",
    source="huggingface.co/docs/transformers/perf_train_gpu_one, gradient accumulation",
)
def _accumulation(job: Job, site: Site) -> Iterator[Hit]:
    if job.nodes < 2:
        return
    for run in runs(job):
        given = run.given("gradient_accumulation_steps", "accumulation_steps", "accumulate")
        if given is None or given.value is None or not given.value.isdecimal() or not run.world:
            continue
        steps = int(given.value)
        if steps >= job.nodes:
            yield Hit(
                f"{steps} micro steps are accumulated on {job.nodes} nodes: a step takes "
                f"{steps * run.world} micro batches.",
                f"Use {max(1, steps // job.nodes)} for the global batch that one node had.",
                given.at,
            )


@rule(
    "unused-parameters",
    "note",
    "DDP that looks for unused parameters in every step",
    why="find_unused_parameters=True goes through the whole graph after each forward pass, and "
    "keeps gradients from being sent early. Only a model whose steps skip layers needs it.",
    source="docs.pytorch.org, DistributedDataParallel: find_unused_parameters",
)
def _unused(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        found = run.calls("DistributedDataParallel", "TrainingArguments", "DDPStrategy")
        for program, call in found:
            names = ("find_unused_parameters", "ddp_find_unused_parameters")
            if any(call.is_true(name) for name in names) and not run.configs:
                yield Hit(
                    f"{program.file} lets DDP look for unused parameters in every step.",
                    "Leave it out unless DDP says that parameters got no gradient.",
                    call.at,
                )


@rule(
    "compile-cache-shared",
    "warning",
    "compiled kernels on a shared file system",
    why="All ranks write and lock the same files: on LUMI 1 of 128 ranks failed, and compiling "
    "took 42 s instead of 28 s.",
    source="aniskhan25/lumi-apptainer-bench, FINDINGS 4.7 (2026)",
)
def _cache(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        for one in run.environment(*_CACHES):
            path = run.value(one.value)
            shared = isinstance(path, str) and not path.startswith(_NODE_OWN)
            if shared and run.world > 1:
                name = one.target.removeprefix("environ[").removesuffix("]")
                yield Hit(
                    f"{one.at.file} keeps compiled kernels of {run.world} ranks in {path}, which "
                    "all ranks share.",
                    f"Set {name} to a folder below /tmp in the job script.",
                    one.at,
                )


@rule(
    "anomaly-detection",
    "warning",
    "autograd's anomaly detection, left on in a job",
    why="Anomaly detection checks each gradient and keeps a trace of each operation: a step takes "
    "several times as long.",
    source="docs.pytorch.org, torch.autograd.detect_anomaly: only for debugging",
)
def _anomaly(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        for program, call in run.calls("set_detect_anomaly", "detect_anomaly"):
            first = call.get("mode", 0)
            if not call.guards and (first is None or first.value is True):
                yield Hit(
                    f"{program.file} turns anomaly detection on, which makes each step several "
                    "times as slow.",
                    "Remove it, or turn it on by an argument.",
                    call.at,
                )


RULES: tuple[Rule, ...] = (_rate, _accumulation, _unused, _cache, _anomaly)
"""Every rule of this subject."""
