"""Reads a site's answers about a job, within limits and without ever raising.

Formats: squeue(1), df(1) with -P, and `sbatch --test-only`, whose times are epoch seconds by
SLURM_TIME_FORMAT=%s.
"""

import re
from dataclasses import dataclass
from typing import Literal

from lumitui.remote.site.answer_fields import MOST_WORDS, count, lines, moment
from lumitui.remote.survey.slurm_records import PartitionRecord, partitions, rows

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
    """What is at a path."""

    path: str
    kind: Literal["none", "link", "file", "folder", "other"]
    """`none`: nothing; `link`: it leads nowhere."""
    readable: bool
    writable: bool
    above: str
    """It, or the nearest folder above it that is there."""
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
    """Why it was refused, in Slurm's words."""


@dataclass(frozen=True)
class FoundEnvironment:
    """What a job's modules give on the login node."""

    failed: str
    """The first line that fails; "": none does."""
    words: str
    """What it printed last."""
    python: str
    """The version of the job's Python, like `3.11`; "" if it does not start."""


def environment(text: str) -> FoundEnvironment | None:
    """Return what `at LINE`, `failed` and `python VERSION` say, with what else was printed."""
    line = last = failed = words = ""
    for row in lines(text):
        if row.startswith("lumitui at "):
            line, last = row[11:], ""
        elif row == "lumitui failed":
            failed, words = failed or line, words if failed else last
        elif found := re.fullmatch(r"lumitui python (\d{1,2}\.\d{1,3}|)", row):
            return FoundEnvironment(failed[:_LONGEST], words[:MOST_WORDS], found[1])
        elif row.strip():
            last = row.strip()
    return None


def path_state(path: str, text: str) -> PathState | None:
    """Return the state of `path`; None: the answer is unusable."""
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
    """Return the result of `sbatch --test-only`; None: the answer is unusable."""
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
