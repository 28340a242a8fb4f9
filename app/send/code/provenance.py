"""Which code is about to be sent: git's commit and branch, and the uncommitted changes."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lumitui.app.history.run import Provenance

PATCH_BYTES = 1_000_000
"""How much is kept of the uncommitted changes; a longer patch ends with a note that it was cut."""
_SECONDS = 10.0
_NONE = Provenance(None, None, "", False)


def provenance(project: Path, private: Sequence[str] = ()) -> Provenance:
    """Return what git knows about the folder `project`; all empty outside a repository.

    Only the folder itself counts, which is what is sent, not the rest of the repository. When git
    is missing or too slow, the run is sent without this record. What changed in the `private`
    files is left out of the patch: they look like secrets.
    """
    commit = _git(project, "rev-parse", "--verify", "HEAD")
    inside = commit is not None or _git(project, "rev-parse", "--git-dir") is not None
    if not inside:
        return _NONE
    branch = _git(project, "symbolic-ref", "--short", "-q", "HEAD")
    # --no-ext-diff and --no-textconv: a person's own diff programs are not run.
    base = ["HEAD"] if commit else ["--cached"]
    options = ["--no-color", "--no-ext-diff", "--no-textconv", "--relative"]
    rest = [".", *(f":(exclude,literal){path}" for path in private)]
    diff = _git(project, "diff", *base, *options, "--", *rest) or ""
    listed = _git(project, "ls-files", "--others", "--exclude-standard", "-z", "--", ".") or ""
    names = [name for name in listed.split("\0") if name]
    untracked = "".join(f"untracked: {name}\n" for name in names)
    return Provenance(
        commit=commit.strip() if commit else None,
        branch=branch.strip() if branch else None,
        patch=_bounded(untracked, PATCH_BYTES // 10) + _bounded(diff, PATCH_BYTES * 9 // 10),
        dirty=bool(names or diff),
    )


def _bounded(text: str, limit: int) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text
    note = f"\n[cut: {len(data)} bytes in all]\n"
    return data[: limit - len(note)].decode("utf-8", "ignore") + note


def _git(project: Path, *words: str) -> str | None:
    """Return what git prints; None when it fails or is not installed."""
    # A person's own git may be running: take no lock, and ask for no password.
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        environment.pop(name, None)
    # No fsmonitor: the repository could name any program.
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", *words]
    try:
        done = subprocess.run(
            command,
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
