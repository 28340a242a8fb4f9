"""Rules about a program's process group: whether there is one, what carries it, how it ends."""

from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.program.program_facts import Call
from lumitui.app.knowledge.program.step_program import Run, runs
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site

_TORCH = "docs.pytorch.org/docs/stable/distributed"

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
"""Arguments by position that stand before the group."""

_OF_DEEPSPEED = ("save_checkpoint", "load_checkpoint", "save_16bit_model")
"""Methods of DeepSpeed's engine that wait for all ranks."""


@rule(
    "no-process-group",
    "error",
    "DDP without a process group",
    why="DistributedDataParallel raises `Default process group has not been initialized`.",
    source=_TORCH,
)
def _no_group(job: Job, site: Site) -> Iterator[Hit]:
    makers = ("init_process_group", "init_distributed", "init_device_mesh", "Accelerator")
    for run in runs(job):
        if run.lightning or not run.closed or run.has(*makers, "initialize_model_parallel"):
            continue
        for program, call in run.calls("torch.nn.parallel.DistributedDataParallel"):
            yield Hit(
                f"{program.file} wraps the model in DistributedDataParallel, and makes no process "
                "group before: PyTorch refuses it.",
                'Call torch.distributed.init_process_group("nccl") first.',
                call.at,
            )


@rule(
    "no-destroy",
    "note",
    "a process group that is never left",
    why="Without destroy_process_group() NCCL may hang or print errors while the ranks end; "
    "PyTorch warns about it since 2.4.",
    source=f"{_TORCH}, Shutdown",
)
def _no_destroy(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if not run.by_hand or not run.closed or run.has("destroy_process_group", "os._exit"):
            continue
        for program, call in run.calls("init_process_group"):
            if _backend(run, call) == "gloo":
                continue  # it holds no GPU, and says nothing
            yield Hit(
                f"{program.file} makes a process group and never leaves it: NCCL may hang or print "
                "errors at the end.",
                "Call torch.distributed.destroy_process_group() at the end.",
                call.at,
            )


def _backend(run: Run, call: Call) -> str:
    value = run.value(call.get("backend", 0))
    return value if isinstance(value, str) else ""


@rule(
    "gloo-on-gpus",
    "warning",
    "gloo between GPUs",
    why="gloo copies gradients through the CPU and TCP: several times slower than NCCL or RCCL.",
    source=f"{_TORCH}, Which backend to use?",
)
def _gloo(job: Job, site: Site) -> Iterator[Hit]:
    if site.node.on_cpu or (job.rank.world_size or 0) < 2:
        return
    for run in runs(job):
        if not run.has("cuda", "set_device", "torch.cuda.is_available") or not run.by_hand:
            continue
        for program, call in run.calls("init_process_group"):
            if _backend(run, call) == "gloo" and not call.guards:
                yield Hit(
                    f"{program.file} exchanges the gradients of {run.world} ranks by gloo, through "
                    "the CPU and TCP, while the ranks compute on GPUs.",
                    'Write backend="nccl"; on AMD it is RCCL.',
                    call.at,
                )


@rule(
    "nccl-without-gpu",
    "error",
    "NCCL where there is no GPU",
    why="NCCL exchanges GPU memory only: without a GPU it raises "
    "`ProcessGroupNCCL is only supported with GPUs, no GPUs found`.",
    source=f"{_TORCH}, Which backend to use?",
)
def _nccl(job: Job, site: Site) -> Iterator[Hit]:
    if not site.node.on_cpu:
        return
    for run in runs(job):
        for program, call in run.calls("init_process_group"):
            if _backend(run, call) == "nccl" and not call.guards:
                yield Hit(
                    f"{program.file} asks for NCCL, and {site.name} has no GPUs.",
                    'Write backend="gloo".',
                    call.at,
                )


@rule(
    "barrier-without-device",
    "warning",
    "a barrier before any rank has said which GPU is its own",
    why="NCCL's barrier runs on a GPU. Without set_device or device_id PyTorch guesses it from the "
    "rank, and warns that a wrong guess can hang.",
    source="github.com/pytorch/pytorch, ProcessGroupNCCL.cpp: devices used by this process are "
    "currently unknown",
)
def _barrier(job: Job, site: Site) -> Iterator[Hit]:
    if (job.rank.per_node or 1) < 2 or job.rank.visible_gpus == "one" or site.node.on_cpu:
        return
    for run in runs(job):
        if not run.by_hand or not run.closed or run.has("set_device"):
            continue
        groups = [call for _program, call in run.calls("init_process_group")]
        if not groups or any(call.get("device_id") or call.open for call in groups):
            continue
        if any(_backend(run, call) not in ("nccl", "") for call in groups):
            continue
        for program, call in run.calls("torch.distributed.barrier"):
            if not call.arguments:
                yield Hit(
                    f"{program.file} calls barrier() and no rank has set its GPU: PyTorch guesses "
                    "it, and a wrong guess hangs.",
                    "Call torch.cuda.set_device(local_rank) before init_process_group.",
                    call.at,
                )
                break


@rule(
    "many-process-groups",
    "note",
    "process groups made in a loop",
    why="Each group of GPUs is a communicator: it takes 0.65 GiB of GPU memory that PyTorch does "
    "not show, and its set-up over the network takes seconds.",
    source="aniskhan25/lumi-apptainer-bench, FINDINGS 4.2 (MI250X, 2026)",
)
def _groups(job: Job, site: Site) -> Iterator[Hit]:
    if job.nodes < 2 or site.node.on_cpu:
        return
    for run in runs(job):
        for program, call in run.calls("torch.distributed.new_group"):
            if program.in_loop(call):
                yield Hit(
                    f"{program.file} makes process groups in a loop, each a communicator over "
                    f"{job.nodes} nodes with 0.65 GiB of GPU memory on its ranks.",
                    "Make few groups, once; init_device_mesh makes those of a grid of ranks.",
                    call.at,
                )


@rule(
    "collective-on-one-rank",
    "error",
    "a collective that one rank alone calls",
    why="A barrier or a reduction waits for all ranks, and so do save_checkpoint of DeepSpeed and "
    "state_dict of FSDP. Where only rank 0 calls it, rank 0 waits until the timeout, and the "
    "others go on to the next collective.",
    source=f"{_TORCH}, Collective functions; deepspeed.readthedocs.io, Model Checkpointing; "
    "docs.pytorch.org/docs/stable/fsdp",
)
def _alone(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if run.world < 2:
            continue
        for program in run.files:
            sharded = _sharded(run)
            found = [
                call for call in program.calls if call.name in _COLLECTIVES or call.name in sharded
            ]
            guarded = [call for call in found if program.reach(call) in ("one", "local")]
            apart = [call for call in found if _asks_for_ranks(call)]
            for call in guarded:
                # The other ranks may have one of their own, in the else branch or elsewhere.
                paired = any(one is not call and one.name == call.name for one in guarded + apart)
                if not paired and not _of_group(call):
                    who = "rank 0" if program.reach(call) == "one" else "one rank of each node"
                    yield Hit(
                        f"Only {who} comes to {call.last}() in {program.file}, and it waits for "
                        f"all {run.world} ranks: the job hangs.",
                        "Call it outside the condition, on all ranks.",
                        call.at,
                    )


def _asks_for_ranks(call: Call) -> bool:
    return any(guard.kind != "other" for guard in call.guards)


def _of_group(call: Call) -> bool:
    """Return whether a collective may be one of a group that not all ranks are in."""
    plain = [one for one in call.arguments if not one.name]
    return bool(call.get("group")) or call.open or len(plain) > _PLAIN.get(call.last, len(plain))


def _sharded(run: Run) -> frozenset[str]:
    """Return the calls that gather or write what all ranks hold, by the names of their objects."""
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


RULES: tuple[Rule, ...] = (
    _no_group,
    _no_destroy,
    _gloo,
    _nccl,
    _barrier,
    _groups,
    _alone,
)
"""Every rule of this subject."""
