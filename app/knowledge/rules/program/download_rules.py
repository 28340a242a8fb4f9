"""Rules about what a program downloads, and who of its ranks does it."""

from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.program.downloads import STAGE_IT, downloads
from lumitui.app.knowledge.program.program_facts import Call
from lumitui.app.knowledge.program.step_program import Run, runs
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site

_PROFILE = "the site's profile, internet_on_compute_nodes"
_MOST = 5  # calls that one message names
_BARRIERS = (
    "barrier",
    "monitored_barrier",
    "wait_for_everyone",
    "main_process_first",
    "local_main_process_first",
    "Barrier",
)
_FETCH_IT = (
    "Download it on a machine that reaches the internet, copy it to the site, and give the "
    "program its path; with HF_HUB_OFFLINE=1 it is read from HF_HOME."
)
_CACHES = ("cache_dir", "root", "data_dir", "save_dir", "output_dir", "default_root_dir")
_IN_TEXT = ("Path.home()", "expanduser", "environ['HOME']", "getenv('HOME')")
_DATASETS = "docs.pytorch.org/vision/stable/datasets; docs.csc.fi, mnist_ddp example"


@rule(
    "offline-script",
    "warning",
    "a program that downloads where nodes reach no internet",
    why="The download waits for an answer that never comes, and ends with a time-out in each rank.",
    source=_PROFILE,
)
def _offline(job: Job, site: Site) -> Iterator[Hit]:
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


def _staged(job: Job, words: str) -> bool:
    """Return whether the job says that what is named lies in the cache already."""
    by_hub = words.startswith(("from_pretrained", "load_dataset", "snapshot", "hf_hub", "load_mod"))
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
    return by_hub and any(one.value in ("1", "true", "True") for one in job.settings(*names))


@rule(
    "tracker-offline",
    "warning",
    "a tracker on the internet, where nodes do not reach it",
    why="wandb tries for 90 seconds and then ends the program, or each call waits.",
    source=f"{_PROFILE}; docs.wandb.ai, WANDB_MODE",
)
def _tracker(job: Job, site: Site) -> Iterator[Hit]:
    if site.internet_on_compute_nodes:
        return
    for run in runs(job):
        quiet = ("offline", "disabled", "dryrun")
        set_so = any(one.value in quiet for one in job.settings("WANDB_MODE"))
        set_so = set_so or any(one.value.value in quiet for one in run.environment("WANDB_MODE"))
        for program, call in run.calls("wandb.init", "wandb.login"):
            mode = call.get("mode")
            # A mode of its own is said by the other rule, or is what it should be.
            if mode is None and not set_so and not call.open:
                yield Hit(
                    f"The nodes of {site.name} reach no internet, and {program.file} calls "
                    f"{call.name}(): it ends with a time-out.",
                    "Set WANDB_MODE=offline in the job, and call `wandb sync` on your machine.",
                    call.at,
                )
                break


def _downloading(run: Run) -> Iterator[tuple[str, str, Call]]:
    """Yield the calls that download, each with who reaches it."""
    for program in run.files:
        for call in program.calls:
            if call.is_true("download") or call.last in ("snapshot_download", "urlretrieve"):
                yield program.file, program.reach(call), call


@rule(
    "download-by-all-ranks",
    "warning",
    "a download that every rank makes",
    why="All ranks download and unpack into one folder at once: one reads what another is still "
    "writing, and ends with a corrupt file.",
    source=_DATASETS,
)
def _by_all(job: Job, site: Site) -> Iterator[Hit]:
    if not site.internet_on_compute_nodes:
        return
    for run in runs(job):
        if run.world < 2 or run.lightning:
            continue
        for file, who, call in _downloading(run):
            if who == "all" and call.last != "snapshot_download":
                yield Hit(
                    f"All {run.world} ranks download to the same folder in {file}: one reads what "
                    "another is still writing.",
                    "Download it once before the job, or under `if rank == 0:` with a barrier "
                    "behind it.",
                    call.at,
                )
                break


@rule(
    "download-without-barrier",
    "warning",
    "a download by rank 0 that the other ranks do not wait for",
    why="The other ranks open the files while rank 0 still writes them.",
    source=_DATASETS,
)
def _unawaited(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if run.world < 2 or run.lightning or run.has(*_BARRIERS) or not run.closed:
            continue
        for file, who, call in _downloading(run):
            if who in ("one", "local"):
                yield Hit(
                    f"In {file} one rank downloads, and no barrier holds the others back: they "
                    "read what is not yet there.",
                    "Call torch.distributed.barrier() after the download.",
                    call.at,
                )
                break


@rule(
    "data-in-home",
    "warning",
    "data or weights that the program keeps in the home folder",
    why="A home folder has 10 to 25 GB and 100,000 files on these systems: a data set or a model "
    "fills it, and then nothing can be written any more.",
    source="docs.csc.fi and docs.lumi-supercomputer.eu, storage: quotas of home folders",
)
def _home(job: Job, site: Site) -> Iterator[Hit]:
    if site.scheduler != "slurm":
        return
    for run in runs(job):
        for program in run.files:
            for call in program.calls:
                for one in call.arguments:
                    value = run.value(one)
                    text = value if isinstance(value, str) else ""
                    inside = text.startswith("~/") or any(word in one.text for word in _IN_TEXT)
                    if one.name in _CACHES and inside:
                        yield Hit(
                            f"{program.file} keeps {one.name}={one.text} in your home folder, "
                            "which holds little.",
                            "Keep it on scratch: pass the path as an argument.",
                            call.at,
                        )


@rule(
    "tracker-by-all-ranks",
    "warning",
    "a tracker that every rank starts",
    why="Each rank makes a run of its own: a training on 64 ranks fills the tracker with 64 runs.",
    source="docs.wandb.ai, Distributed training: one process; LUMI-AI-Guide 09",
)
def _tracked(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if run.world < 2 or run.lightning or run.trainer or not run.knows_ranks:
            continue
        for program, call in run.calls("wandb.init", "mlflow.start_run"):
            grouped = call.get("group") or call.open
            if program.reach(call) == "all" and program.always(call) and not grouped:
                yield Hit(
                    f"All {run.world} ranks call {call.name}() in {program.file}: each makes a run "
                    "of its own.",
                    "Call it under `if rank == 0:`.",
                    call.at,
                )


RULES: tuple[Rule, ...] = (_offline, _tracker, _by_all, _unawaited, _home, _tracked)
"""Every rule of this subject."""
