"""Files that did not change are not read again, and no change is ever missed."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lumitui.app.launch.send.code.project_files import collect
from lumitui.remote.source import scan as module
from lumitui.remote.source.hash_cache import Hashes
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.source.scan import scan
from tests.support.jobs.small_jobs import hello_job, hello_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    for name in ("a", "b", "c"):
        (root / name).write_text(name)
    return root


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that are opened to be hashed."""
    names: list[str] = []
    opened = module.opened

    def watched(source: Path) -> int:
        names.append(source.name)
        return opened(source)

    monkeypatch.setattr(module, "opened", watched)
    return names


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every scan be ten seconds after the files were written."""
    monkeypatch.setattr(time, "time_ns", lambda now=time.time_ns: now() + 10_000_000_000)


def scanned(root: Path) -> Manifest:
    return scan(root, hashes=Hashes(root.with_name("known.json"), root))


@pytest.mark.usefixtures("later")
def test_what_stayed_the_same_is_not_read_again(project: Path, read: list[str]) -> None:
    first = scanned(project)
    assert (read, project.with_name("known.json").stat().st_mode & 0o777) == (
        ["a", "b", "c"], 0o600
    )  # fmt: skip
    read.clear()
    written = project.with_name("known.json").stat().st_mtime_ns
    assert scanned(project) == first == scan(project) and read == ["a", "b", "c"]
    assert project.with_name("known.json").stat().st_mtime_ns == written
    read.clear()
    (project / "b").write_text("B")
    (project / "c").unlink()
    changed = scanned(project)
    assert read == ["b"] and changed == scan(project)
    read.clear()
    (project / "a").chmod(0o755)
    assert [entry.executable for entry in scanned(project).entries] == [True, False] and read == [
        "a"
    ]


def test_a_file_that_was_just_written_is_read_again(project: Path, read: list[str]) -> None:
    scanned(project)
    # A coarse clock would show the same times after a second write: nothing is remembered.
    assert not project.with_name("known.json").exists()
    read.clear()
    assert scanned(project) == scan(project)
    assert read.count("a") == 2


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize(
    "change", ["content and mtime kept", "another file by rename", "longer", "another time"]
)
def test_no_change_is_missed(project: Path, change: str) -> None:
    scanned(project)
    at, info = project / "a", (project / "a").stat()
    if change == "another file by rename":
        (project / "new").write_text("x")
        os.utime(project / "new", ns=(info.st_atime_ns, info.st_mtime_ns))
        (project / "new").rename(at)
    elif change == "longer":
        at.write_text("longer")
    else:
        at.write_text("x")
        if change == "content and mtime kept":
            os.utime(at, ns=(info.st_atime_ns, info.st_mtime_ns))  # the inode's own time shows it
    assert scanned(project) == scan(project)


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize(
    "harm", ["text", "list", "rows", "version", "root", "mode", "link", "folder", "deep"]
)
def test_a_list_that_cannot_be_trusted_is_not_used(
    project: Path, read: list[str], harm: str
) -> None:
    scanned(project)
    known = project.with_name("known.json")
    content = json.loads(known.read_text())
    wrong = "0" * 64
    content["files"]["a"][5] = wrong  # what must not be believed
    match harm:
        case "text":
            known.write_bytes(b"\xff{")
        case "list":
            known.write_text("[1]")
        case "rows":
            content["files"] = {"a": [1, 2], "b": None, "c": [*content["files"]["c"][:5], "short"]}
            known.write_text(json.dumps(content))
        case "version" | "root":
            known.write_text(json.dumps(content | {harm: "other"}))
        case "mode":
            known.write_text(json.dumps(content))
            known.chmod(0o666)
        case "link":
            known.rename(known.with_name("there"))
            known.with_name("there").write_text(json.dumps(content))
            known.symlink_to("there")
        case "folder":
            known.unlink()
            known.mkdir()
        case _:
            known.write_text("[" * 100_000)
    read.clear()
    assert wrong not in scanned(project).text
    assert read == ["a", "b", "c"]


@pytest.mark.usefixtures("later")
def test_a_list_that_cannot_be_written_costs_only_time(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "open", refusing(os.open))
    assert scanned(project) == scan(project)
    assert os.listdir(project.parent) == ["project"]


def refusing(plain: Callable[..., int]) -> Callable[..., int]:
    def opener(path: object, flags: int, *rest: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(28, "No space left on device")
        return plain(path, flags, *rest)

    return opener


@pytest.mark.usefixtures("later")
def test_each_project_has_a_list_of_its_own(tmp_path: Path, read: list[str]) -> None:
    spec = hello_job(site="lumi")
    for name in ("one", "two"):
        collect(spec, hello_project(tmp_path / name), tmp_path / "known")
    read.clear()
    collect(spec, tmp_path / "one", tmp_path / "known")
    assert read == [] and len(os.listdir(tmp_path / "known")) == 2
