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


RULES: tuple[Rule, ...] = (_alone,)
"""Every rule of this subject."""
