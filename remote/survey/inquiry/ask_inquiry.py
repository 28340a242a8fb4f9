"""Queries a site about one job in one request, each part of which may fail alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lumitui.remote.scheduler.slurm import CLEAN
from lumitui.remote.site.profile import Site
from lumitui.remote.site.shell_text import quote
from lumitui.remote.survey.inquiry import answers as read
from lumitui.remote.survey.inquiry.answers import FoundEnvironment, OwnJob, PathState, Trial
from lumitui.remote.survey.inquiry.meter_rows import (
    BudgetRow,
    QuotaRow,
    budget_rows,
    quota_rows,
)
from lumitui.remote.survey.slurm_records import (
    Association,
    PartitionRecord,
    Qos,
    associations,
    qualities,
)
from lumitui.remote.transport.questions import Question, SiteAnswers, ask, read_answers
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

SECONDS = 90.0
"""The time limit of the whole request."""
MOST_PATHS = 40
"""Most paths of a job to inspect; a job with more lists its data file by file."""

# What a path is, whether it can be read and written, the nearest folder above it that is there,
# whether that can be written, and how full its file system is: 1 kB blocks, then inodes.
_LOOK = r"""case $1 in "~"/*) set -- "$HOME/${1#"~/"}" ;; esac
k=none; [ -L "$1" ] && k=link; [ -e "$1" ] && k=other
[ -f "$1" ] && k=file; [ -d "$1" ] && k=folder
r=-; [ -r "$1" ] && r=r; w=-; [ -w "$1" ] && w=w
at=$1; while [ ! -d "$at" ] && [ "$at" != / ] && [ "$at" != . ]; do at=$(dirname "$at"); done
a=-; [ -w "$at" ] && [ -x "$at" ] && a=w
printf '%s|%s|%s|%s|%s\n' "$k" "$r" "$w" "$a" "$at"
df -Pk "$at" 2>/dev/null | tail -n 1; df -Pi "$at" 2>/dev/null | tail -n 1; exit 0"""

TEST_ONLY = "sh -c " + quote('sbatch --test-only; echo "status=$?"')  # it may refuse
"""The command that tests the script on its standard input without submitting it."""
_PATH = "path-"
_ASSOCIATIONS = "account,partition,qos,maxjobs,maxsubmit"
_QOS = "name,maxjobspu,maxsubmitpu"


@dataclass(frozen=True)
class InquiryRequest:
    """One query. Equal queries share their answer while it is fresh."""

    paths: tuple[str, ...] = ()
    """Absolute paths, or paths that start with `~/`."""
    slurm: bool = True
    """Whether the site has Slurm."""
    partition: str = ""
    """Slurm's name of it."""
    quota: str = ""
    """The site's command for quotas; "": unknown."""
    balance: str = ""
    """Its command for budgets."""
    script: str = ""
    """The job script for `sbatch --test-only`; "": do not test it."""
    modules: tuple[str, ...] = ()
    """The shell lines that load the job's modules."""
    python: str = ""
    """The job's Python as a shell word; "": do not start it."""


@dataclass(frozen=True)
class Answers:
    """A site's answers; the parts that are in `faults` are empty."""

    paths: tuple[PathState, ...] = ()
    jobs: tuple[OwnJob, ...] = ()
    associations: tuple[Association, ...] = ()
    qos: tuple[Qos, ...] = ()
    partition: PartitionRecord | None = None
    trial: Trial | None = None
    quotas: tuple[QuotaRow, ...] = ()
    budgets: tuple[BudgetRow, ...] = ()
    faults: Mapping[str, str] = field(default_factory=dict)
    """Why each missing part is missing, in a sentence."""
    environment: FoundEnvironment | None = None


@purpose("inquiry")
def inquire(transport: Transport, site: Site, query: InquiryRequest) -> Answers:
    """Return the answers of `site`; the parts that failed are in `faults`.

    Raises:
        LinkError: the site cannot be reached, or its answer is unusable.
    """
    head = f"{CLEAN}\nlook={quote(_LOOK)}"
    every = questions(query, site)
    return _answers(ask(transport, head, every, timeout=SECONDS), every)


def parse_answers(output: bytes, marker: str, site: Site, query: InquiryRequest) -> Answers:
    """Return the answers in a request's output; no bytes make it raise but AnswerUnusable."""
    every = questions(query, site)
    return _answers(read_answers(output, marker, every), every)


def _answers(replies: SiteAnswers, every: Sequence[Question[Any]]) -> Answers:
    faults = dict(replies.faults)
    if "trial" in replies.texts and read.trial(replies.texts["trial"]) is None:
        faults["trial"] = "The answer of `sbatch --test-only` is unreadable."
    paths = [replies.of(one) for one in every if one.name.startswith(_PATH)]
    fields = {one.name: replies.of(one) for one in every if not one.name.startswith(_PATH)}
    return Answers(tuple(filter(None, paths)), **fields, faults=faults)


def questions(query: InquiryRequest, site: Site) -> tuple[Question[Any], ...]:
    """Return the questions of one request: the paths, and each field of `Answers` by its name."""
    paths = enumerate(query.paths[:MOST_PATHS])
    return (
        *(Question(f"{_PATH}{number}", f'sh -c "$look" - {quote(path)}',
                   partial(read.path_state, path), "ls") for number, path in paths),
        *(_of_slurm(query) if query.slurm else ()),
        *_of_site(query, site),
    )  # fmt: skip


def _of_slurm(query: InquiryRequest) -> Iterator[Question[Any]]:
    jobs = "squeue --me -a -h -t pending,running,suspended -o '%T|%P|%q|%a'"
    yield Question("jobs", jobs, read.own_jobs, "squeue")
    own = "sh -c " + quote(f'sacctmgr -n -P show assoc user="$(id -un)" format={_ASSOCIATIONS}')
    yield Question("associations", own, partial(associations, _ASSOCIATIONS), "sacctmgr")
    qos = f"sacctmgr -n -P show qos format={_QOS}"
    yield Question("qos", qos, partial(qualities, _QOS), "sacctmgr")
    if query.partition:
        show = f"scontrol show partition -o {quote(query.partition)}"
        yield Question("partition", show, read.first_partition, "scontrol show partition")
    if query.script:
        yield Question("trial", TEST_ONLY, read.trial, "sbatch --test-only", given=query.script)


def _environment(query: InquiryRequest) -> str:
    """Return sh that loads the modules as the job does, in a login shell, and starts its Python."""
    loads = (f"echo {quote(f'lumitui at {line}')}\n{line} || echo 'lumitui failed'"
             for line in query.modules)  # fmt: skip
    version = f"{query.python or ':'} -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'"
    tell = f"printf 'lumitui python %s\\n' \"$({version} 2>/dev/null)\""
    script = "\n".join(["exec 2>&1", *loads, tell])
    return f"bash -lc {quote(script)}"


def _of_site(query: InquiryRequest, site: Site) -> Iterator[Question[Any]]:
    """Yield the questions for which the profile has commands and patterns, and the environment."""
    if query.modules or query.python:
        yield Question("environment", _environment(query), read.environment, "bash -l")
    if query.quota and site.quota:
        rows = partial(quota_rows, quota=site.quota)
        sh = f"sh -c {quote(query.quota)}"
        yield Question("quotas", sh, rows, query.quota, "quota: command:")
    if query.balance and site.budget:
        amounts = partial(budget_rows, budget=site.budget)
        sh = f"sh -c {quote(query.balance)}"
        yield Question("budgets", sh, amounts, query.balance, "commands: balance:")
