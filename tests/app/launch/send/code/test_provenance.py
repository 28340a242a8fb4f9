"""What a run keeps of git: the commit, the branch and the patch, without running its programs."""

import os
import subprocess
from pathlib import Path

import pytest

from lumitui.app.history.run import Provenance
from lumitui.app.launch.send.code.provenance import PATCH_BYTES, provenance

NONE = Provenance(None, None, "", False)


def git(folder: Path, *words: str) -> str:
    environment = os.environ | {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    done = subprocess.run(
        ["git", *words], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "train.py").write_text("one\n")
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "x.py").write_text("x\n")
    (folder / "project").mkdir()
    (folder / "project" / "y.py").write_text("y\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def test_a_clean_tree_has_commit_and_branch_and_no_patch(repo: Path) -> None:
    assert provenance(repo) == Provenance(git(repo, "rev-parse", "HEAD"), "main", "", False)


def test_changes_staged_or_not_and_untracked_names_are_in_the_patch(repo: Path) -> None:
    (repo / "train.py").write_text("two\n")
    (repo / "project" / "y.py").write_text("staged\n")
    git(repo, "add", "project")
    (repo / "näw.py").write_text("secret content\n")
    found = provenance(repo)
    assert found.dirty
    assert "-one" in found.patch and "+two" in found.patch and "+staged" in found.patch
    assert "untracked: näw.py" in found.patch
    assert "secret content" not in found.patch


def test_the_patch_can_be_applied_again(repo: Path) -> None:
    (repo / "train.py").write_text("two\n")
    patch = provenance(repo).patch
    git(repo, "checkout", "-q", "train.py")
    subprocess.run(["git", "apply"], cwd=repo, input=patch, text=True, check=True)
    assert (repo / "train.py").read_text() == "two\n"


def test_only_the_projects_folder_counts(repo: Path) -> None:
    (repo / "elsewhere" / "x.py").write_text("changed\n")
    (repo / "elsewhere" / "new.py").write_text("new\n")
    assert not provenance(repo / "project").dirty
    assert provenance(repo).dirty


def test_ignored_files_are_not_named(repo: Path) -> None:
    (repo / ".gitignore").write_text("*.log\n")
    (repo / "a.log").write_text("x")
    assert "a.log" not in provenance(repo).patch


def test_a_detached_head_has_no_branch(repo: Path) -> None:
    git(repo, "checkout", "-q", "--detach")
    found = provenance(repo)
    assert found.commit and found.branch is None


def test_a_repository_without_a_commit_is_dirty_and_named_by_its_branch(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "trunk")
    (tmp_path / "a.py").write_text("a\n")
    git(tmp_path, "add", ".")
    found = provenance(tmp_path)
    assert (found.commit, found.branch, found.dirty) == (None, "trunk", True)
    assert "+a" in found.patch


def test_a_patch_that_is_too_long_is_cut_and_says_so(repo: Path) -> None:
    (repo / "train.py").write_text("long line ä\n" * 200_000)
    found = provenance(repo)
    assert len(found.patch.encode()) <= PATCH_BYTES
    assert "[cut: " in found.patch[-60:]


def test_no_program_of_the_repository_is_run(repo: Path) -> None:
    witness = repo.parent / "ran"
    program = repo.parent / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch {witness}\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "diff.external", "diff.x.textconv"):
        git(repo, "config", key, str(program))
    (repo / ".gitattributes").write_text("*.py diff=x\n")
    (repo / "train.py").write_text("two\n")
    assert "+two" in provenance(repo).patch
    assert not witness.exists()


def test_no_lock_is_taken(repo: Path) -> None:
    (repo / ".git" / "index.lock").touch()
    (repo / "train.py").write_text("two\n")
    assert provenance(repo).dirty


def test_without_repository_folder_or_git_there_is_nothing(
    tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    assert provenance(plain) == NONE
    assert provenance(tmp_path / "missing") == NONE
    monkeypatch.setenv("PATH", str(plain))
    assert provenance(repo) == NONE


def test_gits_variables_of_a_hook_do_not_lead_elsewhere(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert provenance(repo).branch == "main"


def test_what_changed_in_a_secret_is_not_kept(repo: Path) -> None:
    project = repo / "project"
    for name in (".env", "y.py", "odd [1]*.key"):
        (project / name).write_text("before\n")
    git(repo, "add", "-f", ".")
    git(repo, "commit", "-q", "-m", "second")
    for name in (".env", "y.py", "odd [1]*.key"):
        (project / name).write_text("after\n")
    patch = provenance(project, [".env", "odd [1]*.key"]).patch
    assert "y.py" in patch and ".env" not in patch and "odd" not in patch
    assert provenance(project, [".env"]).dirty
