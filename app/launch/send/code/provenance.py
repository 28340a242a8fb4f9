"""The origin of the code to send: git's commit and branch, and the uncommitted changes."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from lumitui.app.history.run import Provenance
from lumitui.remote.source.git import Git, reading

PATCH_BYTES = 1_000_000
"""Maximum bytes of uncommitted changes to keep; a longer patch is cut, and ends with a note."""
_MOST_EXCLUDED = 1000
"""Maximum number of files that one call excludes: Linux limits a command line to 2 MB."""
_NONE = Provenance(None, None, "", False)
_OPTIONS = ("--no-color", "--no-ext-diff", "--no-textconv", "--relative")
# Without the submodule's own configuration, git cannot tell whether it is dirty.
_SUBMODULES = ("--submodule=short", "--ignore-submodules=dirty")


def provenance(project: Path, private: Sequence[str] = ()) -> Provenance:
    """Return the commit, branch and changes of the folder `project`; empty outside a repository.

    Only the folder that is sent counts, not the rest of the repository. If git is missing or too
    slow, the run is sent without this record. The patch omits changes in the `private` files, which
    look like secrets, and changes that git could only show by running a program of the repository;
    the patch begins with the names of the latter.
    """
    with reading(project) as git:
        if git is None or _text(git, "rev-parse", "--git-dir") is None:
            return _NONE
        commit = _text(git, "rev-parse", "--verify", "HEAD")
        branch = _text(git, "symbolic-ref", "--short", "-q", "HEAD")
        filtered = list(_filtered(git)) if commit else []
        listed = _text(git, "ls-files", "--others", "--exclude-standard", "-z", "--", ".") or ""
        omitted = [f"{path} (its filter {name!r} is a program)" for path, name in filtered]
        omitted += [f"changes inside {path} (a submodule)" for path in _submodules(git)]
        diff = None
        if len(filtered) + len(private) <= _MOST_EXCLUDED:
            diff = _diff(git, commit, [*private, *(path for path, _ in filtered)])
        if diff is None:
            omitted.append("all changes, because git failed")
    names = [name for name in listed.split("\0") if name]
    notes = "".join(f"not compared: {one}\n" for one in omitted)
    notes += "".join(f"untracked: {name}\n" for name in names)
    return Provenance(
        commit=commit.strip() if commit else None,
        branch=branch.strip() if branch else None,
        patch=_bounded(notes, PATCH_BYTES // 10) + _bounded(diff or "", PATCH_BYTES * 9 // 10),
        dirty=bool(names or diff is None or diff or filtered),
    )


def _diff(git: Git, commit: str | None, excluded: Sequence[str]) -> str | None:
    base = ["HEAD"] if commit else ["--cached"]
    paths = [".", *(f":(exclude,literal){path}" for path in excluded)]
    return _text(git, "diff", *base, *_OPTIONS, *_SUBMODULES, "--", *paths)


def _filtered(git: Git) -> Iterator[tuple[str, str]]:
    """Yield the possibly changed files that git reads through a filter, with the filter's name.

    Without their filter (git-lfs, git-crypt), all of them would differ from the commit.
    """
    raw = ["diff-index", "--name-only", "-z", "--relative", "--no-renames", *_SUBMODULES]
    changed = git.out(*raw, "HEAD", "--", ".") or b""
    answer = git.out("check-attr", "-z", "--stdin", "filter", data=changed) if changed else b""
    fields = os.fsdecode(answer or b"").split("\0")
    for path, _, name in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        if name not in ("unspecified", "unset") and os.path.lexists(git.root / path):
            yield path, name


def _submodules(git: Git) -> Iterator[str]:
    """Yield the checked-out submodules in the folder."""
    if not (git.top / ".gitmodules").exists():
        return
    for line in (_text(git, "ls-files", "--stage", "-z", "--", ".") or "").split("\0"):
        mode, _, path = line.partition("\t")
        if mode.startswith("160000 ") and os.path.exists(git.root / path / ".git"):
            yield path


def _bounded(text: str, limit: int) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text
    note = f"\n[cut: {len(data)} bytes in all]\n"
    return data[: limit - len(note)].decode("utf-8", "ignore") + note


def _text(git: Git, *words: str) -> str | None:
    out = git.out(*words)
    return None if out is None else out.decode("utf-8", "replace")
