"""The list of parts: CycloneDX, complete, and the same bytes for the same requirements.txt."""

import json
import subprocess
import sys

from tests.repository.supply.lists import USERS, read
from tests.repository.supply.sbom import document
from tests.support.places import ROOT


def test_it_has_each_pinned_package_and_who_needs_it() -> None:
    made = json.loads(json.dumps(document()))
    listed = {part["name"]: part for part in made["components"]}
    assert {name: part["version"] for name, part in listed.items()} == {
        name: str(pin.version) for name, pin in read(USERS).items()
    }
    needs = {entry["ref"]: entry["dependsOn"] for entry in made["dependencies"]}
    itself = made["metadata"]["component"]
    assert itself["licenses"] == [{"expression": "MIT AND CC-BY-SA-3.0"}]
    assert listed["textual"]["bom-ref"] in needs[itself["bom-ref"]]
    assert listed["rich"]["bom-ref"] in needs[listed["textual"]["bom-ref"]]
    assert set(needs) == {part["bom-ref"] for part in made["components"]} | {itself["bom-ref"]}


def test_the_same_list_gives_the_same_bytes() -> None:
    argv = [sys.executable, "-m", "tests.repository.supply.sbom"]
    first, second = (
        subprocess.run(argv, cwd=ROOT, capture_output=True, check=True, timeout=60).stdout
        for _ in range(2)
    )
    assert first == second and json.loads(first)["bomFormat"] == "CycloneDX"
