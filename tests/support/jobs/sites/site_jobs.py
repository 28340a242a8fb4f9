"""Jobs for each of the sites that come with the program."""

from functools import cache

from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import JobSpec, changed, parse_job
from lumitui.app.launch.compose import compose
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.sites.accounts import own_account

BUILT_IN_SITES = Sites([BUILT_IN])


@cache
def site(name: str) -> Site:
    """Return the profile `name`, as it comes with the program."""
    return BUILT_IN_SITES.load(name)


def job(name: str, partition: str, **changes: object) -> JobSpec:
    """Return a job of the DDP trainer at the site `name`, with `changes`."""
    base = parse_job(
        f"name: t\nsite: {name}\naccount: {own_account(site(name))}\n"
        f"partition: {partition}\ntime: '00:10:00'\ntrainer: ddp\n"
        "scale: {batch: {keep: per_gpu}}\n",
        "t",
    )
    return changed(base, {"args": ["--batch-size", "32"]} | changes, "t")


def launched(name: str, partition: str, **changes: object) -> Launch:
    """Return the launch of `job`."""
    return compose(job(name, partition, **changes), site(name))


def asked(launch: Launch) -> dict[str, str]:
    """Return the #SBATCH options of a launch's script, by name."""
    lines = [line[8:] for line in launch.script.splitlines() if line.startswith("#SBATCH ")]
    pairs = [line.partition("=") for line in lines]
    assert len({name for name, _, _ in pairs}) == len(pairs), "an option is there twice"
    return {name: value for name, _, value in pairs}
