"""Rules about how a program shares its data among ranks, and feeds them."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.program.program_facts import Call, Program
from lumitui.app.knowledge.program.step_program import Run, runs
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site

_DATA = "docs.pytorch.org/docs/stable/data"
_LOADER = "torch.utils.data.DataLoader"
_TRAINS = re.compile(r"train", re.IGNORECASE)


def _loaders(run: Run) -> Iterator[tuple[Program, Call]]:
    """Yield the loaders whose arguments are all in the text."""
    return ((program, call) for program, call in run.calls(_LOADER) if not call.open)


def _is_for_training(call: Call) -> bool:
    shuffle, first = call.get("shuffle"), call.get("dataset", 0)
    words = call.target + (first.text if first else "")
    return bool(_TRAINS.search(words)) or (shuffle is not None and shuffle.value is True)


@rule(
    "no-sampler",
    "warning",
    "a loader that gives every rank the same data",
    why="DDP shares gradients, not data: without a DistributedSampler each rank reads the whole "
    "data set, and an epoch on 8 ranks computes everything 8 times.",
    source=f"{_DATA}, DistributedSampler",
)
def _no_sampler(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if run.world < 2 or not run.by_hand or run.uses("deepspeed", "webdataset"):
            continue
        if run.has("split_dataset_by_node", "DistributedSampler", "shard", "Subset"):
            continue  # it shares the data in a way of its own, maybe before the loader
        for program, call in _loaders(run):
            given = call.get("sampler", 3) or call.get("batch_sampler", 4)
            if not given and _is_for_training(call) and not _distributed_else(call):
                yield Hit(
                    f"{program.file} reads the training data without a DistributedSampler: each of "
                    f"{run.world} ranks trains on all of it.",
                    "Give the loader sampler=DistributedSampler(dataset), without shuffle=True.",
                    call.at,
                )


def _distributed_else(call: Call) -> bool:
    """Return whether the loader may be that of a run on one GPU."""
    return any(guard.kind == "other" for guard in call.guards)


RULES: tuple[Rule, ...] = (_no_sampler,)
"""Every rule of this subject."""
