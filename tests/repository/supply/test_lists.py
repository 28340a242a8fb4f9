"""The lists of versions: complete, hashed, free of known advisories, as pyproject.toml asks."""

import hashlib
import json
import re
import subprocess
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.repository.supply.audit import main
from tests.repository.supply.lists import CI, LOWEST, USERS, asked, name_of, read
from tests.support.places import ROOT

ASKED = [(group, need) for group, need in asked()]
# A release that an advisory names, the advisory, and the first release without the fault.
ADVISORIES = [
    ("click", "8.3.2", "CVE-2026-7246"),
    ("cryptography", "46.0.4", "CVE-2026-26007"),
    ("cryptography", "49.0.0", "CVE-2026-69247"),
    ("deepspeed", "0.15.0", "CVE-2024-43497"),
    ("jinja2", "3.1.5", "CVE-2025-27516"),
    ("lightning", "2.6.2", "GHSA-w37p-236h-pfx3"),
    ("lightning", "2.6.3", "GHSA-w37p-236h-pfx3"),
    ("lightning", "2.6.5", "CVE-2026-58659"),
    ("paramiko", "4.0.0", "CVE-2026-44405"),
    ("pydantic", "2.3.0", "CVE-2024-3772"),
    ("pyyaml", "5.3.1", "CVE-2020-14343"),
    ("setuptools", "78.1.0", "CVE-2025-47273"),
    ("torch", "2.9.1", "CVE-2026-24747"),
    ("torch", "2.12.0", "CVE-2025-3000"),
]
LISTS = pytest.mark.parametrize("path", [CI, LOWEST, USERS], ids=lambda path: path.name)


@pytest.mark.parametrize(("name", "version", "advisory"), ADVISORIES)
def test_no_release_with_a_known_advisory_is_allowed(
    name: str, version: str, advisory: str
) -> None:
    named = [need for _, need in ASKED if name_of(need) == name]
    assert named, f"nothing asks for {name}"
    assert not any(need.specifier.contains(version) for need in named), advisory


def test_malicious_releases_of_lightning_stay_named_whatever_the_floor() -> None:
    (need,) = [need for _, need in ASKED if name_of(need) == "lightning"]
    excluded = {part.version for part in need.specifier if part.operator == "!="}
    assert excluded == {"2.6.2", "2.6.3"}


@LISTS
def test_each_file_of_a_list_has_its_hash(path: Path) -> None:
    for pin in read(path).values():
        assert pin.hashes, f"{pin.name} has no hash"
        assert all(re.fullmatch("[0-9a-f]{64}", mark) for mark in pin.hashes), pin.name


def test_a_line_that_pins_nothing_is_an_error(tmp_path: Path) -> None:
    for line in ("click>=8", "--index-url https://example.org/simple", "-e ."):
        (tmp_path / "list.txt").write_text(f"{line}\n")
        with pytest.raises(ValueError, match="no pinned package"):
            read(tmp_path / "list.txt")


def test_ci_has_all_that_pyproject_asks_for_at_an_allowed_version() -> None:
    pins = read(CI)
    for need in (need for group, need in ASKED if group != "docs"):  # `make docs` has its own place
        assert name_of(need) in pins, f"{need.name}: run `make lock`"
        version = str(pins[name_of(need)].version)
        assert need.specifier.contains(version), f"{need}: run `make lock`"


def test_users_get_what_ci_tested_and_nothing_else() -> None:
    ci, users = read(CI), read(USERS)
    wanted = set()
    for group, need in ASKED:
        if group in {"needs", "build"}:
            wanted |= closure(need)
    assert set(users) == wanted
    assert all(ci[name] == pin for name, pin in users.items())


def closure(need: Requirement) -> set[str]:
    """Return what a requirement brings here, itself included."""
    found = {name_of(need)}
    for line in requires(need.name) or []:
        inner = Requirement(line)
        extras = {"", *need.extras}
        if not inner.marker or any(inner.marker.evaluate({"extra": extra}) for extra in extras):
            found |= closure(inner)
    return found


def test_the_lowest_list_has_the_floor_of_each_need() -> None:
    pins = read(LOWEST)
    for group, need in ASKED:
        if group != "needs":
            continue
        (floor,) = (part.version for part in need.specifier if part.operator == ">=")
        release = pins[name_of(need)].version
        assert release == Version(floor), f"{need}: run `make lock`, then `make lowest`"


def test_the_tests_that_the_lowest_versions_run_are_there() -> None:
    text = (ROOT / ".ci" / "lowest").read_text(encoding="utf-8")
    words = text[text.index("tests=(") :].partition(")\n")[0].removeprefix("tests=(")
    argv = ["bash", "-c", f"printf '%s\\n' {' '.join(words.split())}"]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    assert shown and [name for name in shown if not (ROOT / name).exists()] == []


REGISTRIES = {"a4aa2ac280bb", "8b5bb5eb9d75", "8743857e3ea0"}
"""Digests of registries' domains: this file must not contain their names either."""


def is_registry(host: str) -> bool:
    domain = ".".join(host.lower().split(".")[-2:])
    return hashlib.sha256(domain.encode()).hexdigest()[:12] in REGISTRIES


def test_no_file_names_the_host_of_a_package_registry() -> None:
    argv = ["git", "grep", "-I", "-i", "-o", "-E", "--untracked", r"[a-z0-9-]+(\.[a-z0-9-]+)+"]
    shown = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = set(shown.splitlines())
    assert any(line.endswith("files.example.org") for line in lines)
    assert [line for line in lines if is_registry(line.rpartition(":")[2])] == []


UNKNOWN = {"name": "click", "skip_reason": "Dependency not found and could not be audited"}
CLEAN = {"name": "rich", "version": "15.0.0", "vulns": []}
BAD = {"name": "click", "version": "8.3.2", "vulns": [{"id": "P-1", "fix_versions": ["8.3.3"]}]}


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (None, 0, "audit: skipped. pip-audit is not installed"),
        # pip-audit ends with 0 when a registry's mirror serves no advisories (seen with 2.10.1).
        ([UNKNOWN], 0, "audit: skipped. pip-audit's service knows none"),
        ([UNKNOWN, CLEAN], 0, "audit: no known advisory for the "),
        ([CLEAN, BAD], 1, "audit: click 8.3.2: P-1; fixed in 8.3.3\n"),
    ],
)
def test_an_advisory_fails_and_nobody_to_ask_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: list[object] | None,
    code: int,
    said: str,
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    if answer is not None:
        program = tmp_path / "pip-audit"
        program.write_text(f"#!/bin/sh\necho '{json.dumps({'dependencies': answer})}'\n")
        program.chmod(0o755)
    assert main() == code
    assert capsys.readouterr().out.startswith(said)
