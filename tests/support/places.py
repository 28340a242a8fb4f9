"""Where the parts of the repository are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""
CLUSTER = ROOT / "tests" / "cluster"
"""What makes and shapes the mini cluster."""
SITES = CLUSTER / "sites"
"""Profiles of the mini cluster."""
GOLDEN = ROOT / "tests" / "golden"
"""Scripts as they must be composed."""
SCHEMAS = GOLDEN / "schemas"
"""The tables of each released schema of the history, and a file from before the first."""
ALLOWED_SKIPS = ROOT / "tests" / "allowed_skips.txt"
"""Which tests may be skipped where every test should run, and why."""
TRAINERS = ROOT / "trainers"
TRAINER_MODULES = sorted(
    path.stem
    for path in TRAINERS.iterdir()
    if path.suffix == ".py" or (path / "__init__.py").exists()
)
"""The top names that a trainer can import from its own folder."""
