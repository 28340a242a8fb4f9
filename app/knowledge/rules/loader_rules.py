"""Rules about a program's data: whether each rank gets its own, and whether it is there."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.program.downloads import STAGE_IT, downloads
from lumitui.app.knowledge.program.program_facts import Call
from lumitui.app.knowledge.program.step_program import runs
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.profile import Site

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
    why="DDP shares gradients, not data: without a DistributedSampler each rank reads the whole "
    "data set, and an epoch on 8 ranks computes everything 8 times.",
    source=f"{_DATA}, DistributedSampler; github.com/Parskatt/RoMa/issues/32",
)
def _no_sampler(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if run.world < 2 or not run.by_hand or run.uses("deepspeed", "webdataset"):
            continue
        if run.has("split_dataset_by_node", "DistributedSampler", "shard", "Subset"):
            continue  # it shares the data in a way of its own, maybe before the loader
        for program, call in run.calls(_LOADER):
            given = call.open or call.get("sampler", 3) or call.get("batch_sampler", 4)
            one_gpu = any(guard.kind == "other" for guard in call.guards)  # it may be of such a run
            if not given and _is_for_training(call) and not one_gpu:
                yield Hit(
                    f"{program.file} reads the training data without a DistributedSampler: each of "
                    f"{run.world} ranks trains on all of it.",
                    "Give the loader sampler=DistributedSampler(dataset), without shuffle=True.",
                    call.at,
                )


_PROFILE = "the site's profile, internet_on_compute_nodes"
_MOST = 5  # calls that one message names
_FETCH_IT = (
    "Download it on a machine that reaches the internet, copy it to the site, and give the "
    "program its path; with HF_HUB_OFFLINE=1 it is read from HF_HOME."
)


@rule(
    "offline-script",
    "warning",
    "a program that downloads where nodes reach no internet",
    why="The download waits for an answer that never comes, and ends with a time-out in each rank.",
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
                calls = ", ".join(f"{one.words} in line {one.at.line}" for one in found[:_MOST])
                yield Hit(
                    f"The nodes of {site.name} reach no internet, and {program.file} would "
                    f"download: {calls}{more}.",
                    STAGE_IT if job.origin == "job file" else _FETCH_IT,
                    found[0].at,
                )


def _staged(job: ScriptJob, words: str) -> bool:
    """Return whether the job says that what is named lies in the cache already."""
    by_hub = words.startswith(("from_pretrained", "load_dataset", "snapshot", "hf_hub", "load_mod"))
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
    return by_hub and any(one.value in ("1", "true", "True") for one in job.settings(*names))
