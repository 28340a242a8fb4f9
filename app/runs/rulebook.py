"""All rules of the adviser as a person reads them, with an example of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lumitui.app.compose.rules import catalogue as job_file
from lumitui.app.lint import catalogue
from lumitui.app.lint.catalogue import Topic
from lumitui.app.lint.table import RULES
from lumitui.app.questions.inquiry import topics as cluster
from lumitui.remote.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.transport.fields import json_of

EXAMPLES = Path(__file__).resolve().parents[2] / "templates" / "rule_examples.json"
"""The lines in which a bad script of each rule differs from a good one."""


@dataclass(frozen=True)
class Example:
    """The lines of a script that a rule is about; of a longer one only those that differ."""

    site: str
    bad: tuple[str, ...]
    good: tuple[str, ...]


def topics(sites: Iterable[Site] = ()) -> tuple[Topic, ...]:
    """Return all rules, each id once: of any script, of job files, of the cluster, of `sites`."""
    found: dict[str, Topic] = {}
    for topic in (
        *catalogue.of_rules(RULES),
        catalogue.UNUSED_IGNORE,
        *job_file.TOPICS,
        *cluster.TOPICS,
        *(topic for site in sites for topic in catalogue.of_site(site)),
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
def examples() -> Mapping[str, Example]:
    """Return an example for each rule that has one."""
    try:
        data = json_of(EXAMPLES.read_bytes())
    except OSError:
        return {}
    rows = data.items() if isinstance(data, dict) else ()
    return {
        name: Example(item["site"], tuple(item["bad"]), tuple(item["good"])) for name, item in rows
    }
