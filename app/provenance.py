"""Which code a run is: commit, branch and uncommitted changes, asked of git."""

import os
import subprocess
from pathlib import Path

from lumitui.app.records import Provenance

PATCH_BYTES = 1_000_000
"""Longer patches are cut, and say so: history keeps one a run."""
_SECONDS = 20.0


def provenance(project: Path) -> Provenance:
    """Return what git knows of the folder; all empty outside a repository or without git."""
    commit = _git(project, "rev-parse", "--verify", "--quiet", "HEAD")
    if commit is None:
        return Provenance(None, None, "", False)
    branch = _git(project, "symbolic-ref", "--quiet", "--short", "HEAD")
    # --relative: a project may be a folder of a larger repository.
    patch = _git(project, "diff", "--no-ext-diff", "--no-color", "--relative", "HEAD") or ""
    untracked = _git(project, "ls-files", "--others", "--exclude-standard") or ""
    if untracked.strip():
        names = "".join(f"# untracked: {name}\n" for name in untracked.splitlines())
        patch = f"{patch}\n{names}" if patch else names
    if len(patch) > PATCH_BYTES:
        patch = f"{patch[:PATCH_BYTES]}\n# cut at {PATCH_BYTES} characters\n"
    return Provenance(commit.strip(), (branch or "").strip() or None, patch, bool(patch))


def _git(folder: Path, *words: str) -> str | None:
    """Return what a git command prints; None when it fails or git is not there."""
    try:
        result = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            # A look must not write the index, which another git may be using.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.decode("utf-8", "replace") if result.returncode == 0 else None
