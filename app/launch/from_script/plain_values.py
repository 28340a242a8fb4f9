"""Replaces variables in a script's values, for a job file's plain text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from lumitui.app.job.launch import RankLayout
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.launch.site_names import escaped_text, without_names
from lumitui.remote.site.source_position import Position

_NAMED = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_QUOTED = re.compile(r"\\.|'[^']*'|\"(?:\\.|[^\"])*\"|\$\{[^}]*\}", re.DOTALL)
_SPREADS = re.compile(r"[*?]|\[[^]]+\]|\{[^{}]*(?:,|\.\.)[^{}]*\}")
_CONTINUED = re.compile(r"\\\n\s*")
_DEEPEST = 5
_LONGEST = 65_536
"""Maximum length of a replaced text in characters: `A1=$A0$A0`, `A2=$A1$A1` … double it."""


@dataclass(frozen=True)
class Values:
    """The known values of variables: those that the script sets, and Slurm's numbers."""

    known: Mapping[str, str]
    numbers: Mapping[str, str]
    """Slurm's variables in the new job."""
    names: tuple[str, ...] = ()
    """Names that lumitui expands in a job file and that the script does not set."""
    all_names: tuple[str, ...] = ()
    """These names, and those that the script sets."""

    def put(self, text: str) -> str:
        """Return a text with the known variables replaced."""
        text = _CONTINUED.sub("", text)
        for _ in range(_DEEPEST):
            new = _NAMED.sub(self._one, text)
            if new == text or len(new) > _LONGEST:
                break
            text = new
        return text

    def plain(self, text: str) -> str | None:
        """Return a text with all variables replaced; None if only the site knows a value."""
        fixed = self.put(text)
        return None if self.is_open(fixed) else fixed

    def is_open(self, text: str) -> bool:
        """Return whether a text contains a value that only the site knows."""
        return bool(re.search(r"[$`]", without_names(text, self.names)))

    def literal(self, text: str) -> str:
        """Return the job file's form of a text that must stay literal."""
        return escaped_text(text, self.all_names)

    def _one(self, match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return self.known.get(name, self.numbers.get(name, match[0]))


def numbers_of(layout: RankLayout, account: str) -> dict[str, str]:
    """Return the values of Slurm's variables in a job."""
    numbers = {
        "SLURM_JOB_ACCOUNT": account,
        "SLURM_NNODES": layout.nodes,
        "SLURM_JOB_NUM_NODES": layout.nodes,
        "SLURM_CPUS_PER_TASK": layout.cpus_per_task,
        "SLURM_GPUS_ON_NODE": layout.gpus_per_node,
        "SLURM_GPUS_PER_NODE": layout.gpus_per_node,
        "SLURM_NTASKS_PER_NODE": layout.tasks_per_node,
        "SLURM_NTASKS": layout.tasks_per_node * layout.nodes,
        "SLURM_NPROCS": layout.tasks_per_node * layout.nodes,
        "WORLD_SIZE": layout.world_size,
    }
    return {name: str(value) for name, value in numbers.items()}


def with_numbers(text: str, job: ScriptJob) -> str:
    """Return a text with Slurm's variables replaced by the known numbers of `job`."""
    request, rank = job.resources, job.rank
    values = {
        "SLURM_NNODES": job.nodes,
        "SLURM_JOB_NUM_NODES": job.nodes,
        "SLURM_CPUS_PER_TASK": request.cpus_per_task,
        "SLURM_GPUS_ON_NODE": request.gpus_per_node,
        "SLURM_GPUS_PER_NODE": request.gpus_per_node,
        "SLURM_NTASKS_PER_NODE": request.tasks_per_node,
        "SLURM_NTASKS": request.tasks,
        "WORLD_SIZE": rank.world_size,
    }
    numbers = {name: str(value) for name, value in values.items() if value is not None}
    return Values({}, numbers).put(text)


def written_at(text: str, at: Position) -> str:
    """Return the script's text at a position, with its quotes; "" for another file."""
    if not at.line or at.file:
        return ""
    lines = _lines(text)[at.line - 1 : at.end_line]
    if not lines:
        return ""
    lines[-1] = lines[-1][: at.end_column - 1]
    lines[0] = lines[0][at.column - 1 :]
    return "\n".join(lines)


@lru_cache(maxsize=4)
def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def spreads(written: str) -> bool:
    """Return whether bash expands a word, as written, to file names or several words."""
    return bool(_SPREADS.search(_QUOTED.sub("", written)))


def is_literal(written: str) -> bool:
    """Return whether bash expands nothing in a word, as written."""
    return not re.search(r"[$`]", re.sub(r"\\.|'[^']*'", "", written))


def within(at: Position, outer: Position) -> bool:
    """Return whether a position begins within another one of the same file."""
    start, end = (outer.line, outer.column), (outer.end_line, outer.end_column)
    return at.file == outer.file and start <= (at.line, at.column) < end
