"""A folder that somebody unpacked runs nothing here: neither a preview nor a send starts a program.

Each way leaves a file when its program runs. Where plain git runs it, that is tried first, so that
no way is one that could not work at all.
"""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lumitui.app.job.spec import parse_job
from lumitui.app.launch.send.code.project_files import collect, look
from lumitui.app.launch.send.code.provenance import provenance
from lumitui.remote.source import git as source_git

SPEC = parse_job(
    'name: x\nsite: laptop\npartition: local\ntime: "00:05:00"\nscript: train.py\n', "job.yaml"
)


@dataclass(frozen=True)
class Way:
    """One way in which a repository or its surroundings name a program."""

    name: str
    config: tuple[str, ...] = ()
    """Keys of `.git/config` that get the program."""
    attributes: str = ""
    """What every file gets in .gitattributes."""
    plain: tuple[str, ...] = ()
    """What plain git is called with to run it; (): git runs it with a terminal or network only."""
    more: Callable[[Path, Path], object] = field(default=lambda repo, program: None)
    """What else it takes."""


def git(folder: Path, *words: str, check: bool = True) -> str:
    own = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    done = subprocess.run(
        ["git", *own, *words], cwd=folder, capture_output=True, text=True, check=check, timeout=20
    )
    return done.stdout.strip()


def hooks(folder: Path, program: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in ("post-index-change", "pre-commit", "post-checkout", "reference-transaction"):
        (folder / name).write_bytes(program.read_bytes())
        (folder / name).chmod(0o755)


def hooks_elsewhere(repo: Path, program: Path) -> None:
    hooks(repo.parent / "hooks", program)
    git(repo, "config", "core.hooksPath", str(repo.parent / "hooks"))


def hooks_of_the_project(repo: Path, program: Path) -> None:
    hooks(repo / "hooks", program)
    git(repo, "config", "core.hooksPath", "hooks")


def included(repo: Path, program: Path) -> None:
    (repo / ".git" / "more").write_text(f'[filter "x"]\nclean = {program}\nsmudge = {program}\n')
    git(repo, "config", "include.path", "more")


def in_worktree(repo: Path, program: Path) -> None:
    git(repo, "config", "extensions.worktreeConfig", "true")
    (repo / ".git" / "config.worktree").write_text(f"[core]\nfsmonitor = {program}\n")


def elsewhere(repo: Path, program: Path) -> None:
    git(repo, "config", "filter.x.clean", str(program))
    (repo / ".git").rename(repo.parent / "elsewhere")
    (repo / ".git").write_text(f"gitdir: {repo.parent / 'elsewhere'}\n")


def linked_worktree(repo: Path, program: Path) -> None:
    (repo / ".git").rename(repo.parent / "main.git")
    git(repo.parent / "main.git", "config", "core.bare", "true")
    git(repo.parent / "main.git", "worktree", "add", "-q", str(repo.parent / "tree"), "HEAD")
    (repo.parent / "tree" / ".git").rename(repo / ".git")
    git(repo, "config", "filter.x.clean", str(program))


def bare(repo: Path, program: Path) -> None:
    """Put a repository without `.git` into the project itself, as an archive can."""
    for item in (repo / ".git").iterdir():
        item.rename(repo / item.name)
    (repo / ".git").rmdir()
    git(repo, "config", "core.bare", "false")
    git(repo, "config", "core.worktree", str(repo))
    git(repo, "config", "filter.x.clean", str(program))


def submodule(repo: Path, program: Path) -> None:
    other = repo.parent / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "a.py").write_text("a\n")
    git(other, "add", ".")
    git(other, "commit", "-q", "-m", "a")
    git(repo, "submodule", "--quiet", "add", str(other), "sub")
    git(repo, "commit", "-q", "-m", "sub")
    (repo / ".git/modules/sub/info/attributes").write_text("* filter=x\n")
    git(repo / "sub", "config", "filter.x.clean", str(program))
    git(repo / "sub", "config", "core.fsmonitor", str(program))
    (repo / "sub/a.py").write_text("b\n")


def alternates(repo: Path, program: Path) -> None:
    git(repo, "config", "core.alternateRefsCommand", str(program))
    other = repo.parent / "objects"
    (repo / ".git/objects").rename(other)
    (repo / ".git/objects/info").mkdir(parents=True)
    (repo / ".git/objects/info/alternates").write_text(f"{other}\n")


def promised(repo: Path, program: Path) -> None:
    """Make a partial clone that lacks what is committed: git brings it when it compares."""
    blob = git(repo, "rev-parse", "HEAD:train.py")
    (repo / ".git/objects" / blob[:2] / blob[2:]).unlink()
    git(repo, "config", "core.repositoryFormatVersion", "1")
    git(repo, "config", "extensions.partialClone", "origin")
    git(repo, "config", "remote.origin.promisor", "true")
    git(repo, "config", "remote.origin.url", "ssh://host/x")


def promised_here(repo: Path, program: Path) -> None:
    promised(repo, program)
    git(repo, "config", "remote.origin.url", str(repo.parent))
    git(repo, "config", "protocol.allow", "always")
    git(repo, "config", "remote.origin.uploadpack", str(program))


def promised_ext(repo: Path, program: Path) -> None:
    promised(repo, program)
    git(repo, "config", "protocol.ext.allow", "always")
    git(repo, "config", "remote.origin.url", f"ext::{program}")


def promised_proxy(repo: Path, program: Path) -> None:
    promised(repo, program)
    git(repo, "config", "remote.origin.url", "git://host/x")


def lfs(repo: Path, program: Path) -> None:
    for key in ("clean", "smudge", "process"):
        git(repo, "config", f"filter.lfs.{key}", f"{program} %f")
    git(repo, "config", "filter.lfs.required", "true")
    git(repo, "config", "lfs.extension.x.clean", str(program))
    (repo / ".lfsconfig").write_text(f"[lfs]\nstandalonetransferagent = {program}\n")


FILTER, DIFF = "filter=x", "diff=x"
WAYS = [
    Way("clean", ("filter.x.clean",), FILTER, ("diff",)),
    Way("process", ("filter.x.process",), FILTER, ("diff",)),
    Way("smudge", ("filter.x.smudge",), FILTER, ("checkout", "-f")),
    Way("required", ("filter.x.clean", "filter.x.required"), FILTER, ("diff",)),
    Way("an odd name", ("filter.a=b.c.clean",), "filter=a=b.c", ("diff",)),
    Way("include", (), FILTER, ("diff",), included),
    Way("lfs", (), "filter=lfs diff=lfs merge=lfs", ("diff",), lfs),
    Way("external diff", ("diff.external",), "", ("diff",)),
    Way("diff command", ("diff.x.command",), DIFF, ("diff",)),
    Way("textconv", ("diff.x.textconv",), DIFF, ("diff",)),
    Way("merge driver", ("merge.x.driver",), "merge=x"),
    Way("monitor", ("core.fsmonitor",), "", ("status",)),
    Way("monitor of a worktree", (), "", ("status",), in_worktree),
    Way("hooks", (), "", ("status",), lambda repo, to: hooks(repo / ".git/hooks", to)),
    Way("hooks elsewhere", (), "", ("status",), hooks_elsewhere),
    Way("hooks of the project", (), "", ("status",), hooks_of_the_project),
    Way("pager", ("core.pager", "pager.diff", "pager.config", "pager.ls-files")),
    Way("editor", ("core.editor", "sequence.editor")),
    Way("ask for a password", ("core.askPass", "credential.helper")),
    Way("alias", ("alias.diff", "alias.ls-files", "alias.rev-parse")),
    Way("gpg", ("gpg.program", "gpg.ssh.program"), "", (), lambda repo, to:
        git(repo, "config", "log.showSignature", "true")),
    Way("ssh", ("core.sshCommand",), "", ("diff",), promised),
    Way("upload-pack", (), "", ("diff",), promised_here),
    Way("ext", (), "", ("diff",), promised_ext),
    Way("proxy", ("core.gitProxy",), "", ("diff",), promised_proxy),
    Way(".git leads elsewhere", (), FILTER, ("diff",), elsewhere),
    Way("worktree", (), FILTER, ("diff",), linked_worktree),
    Way("bare", (), FILTER, (), bare),
    Way("submodule", (), "", ("diff",), submodule),
    Way("alternates", (), "", (), alternates),
    Way("trace", ("trace2.normalTarget",)),
    Way("info/attributes", ("filter.x.clean",), "", ("diff",), lambda repo, to:
        (repo / ".git/info/attributes").write_text("* filter=x\n")),
    Way("core.attributesFile", ("filter.x.clean",), "", ("diff",), lambda repo, to: (
        (repo / "list").write_text("* filter=x\n"),
        git(repo, "config", "core.attributesFile", str(repo / "list")))),
]  # fmt: skip


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "ran"


@pytest.fixture
def program(tmp_path: Path, marker: Path) -> Path:
    path = tmp_path / "program.sh"
    path.write_text(f'#!/bin/sh\necho "$0 $*" >>{marker}\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "train.py").write_text("print(1)\n")
    (folder / "same.py").write_text("print(0)\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def previewed_and_sent(repo: Path) -> str:
    """Do with the project what a preview and a send do; return the patch that is kept."""
    assert "train.py" in {entry.path for entry in collect(SPEC, repo).manifest.entries}
    assert not [one for one in look(SPEC, repo, None).findings if one.severity == "error"]
    return provenance(repo).patch


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_no_program_that_a_repository_names_is_run(
    way: Way, repo: Path, program: Path, marker: Path
) -> None:
    if way.attributes:
        (repo / ".gitattributes").write_text(f"* {way.attributes}\n")
    for key in way.config:
        text = "true" if key.endswith(".required") else str(program)
        git(repo, "config", key, text)
    way.more(repo, program)
    (repo / "train.py").write_text("print(2)\n")
    os.utime(repo / "same.py", (1, 1))
    if way.plain:
        git(repo, *way.plain, check=False)
        assert marker.exists(), "plain git does not run it: this way proves nothing"
        marker.unlink()
        (repo / "train.py").write_text("print(2)\n")
        os.utime(repo / "same.py", (1, 1))
    patch = previewed_and_sent(repo)
    assert not marker.exists(), marker.read_text()
    filtered = "filter=" in way.attributes and way.name != "bare"
    assert ("not compared: train.py (its filter" in patch) is (
        filtered or way.name in ("info/attributes", "core.attributesFile")
    )


def test_every_sentence_about_what_was_not_compared(repo: Path, program: Path) -> None:
    (repo / ".gitattributes").write_text("*.bin filter=lfs\n")
    (repo / "weights.bin").write_text("pointer\n")
    git(repo, "add", ".")
    submodule(repo, program)
    (repo / "weights.bin").write_text("all of it\n")
    (repo / "train.py").write_text("print(2)\n")
    found = provenance(repo)
    assert found.dirty and "+print(2)" in found.patch and "all of it" not in found.patch
    assert found.patch.startswith(
        "not compared: weights.bin (its filter 'lfs' is a program)\n"
        "not compared: changes inside sub (a submodule)\n"
    )


def test_what_git_cannot_tell_is_no_clean_tree(repo: Path, program: Path) -> None:
    promised(repo, program)
    (repo / "train.py").write_text("print(2)\n")
    found = provenance(repo)
    assert found.dirty and found.patch == "not compared: all changes, because git failed\n"


@pytest.mark.parametrize("where", ["", ".", "bin", "whole"])
def test_a_git_in_the_project_is_not_found_through_path(
    where: str, repo: Path, program: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / "bin").mkdir()
    for folder in (repo, repo / "bin"):
        (folder / "git").write_bytes(program.read_bytes())
        (folder / "git").chmod(0o755)
    place = str(repo / "bin") if where == "whole" else where
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    monkeypatch.chdir(repo)
    (repo / "train.py").write_text("print(2)\n")
    assert "+print(2)" in previewed_and_sent(repo)
    assert not marker.exists()


@pytest.mark.parametrize("own", [False, True])
def test_variables_of_git_lead_to_no_program(
    own: bool, repo: Path, program: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / ".gitattributes").write_text("* filter=x\n")
    settings = f'[filter "x"]\nclean = {program}\n[core]\nfsmonitor = {program}\n'
    if own:  # as `git lfs install` writes it, for every repository
        (repo.parent / "home/.gitconfig").write_text(settings)
    else:
        (repo.parent / "config").write_text(settings)
        for name in ("EXTERNAL_DIFF", "PAGER", "SSH_COMMAND", "EDITOR", "ASKPASS", "PROXY_COMMAND"):
            monkeypatch.setenv(f"GIT_{name}", str(program))
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(repo.parent / "config"))
        monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
        monkeypatch.setenv("GIT_CONFIG_KEY_0", "filter.x.clean")
        monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(program))
        monkeypatch.setenv("GIT_TRACE", str(marker))
    (repo / "train.py").write_text("print(2)\n")
    assert "not compared: train.py (its filter 'x' is a program)" in previewed_and_sent(repo)
    assert not marker.exists()


def test_nothing_of_the_repository_is_changed(repo: Path) -> None:
    (repo / "train.py").write_text("print(2)\n")
    os.utime(repo / "same.py", (1, 1))
    before = {path: path.stat() for path in repo.rglob("*") if path.is_file()}
    contents = {path: path.read_bytes() for path in before}
    previewed_and_sent(repo)
    assert {path for path in repo.rglob("*") if path.is_file()} == set(before)
    for path, seen in before.items():
        assert path.read_bytes() == contents[path]
        assert path.stat().st_mtime_ns == seen.st_mtime_ns


@pytest.mark.parametrize("name", ["HEAD", "config", "index", "commondir", "info/exclude"])
def test_git_is_not_asked_where_it_would_wait_for_a_pipe(
    repo: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = repo / ".git" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    asked: list[object] = []
    monkeypatch.setattr(source_git, "_out", lambda *words: asked.append(words))
    with source_git.reading(repo) as found:
        assert (found, asked) == (None, [])
