"""What the rules find in a script of a test."""

from collections.abc import Mapping

from lumitui.app.knowledge.any_site import any_site
from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.rule_table import findings
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site
from tests.support.jobs.sites.site_jobs import site

NO_FILES: Mapping[str, str] = {}


def site_of(name: str) -> Site:
    """Return a site by its name; "": that of a script whose site nobody knows."""
    return site(name) if name else any_site()


def job_of(text: str, name: str = "lumi", files: Mapping[str, str] = NO_FILES) -> ScriptJob:
    """Return the job that a script is at a site."""
    return read_script(text, site=site_of(name), files=files)


def findings_in(
    text: str, name: str = "lumi", files: Mapping[str, str] = NO_FILES
) -> list[Finding]:
    """Return all that the rules find in a script."""
    return findings(job_of(text, name, files), site_of(name))


def rules_in(text: str, name: str = "lumi", files: Mapping[str, str] = NO_FILES) -> set[str]:
    """Return the rules that find something in a script."""
    return {each.rule for each in findings_in(text, name, files)}
