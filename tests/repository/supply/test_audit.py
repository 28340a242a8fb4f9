"""The audit: what pip-audit finds fails, and nobody to ask is a sentence."""

import json
from pathlib import Path

import pytest

from tests.repository.supply.audit import main

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
