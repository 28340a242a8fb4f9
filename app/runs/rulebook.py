"""All rules of the adviser, with an example of each."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lumitui.app.explain import words
from lumitui.app.explain.doc_pages import page_text
from lumitui.app.knowledge.rule import UNUSED_IGNORE, Subject, Topic, of_site
from lumitui.app.knowledge.rule_table import SCRIPT_RULES
from lumitui.app.launch.rules import job_file_catalogue as job_file
from lumitui.app.survey.inquiry import topics as cluster
from lumitui.remote.site.answer_fields import json_of
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site

_LINK = re.compile(r"\[[^]]+\]\((\w+)\.md(?:#([\w-]+))?\)")
EXAMPLES = Path(__file__).resolve().parents[2] / "templates" / "rule_examples.json"
"""The lines in which a bad and a good script of each rule differ."""
HEADINGS: Mapping[Subject, str] = {
    "script": "Scripts and job files",
    "job file": "Job files",
    "cluster": "Queries of the cluster (--cluster)",
    "site": "Only at a site",
}
"""The input of the rules, in the order of the list."""


@dataclass(frozen=True)
class RuleExample:
    """The lines of a script that a rule concerns; for a longer script, those that differ."""

    site: str
    bad: tuple[str, ...]
    good: tuple[str, ...]


def topics(sites: Iterable[Site] = ()) -> tuple[Topic, ...]:
    """Return all rules, each id once: of any script, of job files, of the cluster, of `sites`."""
    by_id: dict[str, Topic] = {}
    for topic in (
        *(rule.topic for rule in SCRIPT_RULES),
        UNUSED_IGNORE,
        *job_file.TOPICS,
        *cluster.TOPICS,
        *(topic for site in sites for topic in of_site(site)),
    ):
        by_id.setdefault(topic.id, topic)
    return tuple(by_id.values())


def topic(name: str, sites: Iterable[Site]) -> Topic:
    """Return the rule `name`.

    Raises:
        InputError: there is no such rule; the hint names similar ones.
    """
    import difflib

    by_id = {one.id: one for one in topics(sites)}
    if name in by_id:
        return by_id[name]
    near = difflib.get_close_matches(name, by_id, 3)
    raise InputError(
        f"{name!r} is not a rule.",
        f"Did you mean {' or '.join(near)}?" if near else "`lumitui rules` lists them.",
    )


@cache
def examples() -> Mapping[str, RuleExample]:
    """Return the examples by rule."""
    try:
        data = json_of(EXAMPLES.read_bytes())
    except OSError:
        return {}
    rows = data.items() if isinstance(data, dict) else ()
    return {
        name: RuleExample(item["site"], tuple(item["bad"]), tuple(item["good"]))
        for name, item in rows
    }


def explanations(names: Iterable[str], sites: Iterable[Site], width: int) -> Iterator[str]:
    """Yield the subjects that have a page: rules, and causes of failures (`why/gpu-memory`)."""
    every = {one.id: one for one in topics(sites)}
    for name in names:
        if name in every:
            yield rule_text(every[name], width)
        elif name.startswith("why/"):
            heading, _, text = page_text(name).partition("\n")
            # The verbs that print the targets of a page's links.
            text = _LINK.sub(
                lambda link: f"`lumitui docs {'/'.join(filter(None, link.groups()))}`",
                " ".join(text.split()),
            )
            yield f"{heading.lstrip('# ')}\n\n{textwrap.fill(text, width)}"


def rule_text(one: Topic, width: int) -> str:
    """Return a rule's finding, its effect, an example and its source."""
    room, example = min(width, 100), examples().get(one.id)
    where = f"at {one.site}" if one.site else HEADINGS[one.subject].split(" (")[0].lower()
    title = f"{one.title}." if one.site else f"Finds {one.title}."
    lines = [f"{one.id}  {one.severity}, {where}", "", *textwrap.wrap(title, room)]
    lines += ["", *textwrap.wrap(one.why, room)]
    if example is not None:
        sides = (("Bad", example.bad, "below"), ("Good", example.good, "above"))
        for word, side, other in sides:
            lines += ["", f"{word}, at {example.site}:"]
            lines += [f"    {line}" for line in side or (f"(without the lines {other})",)]
    return "\n".join([*lines, "", *textwrap.wrap(f"Source: {words.source(one.source)}", room)])
