"""Looks up known advisories of the versions that CI tests, with pip-audit.

make audit
"""

import json
import shutil
import subprocess
import sys

from tests.repository.supply.lists import CI, read

PATIENCE = 60  # seconds for all answers of pip-audit's service


class NoDatabaseError(Exception):
    """Nobody answered; its text says why, and what to do."""


def with_pip_audit() -> list[str]:
    """Return the advisories that pip-audit finds, in words.

    Raises NoDatabaseError where it or its service is missing.
    """
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
        f"{package['name']} {package['version']}: {hit['id']}; "
        f"fixed in {', '.join(hit['fix_versions']) or 'no release yet'}"
        for package in answer
        for hit in package.get("vulns", [])
    ]


def main() -> int:
    """Print what was found: 0 for nothing, or when nothing can be looked up; 1 for an advisory."""
    try:
        found = with_pip_audit()
    except NoDatabaseError as error:
        print(f"audit: skipped. {error}")
        return 0
    for advisory in found:
        print(f"audit: {advisory}")
    if not found:
        print(f"audit: no known advisory for the {len(read(CI))} packages of {CI.name}.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
