"""The scripts of this repository: those of tests, of documents, of lumitui's own jobs."""

from collections.abc import Iterable, Iterator
from datetime import date
from functools import cache
from itertools import groupby

import yaml

from lumitui.app.knowledge.guess import guess_site
from lumitui.app.launch.compose import plain_script
from lumitui.remote.site.profile import Site
from tests.exam.jobs.cases import bad, good, scripts, scripts_folder
from tests.support.jobs.sites.official_jobs import official_jobs, sites
from tests.support.places import ROOT
from tests.support.rules.rule_cases import Case, read_cases
from tests.support.systems.rows import table

SCRIPTS = ROOT / "tests" / "app" / "launch" / "from_script" / "scripts"


@cache
def own() -> dict[str, str]:
    """Return the scripts that were written for this test, by their names."""
    files = sorted(SCRIPTS.glob("*.yaml"))
    return {
        name: text
        for file in files
        for name, text in yaml.load(file.read_text(), Loader=yaml.CSafeLoader).items()
    }


def site_of(text: str) -> Site:
    return guess_site(text, list(sites().values()), date.today()).site or sites()["lumi"]


def corpus(every: int = 1) -> Iterator[tuple[str, str, Site]]:
    """Yield the scripts of the repository: name, text, site.

    `every`: of those of the adviser's rules, and of lumitui's own jobs, each n-th.
    """
    for name, text, site in texts(every):
        yield name, text, site or site_of(text)


def texts(every: int = 1) -> Iterator[tuple[str, str, Site | None]]:
    """Yield the same without guessing sites, which takes half of the time."""
    for name, text in own().items():
        yield name, text, None
    for case in (*bad(), *good()):
        if not case.job_file:
            yield f"exam {case.id}", case.text, sites()[case.site]
    for row in table().rows:
        options = [f"#SBATCH --{name}={text}".rstrip("=") for name, text in row.asks.items()]
        text = "\n".join(["#!/bin/bash", *options, row.launch, ""])
        yield f"document {row.name}", text, sites()[table().site_of(row)]
    for job in official_jobs(every=every):
        yield f"ours {job.name}", plain_script(job.launch, job.site, "job"), job.site
    for module, cases in groupby(read_cases(), key=lambda case: case.module):
        for name, text in [*_texts(cases, module.rpartition("/")[2])][::every]:
            yield name, text, None
    if folder := scripts_folder():
        for script in scripts():
            yield script.key, script.text(folder), None


def _texts(cases: Iterable[Case], module: str) -> Iterator[tuple[str, str]]:
    """Yield the whole scripts in the cases of the adviser's rules."""
    for case in cases:
        texts = {"bad": case.bad, "good": case.good, **case.files}
        texts |= {f"bad {name}": text for name, text in case.bad_files.items()}
        texts |= {f"good {name}": text for name, text in case.good_files.items()}
        for name, text in texts.items():
            if text.startswith("#!") and "#SBATCH" in text:
                yield f"{module} {case.rule} {name}", text
