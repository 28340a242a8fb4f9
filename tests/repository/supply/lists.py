"""The lists of versions that `make lock` writes, and what pyproject.toml asks for."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.places import ROOT

CI, LOWEST = ROOT / ".ci" / "constraints.txt", ROOT / ".ci" / "lowest.txt"
USERS = ROOT / "requirements.txt"
_ENTRY = re.compile(r"([a-z0-9_.-]+)==([^ ;\\]+)\s*(?:;\s*([^\\]+?))?\s*((?:--hash=\S+\s*)*)")


@dataclass(frozen=True)
class Pin:
    """One package of a list, at one version."""

    name: str
    version: Version
    marker: str  # where it is wanted, "" for everywhere
    hashes: tuple[str, ...]  # sha256 of each file that may be installed


def read(path: Path) -> dict[str, Pin]:
    """Return a list's pins by name; raises ValueError for a line that is none."""
    pins = {}
    for line in path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        found = _ENTRY.fullmatch(line.strip())
        if not found:
            raise ValueError(f"{path.name}: {line[:60]!r} is no pinned package")
        name, version, marker, hashes = found.groups()
        marks = tuple(word.removeprefix("--hash=sha256:") for word in hashes.split())
        pins[name] = Pin(name, Version(version), marker or "", marks)
    return pins


def asked() -> Iterator[tuple[str, Requirement]]:
    """Yield what pyproject.toml asks for with its group: `needs`, an extra, `dev`, `build`."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = table["project"]["optional-dependencies"]
    groups = {
        "needs": table["project"]["dependencies"],
        **extras,
        **table["dependency-groups"],
        "build": table["build-system"]["requires"],
    }
    for group, lines in groups.items():
        for line in lines:
            yield group, Requirement(line)


def name_of(requirement: Requirement) -> str:
    """Return the name under which the lists have it."""
    return canonicalize_name(requirement.name)
