"""Rules about what a program downloads, and who of its ranks does it."""

from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.program.downloads import STAGE_IT, downloads
from lumitui.app.knowledge.program.step_program import runs
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site

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


RULES: tuple[Rule, ...] = (_offline,)
"""Every rule of this subject."""
