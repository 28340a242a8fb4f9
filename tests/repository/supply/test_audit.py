"""The audit: a faulty release is found, its neighbours are not, and nobody to ask is a sentence."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

from tests.repository.supply.audit import NoDatabaseError, in_folder, with_pip_audit
from tests.repository.supply.lists import CI, Pin, read
from tests.support.places import ROOT

# An entry of PyPA's database, cut to what is read.
RECORD = """\
id: PYSEC-2026-1
affected:
- package: {{name: {name}, ecosystem: PyPI}}
  ranges:
  - type: ECOSYSTEM
    events: {events}
  versions: {versions}
{withdrawn}"""
TWICE = "[{introduced: '0'}, {fixed: '2.1'}, {introduced: '3.0'}, {fixed: 3.2.1}]"
LAST = "[{introduced: '1.0'}, {last_affected: '2.0'}]"


def plant(folder: Path, name: str, events: str, versions: str = "[]", withdrawn: str = "") -> None:
    path = folder / "vulns" / name / "PYSEC-2026-1.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(RECORD.format(name=name, events=events, versions=versions, withdrawn=withdrawn))


def pins(version: str) -> dict[str, Pin]:
    return {"click": Pin("click", Version(version), "", ())}


@pytest.mark.parametrize(
    ("version", "events", "faulty"),
    [
        ("2.0", TWICE, True),
        ("2.1", TWICE, False),
        ("3.2.0", TWICE, True),
        ("3.2.1", TWICE, False),
        ("0.9", LAST, False),
        ("2.0", LAST, True),
        ("2.0.1", LAST, False),
    ],
)
def test_a_release_is_faulty_within_the_ranges_only(
    tmp_path: Path, version: str, events: str, faulty: bool
) -> None:
    plant(tmp_path, "click", events)
    assert bool(in_folder(pins(version), tmp_path)) is faulty


def test_a_listed_release_is_found_and_a_withdrawn_advisory_is_not(tmp_path: Path) -> None:
    plant(tmp_path / "kept", "click", "[]", "['8.5.1']")
    plant(tmp_path / "gone", "click", "[]", "['8.5.1']", "withdrawn: '2026-01-01T00:00:00Z'\n")
    (found,) = in_folder(pins("8.5.1"), tmp_path / "kept")
    assert str(found) == "click 8.5.1: PYSEC-2026-1; no fixed release is known"
    assert in_folder(pins("8.5.1"), tmp_path / "gone") == []


def test_another_package_of_the_folder_is_not_mixed_up(tmp_path: Path) -> None:
    plant(tmp_path, "clicks", "[{introduced: '0'}]")
    assert in_folder(pins("8.5.1"), tmp_path) == []


def test_a_folder_without_advisories_is_said(tmp_path: Path) -> None:
    with pytest.raises(NoDatabaseError, match="has no vulns/"):
        in_folder(pins("1.0"), tmp_path)


def test_it_fails_on_an_advisory_and_skips_with_a_sentence(tmp_path: Path) -> None:
    plant(tmp_path, "click", "[{introduced: '0'}, {fixed: '999'}]")
    argv = [sys.executable, "-m", "tests.repository.supply.audit"]
    results = [
        subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
        for env in ({"ADVISORIES": str(tmp_path)}, {"ADVISORIES": str(tmp_path / "none")})
    ]
    click = read(CI)["click"].version
    assert results[0].stdout == f"audit: click {click}: PYSEC-2026-1; fixed in 999\n"
    assert results[1].stdout.startswith("audit: skipped. ")
    assert [result.returncode for result in results] == [1, 0]


def test_a_service_that_knows_no_package_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip-audit ends with 0 when a registry's mirror serves no advisories (seen with 2.10.1)."""
    unknown = {"name": "click", "skip_reason": "Dependency not found and could not be audited"}
    clean = {"name": "rich", "version": "15.0.0", "vulns": []}
    bad = {"name": "click", "version": "8.3.2", "vulns": [{"id": "P-1", "fix_versions": ["8.3.3"]}]}
    program = tmp_path / "pip-audit"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(NoDatabaseError, match="is not installed"):
        with_pip_audit({})
    for packages in ([unknown], [unknown, clean], [clean, bad]):
        program.write_text(f"#!/bin/sh\necho '{json.dumps({'dependencies': packages})}'\n")
        program.chmod(0o755)
        if packages == [unknown]:
            with pytest.raises(NoDatabaseError, match="knows none"):
                with_pip_audit({})
        else:
            assert len(with_pip_audit({})) == (bad in packages)
