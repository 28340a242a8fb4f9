"""What a row's run showed, kept for the table of tests/golden/systems.md."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.support.places import ROOT

FOLDER = ROOT / "build" / "systems"
"""A file for each row that has been run."""


@dataclass(frozen=True)
class Outcome:
    """One row's run on the mini cluster of its site's shape."""

    row: str
    launched: str
    """Launcher, strategy and layout, in words."""
    ranks: int
    """World size that the program itself reported."""
    proof: str
    """The verdict of the probe: proved, unbound ..."""
    measured: int
    """Ranks that the probe measured."""
    seconds: float
    """From the start of the job to its end."""
    same_as: str = ""
    """The row whose run this is: the script of ours is the same, byte for byte."""

    def keep(self) -> None:
        """Write it down for the table."""
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"{self.row.replace('/', ' ')}.json").write_text(json.dumps(asdict(self)))


def kept(row: str) -> Outcome | None:
    """Return what the last run of a row showed; None: it was never run here."""
    path: Path = FOLDER / f"{row.replace('/', ' ')}.json"
    return Outcome(**json.loads(path.read_text())) if path.exists() else None
