"""A command line of every verb: a new verb fails the tests until it has one here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lumitui.app.cli.main import lumitui


@dataclass(frozen=True)
class Words:
    """The arguments of a verb, with `{job}`, `{run}` and `{new}` for what a test has made."""

    arguments: str
    writes: bool = False
    """Whether it leaves files on the laptop."""


VERBS: Mapping[str, tuple[Words, ...]] = {
    "new": (
        Words("--list"),
        Words("--list --json"),
        Words("--site laptop --trainer ddp --output {new}/job.yaml", writes=True),
        Words("--example jax --output {new}/jax.yaml", writes=True),
    ),
    "site show": (Words(""), Words("lumi"), Words("laptop --json")),
    # There is a site of that name: it is refused, and no host is asked.
    "site add": (Words("laptop --host localhost"),),
    "site check": (Words("laptop"), Words("--file {job}")),
    "site live": (Words("laptop"), Words("laptop --json")),
    # A site without containers is refused, and is not asked.
    "site images": (Words("laptop"), Words("laptop --with torch --json")),
    "site venvs": (
        Words("laptop"),
        Words("laptop --json"),
        Words("laptop --prune --yes", writes=True),
    ),
    "schema": (Words(""), Words("site")),
    # A job file is no script: the findings are all about that.
    "lint": (Words("{job} --site lumi"), Words("{job} --site lumi --format github")),
    "preview": (
        Words("{job}", writes=True),
        Words("{job} --json"),
        Words("{job} --script"),
        Words("{job} --cluster"),
    ),
    "fix": (Words("{job} --yes"), Words("{job} --diff --json")),
    # A job file is no script: it is refused, and writes nothing.
    "import": (Words("{job} --site lumi -o {new}/imported.yaml"),),
    # The job's site has no Slurm: it is refused, and writes nothing.
    "export": (Words("{job} {new}/exported"),),
    "where": (Words("{job}"), Words("{job} --nodes 1,2 --json")),
    "try": (Words("{job} --yes", writes=True),),
    # The job's site has no queue: it is refused.
    "debug": (Words("{job} --yes"),),
    # A job of this machine waits for nothing: it is refused.
    "submit": (
        Words("{job}", writes=True),
        Words("{job} --json --after {run} --when any"),
        Words("{job} --first laptop --yes", writes=True),
    ),
    "status": (Words("", writes=True), Words("--json")),
    "logs": (Words("{run}"),),
    "history": (
        Words(""),
        Words("--json"),
        Words("--recover laptop", writes=True),
        Words("--export {new}/runs.history", writes=True),
        # A job file is not a history: it is refused.
        Words("--import {job}"),
    ),
    "show": (Words("{run}"), Words("{run} --json")),
    # The run did not fail; a test of its own reads logs.
    "why": (Words("{run}"), Words("{run} --json"), Words("{run} --helpdesk")),
    "note": (Words("{run} remember", writes=True),),
    "diff": (Words("{run} {run}"),),
    "scaling": (
        Words("{run}"),
        Words("{run} --json --samples 1000 --deadline 6h"),
        # The run has measured nothing: it is refused.
        Words("{run} --predict"),
    ),
    # The run was sent by itself: it is refused, and writes nothing.
    "grid": (Words("{run}"),),
    "resubmit": (Words("{run}", writes=True), Words("{run} --nodes 2")),
    "cancel": (Words("{run}", writes=True),),
    # The run has ended: waiting returns at once, and nothing is entered.
    "wait": (Words("{run}"), Words("{run} --json")),
    "shell": (Words("{run} -- true"),),
    "forward": (Words("{run} 6006"),),
    "fetch": (Words("{run} --to {new}/results", writes=True),),
    "site prune": (Words("laptop --yes", writes=True), Words("laptop --dry-run")),
    "site data": (
        Words("laptop"),
        Words("laptop --prune --dry-run"),
        Words("laptop --prune --yes", writes=True),
    ),
    "bind": (Words("lumi"), Words("lumi --explain map_cpu:49,57 --json")),
    "rules": (Words(""), Words("cluster-image"), Words("--site lumi --json")),
    # Without a terminal it is refused, and opens nothing.
    "tour": (Words(""),),
    "demo": (Words("--to {new}/demo", writes=True),),
    "tui": (Words("{job}"),),
    # The whole disk is refused, so that nothing is served.
    "mcp": (Words("/"),),
    "docs": (Words(""), Words("docs/first_job.md")),
    "completion": (Words(""), Words("bash"), Words("fish")),
}


def command_lines(job: Path, run: str, new: Path, *, writing: bool = False) -> Iterator[list[str]]:
    """Yield a command line for every verb that the program has; `writing`: those that write.

    Raises:
        KeyError: a verb has none in the table.
    """
    for verb in lumitui.every():
        for words in VERBS[verb]:
            if words.writes or not writing:
                text = words.arguments.format(job=job, run=run, new=new)
                yield [*verb.split(), *text.split()]
