"""The cases of the adviser's rules: a script that each must speak about, and a near miss.

They are in `tests/app/knowledge/cases/`, by the module of their rule.
"""

from dataclasses import dataclass, field
from pathlib import Path

import yaml

CASES = Path(__file__).resolve().parents[2] / "app" / "knowledge" / "cases"


@dataclass(frozen=True)
class Case:
    """Two scripts of a rule."""

    rule: str
    site: str
    bad: str
    good: str
    module: str
    files: dict[str, str] = field(default_factory=dict)
    """Texts of files that both scripts name."""
    bad_files: dict[str, str] = field(default_factory=dict)
    good_files: dict[str, str] = field(default_factory=dict)
    """Those that differ: where the bad thing is not in the script."""
    good_site: str = ""
    """The good script's site, where a rule is about the site itself; "": the same."""
    line: int = 0
    """Where the finding stands in the bad script; 0: anywhere."""
    also: tuple[str, ...] = ()
    """Other rules that may speak about either script."""


def read_cases() -> list[Case]:
    """Return all cases, by module."""
    found = []
    for path in sorted(CASES.rglob("*.yaml")):
        module = str(path.relative_to(CASES).with_suffix(""))
        for item in yaml.load(path.read_text(), yaml.CSafeLoader) or []:
            found.append(Case(**{**item, "also": tuple(item.get("also", ()))}, module=module))
    return found
