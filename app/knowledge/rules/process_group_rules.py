"""Rules about process groups in a program: how ranks meet, and what they do together."""

from collections.abc import Iterator

from lumitui.app.knowledge.program.program_facts import Call
from lumitui.app.knowledge.program.step_program import StepProgram, runs
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.profile import Site

_TORCH = "docs.pytorch.org/docs/stable/distributed"
_HERE = ("localhost", "127.0.0.1", "0.0.0.0")


@rule(
    "spawn-in-ranks",
    "error",
    "mp.spawn in a program that the launcher starts once for each GPU",
    why="Each of the launcher's processes starts a process for each GPU again: 8 x 8 on a node of "
    "eight, on the same GPUs and the same port.",
    source="docs.pytorch.org/docs/stable/elastic/run: torchrun starts the workers itself; "
    "github.com/pytorch/ignite/issues/1968",
)
def _spawn(job: ScriptJob, site: Site) -> Iterator[Hit]:
    per_node = job.rank.per_node or 1
    if per_node < 2:
        return
    for run in runs(job):
        for program, call in run.calls("torch.multiprocessing.spawn"):
            count = run.number(call.get("nprocs", 2))
            if not program.always(call) or count == 1:
                continue
            made = f"{per_node} x {count}" if count else f"{per_node} times as many"
            yield Hit(
                f"{program.file} starts its ranks by mp.spawn, and the job already starts "
                f"{per_node} on each node: {made} processes.",
                "Call the function directly, with the rank from the environment"
                + ("." if job.origin == "job file" else "; or start it once on each node."),
                call.at,
            )


@rule(
    "master-in-program",
    "error",
    "an address of this machine for ranks on several nodes",
    why="`localhost` means a different machine on each node: the ranks of the other nodes never "
    "find rank 0, and all wait until the timeout.",
    source=f"{_TORCH}, TCP initialization",
)
def _master(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if job.nodes < 2:
        return
    for run in runs(job):
        found = [
            (run.value(one.value), one.at, "Remove the line")
            for one in run.environment("MASTER_ADDR")
            if not one.guards
        ]
        for _program, call in run.calls("init_process_group"):
            method = run.value(call.get("init_method", 1))
            if isinstance(method, str) and method.startswith("tcp://") and not call.guards:
                host = method.removeprefix("tcp://").partition(":")[0]
                found.append((host, call.at, "Leave init_method out"))
        for value, at, do in found:
            if value in _HERE:
                yield Hit(
                    f"{at.file} sets the address of rank 0 to {value}, and the job has {job.nodes} "
                    "nodes: the others never find it.",
                    f"{do}: MASTER_ADDR is set already, to the first node."
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
"""Arguments by position that are before the group."""

_OF_DEEPSPEED = ("save_checkpoint", "load_checkpoint", "save_16bit_model")
"""Methods of DeepSpeed's engine that wait for all ranks."""


@rule(
    "collective-on-one-rank",
    "error",
    "a collective that one rank alone calls",
    why="A barrier or a reduction waits for all ranks, and so do save_checkpoint of DeepSpeed and "
    "state_dict of FSDP. If only rank 0 calls it, rank 0 waits until the timeout while the "
    "others continue to the next collective.",
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


def _of_group(call: Call) -> bool:
    """Return whether a collective may be one of a group that not all ranks are in."""
    plain = [one for one in call.arguments if not one.name]
    return bool(call.get("group")) or call.open or len(plain) > _PLAIN.get(call.last, len(plain))


def _sharded(run: StepProgram) -> frozenset[str]:
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
