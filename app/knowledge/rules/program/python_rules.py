"""Rules about a program as such: whether Python can read it, and what cannot work in a job."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.model.source_position import Position
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site


@rule(
    "withdrawn-lightning",
    "error",
    "a release of Lightning that was withdrawn",
    why="2.6.2 and 2.6.3 were published by an attacker and taken back: pip no longer finds them, "
    "and an environment that has them is not safe.",
    source="github.com/Lightning-AI/pytorch-lightning/issues/21691",
)
def _withdrawn(job: Job, site: Site) -> Iterator[Hit]:
    pinned = re.compile(r"\b((?:pytorch-)?lightning)\s*==\s*(2\.6\.[23])\b")
    found = [
        (match, word.at)
        for command in job.commands
        for word in command.words
        if command.program.startswith(("pip", "python", "uv"))
        and (match := pinned.search(word.known))
    ]
    for file, text in job.files.items():
        if file.endswith(".txt"):
            found += [
                (match, Position(number, match.start() + 1, number, match.end() + 1, file))
                for number, line in enumerate(text.splitlines(), 1)
                if (match := pinned.search(line))
            ]
    for match, at in found:
        yield Hit(
            f"{match[1]} {match[2]} was withdrawn: it was published by an attacker.",
            f"Write {match[1]}==2.6.4, and change the credentials that were used with it.",
            at,
        )


RULES: tuple[Rule, ...] = (_withdrawn,)
"""Every rule of this subject."""
