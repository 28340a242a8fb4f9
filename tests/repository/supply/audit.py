"""Looks up known advisories of the versions that CI tests: offline in a folder, or with pip-audit.

make audit [ADVISORIES=FOLDER]      FOLDER: a clone of PyPA's advisory database
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from packaging.version import Version

from tests.repository.supply.lists import CI, Pin, read

PATIENCE = 60  # seconds for all answers of pip-audit's service


@dataclass(frozen=True)
class Advisory:
    """A pinned release that an advisory names."""

    package: str
    version: str
    advisory: str
    fixed: str  # the first releases without the fault, "" where none is known

    def __str__(self) -> str:
        fixed = f"; fixed in {self.fixed}" if self.fixed else "; no fixed release is known"
        return f"{self.package} {self.version}: {self.advisory}{fixed}"


class NoDatabaseError(Exception):
    """Nobody answered; its text says why, and what to do."""


def in_folder(pins: dict[str, Pin], folder: Path) -> list[Advisory]:
    """Return the advisories of a clone of PyPA's database (vulns/<package>/*.yaml, OSV's format).

    Raises NoDatabaseError when the folder has no such file.
    """
    if not next(folder.glob("vulns/*/*.yaml"), None):
        raise NoDatabaseError(f"{folder} has no vulns/<package>/*.yaml: clone PyPA's database.")
    found: list[Advisory] = []
    for pin in pins.values():
        for path in sorted(folder.glob(f"vulns/{pin.name}/*.yaml")):
            record = yaml.safe_load(path.read_text(encoding="utf-8"))
            if not record.get("withdrawn"):
                found += _matches(record, pin)
    return found


def _matches(record: dict[str, Any], pin: Pin) -> Iterator[Advisory]:
    for affected in record.get("affected", []):
        if affected["package"]["name"].lower() != pin.name:
            continue
        ranges = [r for r in affected.get("ranges", []) if r["type"] == "ECOSYSTEM"]
        inside = any(_inside(pin.version, r["events"]) for r in ranges)
        if inside or str(pin.version) in affected.get("versions", []):
            events = [event for r in ranges for event in r["events"]]
            fixed = ", ".join(event["fixed"] for event in events if "fixed" in event)
            yield Advisory(pin.name, str(pin.version), record["id"], fixed)


def _inside(version: Version, events: list[dict[str, str]]) -> bool:
    """Whether the last event at or below `version` begins a fault (OSV's order of events)."""
    faulty = False
    for event in events:
        ((kind, text),) = event.items()
        at = Version("0") if text == "0" else Version(text)
        if kind == "introduced" and version >= at:
            faulty = True
        elif (kind == "fixed" and version >= at) or (kind == "last_affected" and version > at):
            faulty = False
    return faulty


def with_pip_audit(pins: dict[str, Pin]) -> list[Advisory]:
    """Return what pip-audit finds; raises NoDatabaseError where it or its service is missing."""
    program = shutil.which("pip-audit")
    if not program:
        raise NoDatabaseError("pip-audit is not installed: pipx install pip-audit.")
    argv = [program, "--no-deps", "--disable-pip", "--progress-spinner=off", "--format=json"]
    try:
        done = subprocess.run(
            [*argv, "--requirement", str(CI)], capture_output=True, text=True, timeout=PATIENCE
        )
        answer = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError) as error:
        raise NoDatabaseError("pip-audit's service does not answer.") from error
    # A service that knows no package at all is a mirror without advisories; pip-audit ends with 0.
    if not any("vulns" in package for package in answer):
        raise NoDatabaseError("pip-audit's service knows none of the packages.")
    return [
        Advisory(package["name"], package["version"], hit["id"], ", ".join(hit["fix_versions"]))
        for package in answer
        for hit in package.get("vulns", [])
    ]


def main() -> int:
    """Print what was found: 0 for nothing, or when nothing can be looked up; 1 for an advisory."""
    pins, folder = read(CI), os.environ.get("ADVISORIES")
    try:
        found = in_folder(pins, Path(folder)) if folder else with_pip_audit(pins)
    except NoDatabaseError as error:
        print(f"audit: skipped. {error} Or set ADVISORIES to a clone of PyPA's advisory database.")
        return 0
    for advisory in found:
        print(f"audit: {advisory}")
    if not found:
        print(f"audit: no known advisory for the {len(pins)} packages of {CI.name}.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
