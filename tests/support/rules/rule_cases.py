"""The cases of the adviser's rules: a script that each must speak about, and a near miss.

They are in `tests/app/knowledge/cases/`, by the module of their rule. The good script of a case is
a patch of a script in `bases.yaml`, and the bad one is a patch of the good one.
"""

from dataclasses import dataclass, field
from pathlib import Path

import yaml

CASES = Path(__file__).resolve().parents[2] / "app" / "knowledge" / "cases"
BASES = CASES / "bases.yaml"


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


def patched(text: str, patch: str) -> str:
    """Return a text with its patch: `-` removes the next such line, `=` keeps it, `+` adds one."""
    lines, at = text.split("\n"), 0
    new: list[str] = []
    for step in patch.split("\n") if patch else ():
        sign, line = step[:1], step[1:]
        if sign == "+":
            new.append(line)
            continue
        place = lines.index(line, at)
        new += lines[at : place + (sign == "=")]
        at = place + 1
    return "\n".join(new + lines[at:])


def read_cases() -> list[Case]:
    """Return all cases, by module."""
    bases = yaml.load(BASES.read_text(), yaml.CSafeLoader)
    cases = []
    for path in sorted(set(CASES.rglob("*.yaml")) - {BASES}):
        module = str(path.relative_to(CASES).with_suffix(""))
        for item in yaml.load(path.read_text(), yaml.CSafeLoader):
            base = bases[item.pop("base")]
            good = patched(base["script"], item.pop("good", ""))
            bad = patched(good, item.pop("bad", ""))
            also = tuple(item.pop("also", ()))
            cases.append(
                Case(**{"site": base["site"], **item}, good=good, bad=bad, also=also, module=module)
            )
    return cases
