"""Queries a site about one job, or when jobs would start, in one request. Parts may fail alone.

Formats: squeue(1), df(1) with -P, and `sbatch --test-only`, whose times are epoch seconds by
SLURM_TIME_FORMAT=%s.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from lumitui.remote.scheduler.slurm import CLEAN
from lumitui.remote.site.answer_fields import MOST_WORDS, count, lines, moment
from lumitui.remote.site.profile import Site
from lumitui.remote.site.shell_text import quote
from lumitui.remote.survey.meter_rows import BudgetRow, QuotaRow, budget_rows, quota_rows
from lumitui.remote.survey.slurm_records import (
    Association,
    PartitionRecord,
    Qos,
    associations,
    partitions,
    qualities,
    rows,
)
from lumitui.remote.transport.questions import Question, ask
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

_LONGEST = 200


@dataclass(frozen=True)
class Space:
    """How full a file system is, from 0 to 1."""

    mount: str
    blocks: float
    files: float | None
    """None: the file system does not count them."""


@dataclass(frozen=True)
class PathState:
    """The state of a path."""

    path: str
    kind: Literal["none", "link", "file", "folder", "other"]
    """`none`: nothing; `link`: a broken link."""
    readable: bool
    writable: bool
    above: str
    """The path itself, or the nearest existing folder above it."""
    above_writable: bool
    space: Space | None = None


@dataclass(frozen=True)
class OwnJob:
    """A job of the user that has not ended."""

    state: str
    partition: str
    qos: str
    account: str


@dataclass(frozen=True)
class Trial:
    """The result of `sbatch --test-only`."""

    accepted: bool
    start: float | None
    """When the job would start, in epoch seconds."""
    words: str
    """Slurm's reason for refusing it."""


@dataclass(frozen=True)
class FoundEnvironment:
    """The result of a job's modules on the login node."""

    failed: str
    """The first failing line, or ""."""
    words: str
    """The error that it printed."""
    python: str
    """The version of the job's Python, like `3.11`; "" if it does not start."""
    torch: bool = False
    """Whether that Python finds torch."""


def environment(text: str) -> FoundEnvironment | None:
    """Return what `at LINE`, `failed` and `python VERSION torch` say, and what else was printed."""
    line = failed = words = ""
    printed: list[str] = []
    for row in lines(text):
        if row.startswith("lumitui at "):
            line, printed = row[11:], []
        elif row == "lumitui failed":
            failed, words = failed or line, words if failed else _reason(printed)
        elif found := re.fullmatch(r"lumitui python (\d{1,2}\.\d{1,3}|)( torch)?", row):
            torch = found[2] is not None
            return FoundEnvironment(failed[:_LONGEST], words[:MOST_WORDS], found[1], torch)
        elif row.strip():
            printed.append(" ".join(row.split()))
    return None


def _reason(printed: Sequence[str]) -> str:
    """Return the first line of a failed `module load` that names an error, or else the last one.

    Lmod puts the names on the line below, and ends with advice about its cache and #%Module.
    """
    for number, row in enumerate(printed):
        if re.search(r"(?i)error|unknown|unable|cannot|not found", row):
            more = printed[number + 1 : number + 2] if row.endswith(":") else []
            return " ".join([row, *more])
    return printed[-1] if printed else ""


def path_state(path: str, text: str) -> PathState | None:
    """Return the state of `path`; None if the answer is unusable."""
    first, *more = [*lines(text), ""]
    row = first.split("|", 4)
    kinds: dict[str, Literal["none", "link", "file", "folder", "other"]] = {
        "none": "none", "link": "link", "file": "file", "folder": "folder", "other": "other",
    }  # fmt: skip
    if len(row) != 5 or (kind := kinds.get(row[0])) is None:
        return None
    usage = [fill for line in more if (fill := _fill_of(line))]
    blocks, inodes = [*usage, None, None][:2]
    space = None
    if blocks and blocks[0] is not None:
        space = Space(blocks[1], blocks[0], inodes[0] if inodes else None)
    return PathState(path, kind, row[1] == "r", row[2] == "w", row[4][:4096], row[3] == "w", space)


def _fill_of(line: str) -> tuple[float | None, str] | None:
    """Return the used part of a file system and its mount, from a row of df."""
    row = line.split(None, 5)
    if len(row) != 6 or not row[5].startswith("/"):
        return None
    total, used, free = (count(word) for word in row[1:4])
    if total is None or used is None or free is None:
        return None, row[5][:_LONGEST]
    # Without the part that only root may fill; a file system may count no files at all.
    return (used / (used + free) if used + free else None), row[5][:_LONGEST]


def own_jobs(text: str) -> tuple[OwnJob, ...]:
    """Return the user's jobs from squeue."""
    return tuple(
        OwnJob(**row) for row in rows(text, "state,partition,qos,account") if row["state"].isupper()
    )


def first_partition(text: str) -> PartitionRecord | None:
    """Return the first partition of `scontrol show partition -o`, if any."""
    return next(iter(partitions(text)), None)


_START = re.compile(r"[Jj]ob \d+ to start at (\S+)")


def trial(text: str) -> Trial | None:
    """Return the result of `sbatch --test-only`; None if the answer is unusable."""
    ending = re.search(r"status=(\d{1,3})\s*\Z", text)
    if not ending:
        return None
    printed = [row.strip() for row in lines(text[: ending.start()]) if row.strip()]
    start = next((m for row in printed if (m := _START.search(row))), None)
    if ending[1] == "0" and start:
        return Trial(True, moment(start[1]), "")
    words = [
        re.sub(r"^(sbatch: )?(error: )?(allocation failure: )?", "", row)
        for row in printed
        if not _START.search(row)
    ]
    if ending[1] == "0" or not words:
        return None
    reason = "; ".join(dict.fromkeys(word.rstrip(".") for word in words[:2]))
    return Trial(False, None, reason[:MOST_WORDS])


SECONDS = 90.0
"""The time limit of the whole request."""
MOST_PATHS = 40
"""Maximum number of paths of a job to inspect; a job with more lists its data file by file."""

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
    """Slurm's name for it."""
    quota: str = ""
    """The site's command for quotas; "": unknown."""
    balance: str = ""
    """Its command for budgets."""
    script: str = ""
    """The job script for `sbatch --test-only`; "": do not test it."""
    modules: tuple[str, ...] = ()
    """The shell lines that load the job's modules and activate its environments."""
    functions: str = ""
    """The shell functions that these lines call."""
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
    """Return the answers of `site`; the parts that failed are in `faults`."""
    head = f"{CLEAN}\nlook={quote(_LOOK)}"
    every = questions(query, site)
    replies = ask(transport, head, every, timeout=SECONDS)
    faults = dict(replies.faults)
    if "trial" in replies.texts and trial(replies.texts["trial"]) is None:
        faults["trial"] = "The answer of `sbatch --test-only` is unreadable."
    paths = [replies.of(one) for one in every if one.name.startswith(_PATH)]
    fields = {one.name: replies.of(one) for one in every if not one.name.startswith(_PATH)}
    return Answers(tuple(filter(None, paths)), **fields, faults=faults)


def questions(query: InquiryRequest, site: Site) -> tuple[Question[Any], ...]:
    """Return the questions of one request: the paths, and each field of `Answers` by name."""
    paths = enumerate(query.paths[:MOST_PATHS])
    return (
        *(Question(f"{_PATH}{number}", f'sh -c "$look" - {quote(path)}',
                   partial(path_state, path), "ls") for number, path in paths),
        *(_of_slurm(query) if query.slurm else ()),
        *_of_site(query, site),
    )  # fmt: skip


def _of_slurm(query: InquiryRequest) -> Iterator[Question[Any]]:
    jobs = "squeue --me -a -h -t pending,running,suspended -o '%T|%P|%q|%a'"
    yield Question("jobs", jobs, own_jobs, "squeue")
    own = "sh -c " + quote(f'sacctmgr -n -P show assoc user="$(id -un)" format={_ASSOCIATIONS}')
    yield Question("associations", own, partial(associations, _ASSOCIATIONS), "sacctmgr")
    qos = f"sacctmgr -n -P show qos format={_QOS}"
    yield Question("qos", qos, partial(qualities, _QOS), "sacctmgr")
    if query.partition:
        show = f"scontrol show partition -o {quote(query.partition)}"
        yield Question("partition", show, first_partition, "scontrol show partition")
    if query.script:
        yield Question("trial", TEST_ONLY, trial, "sbatch --test-only", given=query.script)


# It only looks for torch: the import takes seconds, on a file system with millions of files more.
_VERSION = (
    "import sys; from importlib.util import find_spec; "
    "print('%d.%d' % sys.version_info[:2] + ' torch' * bool(find_spec('torch')))"
)


def _environment(query: InquiryRequest) -> str:
    """Return sh that loads the modules as the job does, in a login shell, and starts its Python."""
    loads = (f"echo {quote(f'lumitui at {line}')}\n{line} || echo 'lumitui failed'"
             for line in query.modules)  # fmt: skip
    version = f"{query.python or ':'} -c {quote(_VERSION)}"
    tell = f"printf 'lumitui python %s\\n' \"$({version} 2>/dev/null)\""
    # A line that calls `exit` ends the subshell before it tells of the Python.
    ended = "printf 'lumitui failed\\nlumitui python \\n'"
    script = "\n".join(["exec 2>&1", "(", query.functions, *loads, tell, ")", ended])
    return f"bash -lc {quote(script)}"


def _of_site(query: InquiryRequest, site: Site) -> Iterator[Question[Any]]:
    """Yield the questions for which the profile has commands and patterns, and the environment."""
    if query.modules or query.python:
        yield Question("environment", _environment(query), environment, "bash -l")
    if query.quota and site.quota:
        rows = partial(quota_rows, quota=site.quota)
        sh = f"sh -c {quote(query.quota)}"
        yield Question("quotas", sh, rows, query.quota, "quota: command:")
    if query.balance and site.budget:
        amounts = partial(budget_rows, budget=site.budget)
        sh = f"sh -c {quote(query.balance)}"
        yield Question("budgets", sh, amounts, query.balance, "commands: balance:")


MOST_SCRIPTS = 16
"""Maximum number of scripts of one request: each costs slurmctld a short command."""


@dataclass(frozen=True)
class ExpectedStarts:
    """When jobs would start at a site, and how many wait there."""

    trials: tuple[Trial | None, ...]
    """In the order of the scripts; None: Slurm did not answer."""
    waiting: Mapping[str, int] | None
    """Waiting jobs of all users by Slurm's partition; None: unknown."""


@purpose("inquiry")
def ask_starts(transport: Transport, scripts: Sequence[str]) -> ExpectedStarts:
    """Return when a job of each of `scripts` (at most MOST_SCRIPTS) would start. One request."""
    trials = [
        Question(f"trial-{number}", TEST_ONLY, trial, "sbatch --test-only", given=script)
        for number, script in enumerate(scripts[:MOST_SCRIPTS])
    ]
    waiting = Question("waiting", "squeue -h -a -t pending -o %P", _waiting, "squeue")
    answers = ask(transport, CLEAN, (*trials, waiting), timeout=SECONDS)
    knows = waiting.name in answers.texts
    return ExpectedStarts(tuple(map(answers.of, trials)), answers.of(waiting) if knows else None)


def _waiting(text: str) -> Mapping[str, int]:
    """Return how many jobs wait in each partition; a job may wait in several."""
    return Counter(name for line in lines(text) for name in line.strip().split(",") if name)
