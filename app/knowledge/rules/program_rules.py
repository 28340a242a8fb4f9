"""Rules about a program: arguments, process groups, data, precision, DeepSpeed configuration."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lumitui.app.knowledge.program.deepspeed_config import TRAIN, Config, Offload
from lumitui.app.knowledge.program.program_facts import Call
from lumitui.app.knowledge.program.step_program import (
    STAGE_IT,
    ParserOptions,
    StepProgram,
    configurations,
    downloads,
    given_options,
    launched,
    options_of,
    runs,
)
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.node import Precision
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import Position

_ARGPARSE = "docs.python.org, argparse: parse_args, allow_abbrev"
_LAUNCHERS = (
    "nproc-per-node nnodes node-rank master-addr master-port rdzv-id rdzv-backend rdzv-endpoint "
    "rdzv-conf standalone max-restarts redirects tee no-python num-processes num-machines "
    "machine-rank main-process-ip main-process-port num-gpus num-nodes hostfile numa-binding"
)
"""Options of torchrun, accelerate and DeepSpeed's launcher."""
_SEVERAL = re.compile(r"--?[A-Za-z][\w-]*\s+\S")
_ONE_GPU = re.compile(r"(?:cuda:|hip:|gpu:)?\d{1,2}")
_DEVICE = ("device", "gpu", "gpu_id", "gpu_ids", "device_id", "device_ids", "cuda_device",
           "local_rank", "cuda")  # fmt: skip


@rule(
    "unknown-argument",
    "warning",
    "an argument that the program does not define",
    why="argparse prints its usage and exits with code 2: all ranks end within a second.",
    source=_ARGPARSE,
)
def _unknown(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        options = options_of(run)
        if options is None:
            continue
        for number in given_options(run):
            word = run.step.arguments[number]
            flag = word.known.partition("=")[0]
            if "$" in flag or _SEVERAL.match(word.known) or word.at.field == "deepspeed.config":
                continue
            added = job.origin == "job file" and flag in ("--deepspeed", "--deepspeed_config")
            if not options.knows(word.known) and not added:  # by lumitui, not by the user
                yield Hit(
                    f"{options.file} does not define {flag}: argparse ends each rank with exit "
                    "code 2.",
                    _instead(job, options, flag),
                    word.at,
                    severity="error" if options.sure else None,
                )


def _instead(job: ScriptJob, options: ParserOptions, flag: str) -> str:
    if flag.lstrip("-").replace("_", "-") in _LAUNCHERS.split():
        return (
            "Omit it: lumitui passes it to the launcher."
            if job.origin == "job file"
            else f"Write it before {options.file}, where the launcher reads it."
        )
    if near := options.near(flag):
        return f"Write {near}, which the program defines."
    known = ", ".join(options.flags[:8]) + (", …" if len(options.flags) > 8 else "")
    return f"Write an argument that the program defines ({known}), or add this one to it."


@rule(
    "arguments-in-one-word",
    "warning",
    "several arguments in one entry",
    why="No shell splits the entry at its spaces: the program gets one unknown argument.",
    source=_ARGPARSE,
)
def _several(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for step in job.training:
        program = step.program.known if step.program else ""
        text = job.files.get(program.removeprefix("./"), "")
        if not step.python or "shlex" in text:
            continue
        for word in step.arguments:
            if _SEVERAL.match(word.known) and "$" not in word.known:
                parts = ", ".join(word.known.split())
                yield Hit(
                    f"'{word.known}' is one argument with spaces in it, because no shell splits "
                    "it.",
                    f"Write [{parts}]."
                    if job.origin == "job file"
                    else f"Write {word.known} without quotes.",
                    word.at,
                )


@rule(
    "one-device-for-all",
    "warning",
    "an argument that puts all ranks of a node on one GPU",
    why="NCCL refuses this, or the ranks run out of memory. The other GPUs are idle but billed.",
    source="docs.pytorch.org/tutorials/intermediate/ddp_tutorial; NVIDIA/nccl, src/init.cc: "
    "Duplicate GPU detected; github.com/Peterande/D-FINE/issues/289",
)
def _one_device(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for step in () if site.node.on_cpu else job.training:
        per_node = step.rank.per_node or 1
        if per_node < 2 or step.rank.visible_gpus == "one":
            continue
        for flag, value in step.named_arguments():
            named = flag.lstrip("-").replace("-", "_") in _DEVICE
            if named and _ONE_GPU.fullmatch(value.known):
                yield Hit(
                    f"{flag} {value.known} puts all {per_node} ranks of a node on one GPU.",
                    "Omit the argument, and make each rank use the GPU numbered LOCAL_RANK.",
                    value.at,
                )


_TORCH = "docs.pytorch.org/docs/stable/distributed"
_HERE = ("localhost", "127.0.0.1", "0.0.0.0")


@rule(
    "spawn-in-ranks",
    "error",
    "mp.spawn in a program that the launcher already starts once per GPU",
    why="On a node with eight GPUs, 8 x 8 processes share the same GPUs and port.",
    source="docs.pytorch.org/docs/stable/elastic/run: torchrun starts the workers itself; "
    "github.com/pytorch/ignite/issues/1968",
)
def _spawn(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        per_node = run.step.rank.per_node or 1
        if per_node < 2:
            continue
        for program, call in run.calls("torch.multiprocessing.spawn"):
            count = run.number(call.get("nprocs", 2))
            if not program.always(call) or count == 1:
                continue
            made = f"{per_node} x {count}" if count else f"{per_node} times as many"
            yield Hit(
                f"{program.file} starts its ranks with mp.spawn, but the job already starts "
                f"{per_node} on each node: {made} processes.",
                "Call the function directly, with the rank from the environment"
                + ("." if job.origin == "job file" else "; or start it once on each node."),
                call.at,
            )


@rule(
    "master-in-program",
    "error",
    "a local address for ranks on several nodes",
    why="On each node, `localhost` means that node, so the other ranks never find rank 0.",
    source=f"{_TORCH}, TCP initialization",
)
def _master(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if run.nodes < 2:
            continue
        found = [
            (run.value(one.value), one.at, "Remove the line")
            for one in run.environment("MASTER_ADDR")
            if not one.guards
        ]
        for _program, call in run.calls("init_process_group"):
            method = run.value(call.get("init_method", 1))
            if isinstance(method, str) and method.startswith("tcp://") and not call.guards:
                host = method.removeprefix("tcp://").partition(":")[0]
                found.append((host, call.at, "Omit init_method"))
        for value, at, do in found:
            if value in _HERE:
                yield Hit(
                    f"{at.file} sets the address of rank 0 to {value}, but the job has "
                    f"{run.nodes} nodes: ranks on the other nodes never find it.",
                    f"{do}: MASTER_ADDR is already set to the first node."
                    if job.origin == "job file"
                    else f"{do}, and set MASTER_ADDR in the job script.",
                    at,
                )


_COLLECTIVES = tuple(
    f"torch.distributed.{name}"
    for name in ("barrier", "all_reduce", "all_gather", "all_gather_object", "reduce_scatter")
)

_PLAIN = {
    "barrier": 0,
    "all_reduce": 2,
    "all_gather": 2,
    "all_gather_object": 2,
    "reduce_scatter": 3,
}
"""Number of positional arguments before the group."""

_OF_DEEPSPEED = ("save_checkpoint", "load_checkpoint", "save_16bit_model")
"""Methods of DeepSpeed's engine that wait for all ranks."""


@rule(
    "collective-on-one-rank",
    "error",
    "a collective that only one rank calls",
    why="Calls such as a barrier, DeepSpeed's save_checkpoint or FSDP's state_dict wait for "
    "all ranks, until they time out.",
    source=f"{_TORCH}, Collective functions; deepspeed.readthedocs.io, Model Checkpointing; "
    "docs.pytorch.org/docs/stable/fsdp; github.com/deepspeedai/DeepSpeed/issues/2993",
)
def _alone(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if run.world < 2:
            continue
        for program in run.files:
            sharded = _sharded(run)
            found = [
                call for call in program.calls if call.name in _COLLECTIVES or call.name in sharded
            ]
            guarded = [call for call in found if program.reach(call) in ("one", "local")]
            apart = [call for call in found if any(one.kind != "other" for one in call.guards)]
            for call in guarded:
                # The other ranks may make their own call, in the else branch or elsewhere.
                paired = any(one is not call and one.name == call.name for one in guarded + apart)
                if not paired and not _of_group(call):
                    who = "rank 0" if program.reach(call) == "one" else "one rank of each node"
                    yield Hit(
                        f"Only {who} calls {call.last}(), which waits for all {run.world} ranks: "
                        "the job hangs.",
                        "Call it outside the condition, on all ranks.",
                        call.at,
                    )


def _of_group(call: Call) -> bool:
    """Return whether a collective may belong to a group without some ranks."""
    plain = [one for one in call.arguments if not one.name]
    return bool(call.get("group")) or call.open or len(plain) > _PLAIN.get(call.last, len(plain))


def _sharded(run: StepProgram) -> frozenset[str]:
    """Return the names, with their objects, of calls that gather or write all ranks' data."""
    makers = {
        "deepspeed.initialize": _OF_DEEPSPEED,
        "torch.distributed.fsdp.FullyShardedDataParallel": ("state_dict",),
    }
    return frozenset(
        f"{name}.{method}"
        for maker, methods in makers.items()
        for _program, call in run.calls(maker)
        if (name := call.target.strip("()[]").partition(",")[0].strip())
        for method in methods
    )


_DATA = "docs.pytorch.org/docs/stable/data"
_LOADER = "torch.utils.data.DataLoader"
_TRAINS = re.compile(r"train", re.IGNORECASE)


def _is_for_training(call: Call) -> bool:
    shuffle, first = call.get("shuffle"), call.get("dataset", 0)
    words = call.target + (first.text if first else "")
    return bool(_TRAINS.search(words)) or (shuffle is not None and shuffle.value is True)


@rule(
    "no-sampler",
    "warning",
    "a loader that gives every rank the same data",
    why="Without a DistributedSampler, each rank trains on the whole data set: 8 ranks do "
    "everything 8 times.",
    source=f"{_DATA}, DistributedSampler; github.com/Parskatt/RoMa/issues/32",
)
def _no_sampler(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if run.world < 2 or not run.by_hand or run.uses("deepspeed", "webdataset"):
            continue
        if run.has("split_dataset_by_node", "DistributedSampler", "shard", "Subset"):
            continue  # it divides the data itself, perhaps before the loader
        for program, call in run.calls(_LOADER):
            given = call.open or call.get("sampler", 3) or call.get("batch_sampler", 4)
            one_gpu = any(guard.kind == "other" for guard in call.guards)  # only for one GPU?
            if not given and _is_for_training(call) and not one_gpu:
                yield Hit(
                    f"{program.file} reads the training data without a DistributedSampler: each of "
                    f"the {run.world} ranks trains on all of it.",
                    "Pass sampler=DistributedSampler(dataset) to the loader, without shuffle=True.",
                    call.at,
                )


_PROFILE = "the site's profile, internet_on_compute_nodes"
_MOST = 5  # maximum number of calls in a message
_FETCH_IT = (
    "Download it on a machine with internet access, copy it to the site, and pass its path to "
    "the program; with HF_HUB_OFFLINE=1, the program reads it from HF_HOME."
)


@rule(
    "offline-script",
    "warning",
    "a program that downloads on nodes without internet",
    why="The download times out in each rank.",
    source=_PROFILE,
)
def _offline(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if site.internet_on_compute_nodes:
        return
    for run in runs(job):
        for program in run.files:
            found = [one for one in downloads(program) if not _staged(job, one.words)]
            if found:
                more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
                calls = ", ".join(f"{one.words} on line {one.at.line}" for one in found[:_MOST])
                yield Hit(
                    f"The nodes of {site.name} have no internet access, but {program.file} would "
                    f"download: {calls}{more}.",
                    STAGE_IT if job.origin == "job file" else _FETCH_IT,
                    found[0].at,
                )


def _staged(job: ScriptJob, words: str) -> bool:
    """Return whether the job uses a cache that may already contain the item."""
    by_hub = words.startswith(("from_pretrained", "load_dataset", "snapshot", "hf_hub", "load_mod"))
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
    return by_hub and any(one.value in ("1", "true", "True") for one in job.settings(*names))


_CONFIG = "github.com/deepspeedai/DeepSpeed, deepspeed/runtime/config.py"


@rule(
    "deepspeed-batch",
    "error",
    "batch sizes that do not match the number of ranks",
    why="DeepSpeed fails unless train_batch_size is micro batch x accumulation x ranks.",
    source=f"{_CONFIG}, _batch_assertion",
)
def _batch(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run, config in configurations(job):
        train, micro, steps = config.train, config.micro, config.accumulation
        if not run.world or not isinstance(train, int) or "auto" in (micro, steps):
            continue
        if any(type(value) is int and value < 1 for value in (train, micro, steps)):
            yield Hit(
                f"{config.file} has a batch size or an accumulation below 1: DeepSpeed fails.",
                "Write whole numbers of 1 or more.",
                config.at(TRAIN),
            )
            continue
        share = train // run.world
        if isinstance(micro, int) and isinstance(steps, int):
            if micro * steps * run.world != train:
                yield Hit(
                    f"{TRAIN} is {train} in {config.file}, but {micro} per GPU x {steps} steps x "
                    f"{run.world} ranks make {micro * steps * run.world}: DeepSpeed fails.",
                    f"Write {TRAIN}: {micro * steps * run.world}, or omit it.",
                    config.at(TRAIN),
                )
            continue
        part = micro if isinstance(micro, int) else steps if isinstance(steps, int) else 1
        if share < 1:
            yield Hit(
                f"{TRAIN} is {train} in {config.file}, less than the {run.world} ranks of this "
                "job: some ranks would get no sample.",
                f"Write {TRAIN}: {run.world}, or a multiple of it, or use fewer nodes.",
                config.at(TRAIN),
            )
        elif part < 1 or train % (run.world * part):
            each = f" x {part}" if part != 1 else ""
            yield Hit(
                f"{TRAIN} is {train} in {config.file}, which is not a multiple of "
                f"{run.world} ranks{each}: DeepSpeed fails.",
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
    why="/tmp is in memory there, so offloaded data counts as the job's memory.",
    source="the site's profile, node.local_disk",
)
def _no_disk(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for _run, config in configurations(job):
        for name, found in _offloads(config):
            path = found.nvme_path
            if found.device != "nvme" or not path:
                continue
            diskless = site.node.local_disk.startswith("none")
            if site.is_shared(path):
                what = "every step would rewrite the data on a shared file system"
            elif diskless:
                what = f"the nodes of {site.name} have no disk ({site.node.local_disk})"
            else:
                continue
            yield Hit(
                f"`{name}` in {config.file} offloads to {path}: {what}.",
                'Write "device": "cpu", or use more GPUs with ZeRO stage 3.',
                config.at("zero_optimization", name, "nvme_path"),
            )


_TRUE = (None, "True", "true", "1", "yes")
_PRECISIONS: tuple[Precision, ...] = ("fp16", "bf16")


@dataclass(frozen=True)
class _Use:
    """A position at which a run selects a precision."""

    precision: Precision
    words: str
    at: Position
    of_object: bool = False
    """Whether an object of the program selects it for itself, such as one `autocast` block."""


def _uses(run: StepProgram) -> Iterator[_Use]:
    """Yield the positions that select a precision: command line, program text and configuration."""
    yield from _arguments(run)
    yield from _calls(run)
    for config in run.configs:
        if config.fp16 is True:
            yield _Use("fp16", "fp16.enabled", config.at("fp16", "enabled"))
        if config.bf16 is True:
            yield _Use("bf16", "bf16.enabled", config.at("bf16", "enabled"))


def _arguments(run: StepProgram) -> Iterator[_Use]:
    for precision in _PRECISIONS:
        given = run.given(precision)
        if given and given.value in _TRUE:
            yield _Use(precision, f"--{precision}", given.at)
    for name in ("mixed_precision", "precision", "dtype", "torch_dtype"):
        given = run.given(name)
        if given and given.value and (found := _named(given.value)):
            yield _Use(found, f"--{name}={given.value}", given.at)
    launched = run.step.launcher_options.get("mixed-precision", "mixed_precision")
    if run.step.launcher == "accelerate" and launched and (found := _named(launched.value or "")):
        yield _Use(found, f"--mixed_precision={launched.value}", launched.at)


def _calls(run: StepProgram) -> Iterator[_Use]:
    for _program, call in run.calls("TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig"):
        for name in _PRECISIONS:
            if call.is_true(name):
                yield _Use(name, f"{name}=True", call.at)
    for _program, call in run.calls("autocast", "Trainer", "Accelerator", "Fabric"):
        if call.last == "Trainer" and not run.lightning:
            continue
        for one in call.arguments:
            known = run.value(one)
            text = known if isinstance(known, str) else one.text
            wanted = one.name in ("dtype", "precision", "mixed_precision") or not one.name
            if wanted and (found := _named(text)):
                yield _Use(found, f"{call.last}({text})", call.at, of_object=True)


def _named(text: str) -> Precision | None:
    """Return the precision that a value names: `torch.bfloat16`, `bf16-mixed`, `16-mixed`."""
    lowered = text.lower()
    if "bf16" in lowered or "bfloat16" in lowered:
        return "bf16"
    plain = re.fullmatch(r"(?:torch\.)?(?:fp16|float16|half|16(?:-mixed|-true)?)", lowered)
    return "fp16" if plain else None


@rule(
    "fp16-and-bf16",
    "error",
    "fp16 and bf16 enabled together",
    why="DeepSpeed fails with `bfloat16 and fp16 modes cannot be simultaneously enabled`, "
    "transformers with `At most one of fp16 and bf16 can be True`.",
    source="github.com/deepspeedai/DeepSpeed, deepspeed/runtime/config.py; transformers, "
    "training_args.py",
)
def _both(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in launched(job):
        uses = [use for use in _uses(run) if not use.of_object]
        chosen = {use.precision: use for use in uses}
        if "fp16" in chosen and "bf16" in chosen:
            one, other = chosen["fp16"], chosen["bf16"]
            yield Hit(
                f"Both fp16 ({one.words}) and bf16 ({other.words}) are enabled: the program "
                "refuses this.",
                "Keep one of them.",
                max(one.at, other.at),
            )


@rule(
    "doubtful-precision",
    "warning",
    "a precision that the image computes incorrectly",
    why="Training may not converge.",
    source="the site's profile, doubtful_precisions of the container's images",
)
def _doubtful(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        image = run.step.container.image if run.step.container else None
        if image is None:
            continue
        variants = [
            variant
            for container in site.containers.values()
            for variant in container.variants
            if re.search(variant.matches, image.known) and variant.doubtful_precisions
        ]
        for use in _uses(run):
            for variant in variants:
                if use.precision in variant.doubtful_precisions:
                    yield Hit(
                        f"{use.words} computes in {use.precision}, but in this image "
                        f"{variant.doubtful_precisions[use.precision]}.",
                        "Use bf16, or a later image.",
                        use.at,
                    )
