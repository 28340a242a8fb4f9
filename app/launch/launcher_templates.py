"""The launchers, which start a job's ranks: one per template in `templates/launchers/`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
TRAINER_FOLDER = TEMPLATES.parent / "trainers"


@dataclass(frozen=True)
class Launcher:
    """A launcher, as the comment at the head of its template describes it."""

    name: str
    summary: str
    tasks: str
    """`rank`: one Slurm task per rank; `node`: one per node, which starts the ranks; `slot`: room
    for one task per rank, which the launcher starts itself; `one`: a single task."""
    binding: str
    """Who binds the ranks to cores: `masks` (srun), `torchrun` (its workers), `wrapper` (each rank
    itself, before it becomes the program) or `none`."""
    multi_node: bool
    starts: str
    """The words after the launcher's own: a `command`, or a Python `script` with its arguments, or
    `--no-python` and a command."""
    signals: str
    """How a stop signal reaches a program that is not a bundled trainer: `all` (Slurm signals each
    rank), `torchrun` (its agent passes on SIGTERM, and newer versions other signals) or `none`."""
    on_one_node: Mapping[str, Any] = field(default_factory=dict)
    """The fields that differ for a job on one node."""

    def on(self, nodes: int) -> "Launcher":
        """Return the launcher for a job on `nodes` nodes."""
        return replace(self, **self.on_one_node) if nodes == 1 else self


@cache
def launchers() -> dict[str, Launcher]:
    """Return the launchers by name."""
    rows = {}
    for path in sorted((TEMPLATES / "launchers").glob("*.sh.j2")):
        head = re.match(r"\{#(.*?)#\}", path.read_text(encoding="utf-8"), re.DOTALL)
        name = path.name.removesuffix(".sh.j2")
        rows[name] = Launcher(name, **yaml.safe_load(head[1] if head else "{}"))
    return rows
