"""The jobs that lumitui itself proposes: of the sites' documents, and the examples anywhere."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from lumitui.app.job.examples import Beginning, examples, text_for
from lumitui.app.job.grid import cells
from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import parse_job
from lumitui.app.launch.compose import compose
from lumitui.app.launch.send.code.project_files import deepspeed_config
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.guide.scripts import SCRIPTS
from tests.support.jobs.sites.accounts import own_account
from tests.support.jobs.sites.golden_jobs import launch_of
from tests.support.systems.rows import table


@dataclass(frozen=True)
class Official:
    """A launch that nobody should have to correct."""

    name: str
    launch: Launch
    site: Site
    files: dict[str, str] = field(default_factory=dict)
    """Texts of its project, by their paths."""


@cache
def sites() -> dict[str, Site]:
    """Return the profiles that come with the program."""
    found = Sites([BUILT_IN])
    return {name: found.load(name) for name in found.names()}


def official_jobs(every: int = 1) -> Iterator[Official]:
    """Yield the jobs of the documents of all sites, then LUMI's guide, then the examples.

    `every`: only each n-th, for a test that should not take long.
    """
    for row in table().rows[::every]:
        site = sites()[table().site_of(row)]
        site = site.model_copy(update={"mpi": row.mpi}) if row.mpi else site
        yield Official(row.name, table().launch_of(row), site)
    for script in SCRIPTS[::every]:
        yield Official(f"guide/{script.era}/{script.name}", launch_of(script), sites()["lumi"])
    yield from example_jobs(every)


def example_jobs(every: int = 1) -> Iterator[Official]:
    """Yield each example at each site; `every` as in `official_jobs`."""
    pairs = [(name, site) for name in examples() for site in sites().values()]
    for name, site in pairs[::every]:
        example = examples()[name]
        text = text_for(site, Beginning(account=own_account(site), example=name))
        spec = next(iter(cells(parse_job(text, name)))).spec
        files = dict(example.files)
        config = files.get(spec.deepspeed.config) if spec.deepspeed else None
        config = config or deepspeed_config(spec, Path("."))
        launch = compose(spec, site, deepspeed_config=config)
        yield Official(f"{name}@{site.name}", launch, site, files)
