"""All rules of the adviser as a user reads them, with an example of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lumitui.app.knowledge import rule_catalogue
from lumitui.app.knowledge.rule_catalogue import Topic
from lumitui.app.knowledge.rule_table import SCRIPT_RULES
from lumitui.app.launch.rules import job_file_catalogue as job_file
from lumitui.app.survey.inquiry import topics as cluster
from lumitui.remote.site.answer_fields import json_of
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site

EXAMPLES = Path(__file__).resolve().parents[2] / "templates" / "rule_examples.json"
"""The lines in which a bad script of each rule differs from a good one."""


@dataclass(frozen=True)
class RuleExample:
    """The lines of a script that a rule is about; of a longer one only those that differ."""

    site: str
    bad: tuple[str, ...]
    good: tuple[str, ...]


def topics(sites: Iterable[Site] = ()) -> tuple[Topic, ...]:
    """Return all rules, each id once: of any script, of job files, of the cluster, of `sites`."""
    found: dict[str, Topic] = {}
    for topic in (
        *(rule.topic for rule in SCRIPT_RULES),
        rule_catalogue.UNUSED_IGNORE,
        *job_file.TOPICS,
        *cluster.TOPICS,
        *(topic for site in sites for topic in rule_catalogue.of_site(site)),
    ):
        found.setdefault(topic.id, topic)
    return tuple(found.values())


def topic(name: str, sites: Iterable[Site]) -> Topic:
    """Return the rule `name`.

    Raises:
        InputError: there is none; the message names those that are near.
    """
    import difflib

    known = {one.id: one for one in topics(sites)}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, 3)
    raise InputError(
        f"There is no rule {name!r}.",
        f"Did you mean {' or '.join(near)}?" if near else "`lumitui rules` lists them.",
    )


@cache
def examples() -> Mapping[str, RuleExample]:
    """Return an example for each rule that has one."""
    try:
        data = json_of(EXAMPLES.read_bytes())
    except OSError:
        return {}
    rows = data.items() if isinstance(data, dict) else ()
    return {
        name: RuleExample(item["site"], tuple(item["bad"]), tuple(item["good"]))
        for name, item in rows
    }
