"""LUMI as the package knows it, and a job for it."""

from lumitui.app.job.spec import JobSpec, changed, parse_job
from lumitui.remote.site.sites import BUILT_IN, Sites

LUMI = Sites([BUILT_IN]).load("lumi")
JOB = parse_job(
    "name: t\nsite: lumi\naccount: project_462000001\npartition: standard-g\n"
    'time: "01:00:00"\nscript: train.py\n',
    "t",
)


def job(**changes: object) -> JobSpec:
    """Return JOB with `changes`."""
    return changed(JOB, changes, "t")
