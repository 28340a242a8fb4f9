"""Writes a CycloneDX list of what requirements.txt installs, the same bytes for the same list.

make sbom
"""

import json
import sys
import tomllib
import uuid
from collections.abc import Mapping
from importlib.metadata import Distribution, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.repository.supply.lists import USERS, Pin, read
from tests.support.places import ROOT

Document = dict[str, object]


def document() -> Document:
    """Return lumitui, each pinned package and who needs whom, as CycloneDX 1.6.

    It holds no time, and its serial number comes from the list: https://cyclonedx.org/docs/1.6/json
    """
    pins = read(USERS)
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    itself = f"pkg:pypi/lumitui@{table['version']}"
    needs = {itself: _known(table["dependencies"], pins)}
    components = []
    for pin in pins.values():
        installed = _installed(pin)
        needs[_address(pin)] = _known(installed.requires or [] if installed else [], pins)
        components.append(_component(pin, installed))
    text = USERS.read_text(encoding="utf-8")
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, itself + text)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": itself,
                "name": "lumitui",
                "version": table["version"],
                "description": table["description"],
                "licenses": [{"expression": table["license"]}],
                "purl": itself,
            }
        },
        "components": components,
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(wanted)} for ref, wanted in sorted(needs.items())
        ],
    }


def _address(pin: Pin) -> str:
    return f"pkg:pypi/{pin.name}@{pin.version}"


def _installed(pin: Pin) -> Distribution | None:
    """Return the metadata of a package that is installed here; Windows' own are not."""
    return None if "win32" in pin.marker else distribution(pin.name)


def _component(pin: Pin, installed: Distribution | None) -> Document:
    component: Document = {
        "type": "library",
        "bom-ref": _address(pin),
        "name": pin.name,
        "version": str(pin.version),
        "purl": _address(pin),
        # Several files stand for one version, so their hashes are no hash of the component.
        "properties": [
            *({"name": "lumitui:sha256", "value": mark} for mark in pin.hashes),
            *([{"name": "lumitui:marker", "value": pin.marker}] if pin.marker else []),
        ],
    }
    if installed and "License-Expression" in installed.metadata:
        component["licenses"] = [{"expression": installed.metadata["License-Expression"]}]
    return component


def _known(lines: list[str], pins: Mapping[str, Pin]) -> set[str]:
    """Return the addresses of what `lines` ask for, extras left out, if it is in the list."""
    names = set()
    for need in map(Requirement, lines):
        if "extra" not in str(need.marker or ""):
            names.add(canonicalize_name(need.name))
    return {_address(pins[name]) for name in names & set(pins)}


if __name__ == "__main__":
    json.dump(document(), sys.stdout, indent=2)
    print()
