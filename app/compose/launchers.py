"""The launchers, which start a job's ranks: one for each template in `templates/launchers/`."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
TRAINER_FOLDER = TEMPLATES.parent / "trainers"


@dataclass(frozen=True)
class Launcher:
    """What the comment at the head of a launcher's template says."""

    name: str
    summary: str
    tasks: str
    """`rank`: one Slurm task per rank; `node`: one per node, which starts the ranks; `one`: one
    in all."""
    binding: str
    """Who binds the ranks to cores: `masks` (srun), `torchrun` (its workers) or `none`."""
    multi_node: bool
    starts: str
    """What its words are followed by: a `command`; or a Python `script` and its arguments, or
    `--no-python` and a command."""


@cache
def launchers() -> dict[str, Launcher]:
    """Return the launchers by name: one for each template in `templates/launchers/`."""
    found = {}
    for path in sorted((TEMPLATES / "launchers").glob("*.sh.j2")):
        head = re.match(r"\{#(.*?)#\}", path.read_text(encoding="utf-8"), re.DOTALL)
        name = path.name.removesuffix(".sh.j2")
        found[name] = Launcher(name, **yaml.safe_load(head[1] if head else "{}"))
    return found
