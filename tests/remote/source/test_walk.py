"""Which files of a project are sent, and how much may be."""

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lumitui.remote.site.errors import InputError
from lumitui.remote.source import project_walk
from lumitui.remote.source.guard import ScanGuard
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.source.project_walk import Follow, ProjectLimits
from lumitui.remote.source.scan import scan, source_of
from lumitui.remote.transfer.contents.pieces import content
from tests.support.files.project_files import shipped, write


def test_some_folders_are_never_shipped(tmp_path: Path) -> None:
    write(tmp_path, ".git/config", "__pycache__/a.pyc", "x/node_modules/b", "my env/pyvenv.cfg")
    write(tmp_path, "my env/bin/python", "x/kept")
    assert shipped(tmp_path) == ["x/kept"]


def test_a_worktree_s_git_file_is_not_shipped(tmp_path: Path) -> None:
    assert shipped(write(tmp_path, ".git", "a")) == ["a"]


def test_lumituiignore_decides_over_gitignore(tmp_path: Path) -> None:
    write(tmp_path, "data/a.bin", "data/sub/b.bin", "out/c", "notes.md", "d/x.md")
    (tmp_path / ".gitignore").write_text("data/\nout/\n")
    (tmp_path / ".lumituiignore").write_text("*.md\n!data/sub/b.bin\n!out/\n")
    (tmp_path / "d" / ".lumituiignore").write_text("!x.md\n")
    (tmp_path / "data" / ".gitignore").write_text("!a.bin\n")  # git does not read it there
    expected = [".gitignore", ".lumituiignore", "d/.lumituiignore", "d/x.md"]
    assert shipped(tmp_path) == sorted([*expected, "data/sub/b.bin", "out/c"])


def test_ignored_folders_are_not_entered(tmp_path: Path, listed: list[str]) -> None:
    write(tmp_path, "data/deep/a", "b")
    (tmp_path / ".gitignore").write_text("data\n")
    assert shipped(tmp_path) == [".gitignore", "b"]
    assert listed == [str(tmp_path)]


@pytest.mark.parametrize("target", ["/etc/hosts", "../outside", "d/../../outside"])
def test_links_out_of_the_project_are_refused(tmp_path: Path, target: str) -> None:
    project = write(tmp_path / "p", "d/a")
    (project / "l").symlink_to(target)
    with pytest.raises(InputError, match="links:"):
        scan(project)


def test_names_that_cannot_travel_are_refused(tmp_path: Path) -> None:
    (tmp_path / "two\nlines").write_text("")
    with open(os.fsencode(tmp_path) + b"/latin\xe9", "w"):
        pass
    with pytest.raises(InputError, match="line break") as raised:
        scan(tmp_path)
    assert raised.value.message.count("rename it") == 2


def test_sockets_and_pipes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is at most 107 bytes
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind("sock")
        with pytest.raises(InputError, match=r"'pipe' .*; 'sock' "):
            scan(tmp_path)


def test_too_much_names_the_largest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, *(f"many/{n}" for n in range(12)), *(f"few/{n}" for n in range(3)), "one")
    with pytest.raises(InputError, match=r"limit of 10 files; the largest: many/ \(12 .*few/"):
        scan(tmp_path, limits=ProjectLimits(files=10))
    monkeypatch.setattr(project_walk, "LOOKED_AT", 4)
    with pytest.raises(InputError, match=r"at least \d+ files.*the largest so far: few/"):
        scan(tmp_path, limits=ProjectLimits(files=1))
    (tmp_path / "big").write_bytes(bytes(2_000_000))
    with pytest.raises(InputError, match=r"limit of 1 MB; .*big \(1 files, 2\.0 MB\)"):
        scan(tmp_path, limits=ProjectLimits(bytes=1_000_000))


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the folders that are listed from now on."""
    found: list[str] = []
    scandir = os.scandir

    def watched(path: Path) -> Iterator["os.DirEntry[str]"]:
        found.append(str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", watched)
    return found


@pytest.mark.parametrize("too_much", ["files", "bytes", "refused"])
def test_the_walk_ends_soon_after_it_is_too_much(
    too_much: str, tmp_path: Path, listed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_walk, "LOOKED_AT", 30)
    for number in range(100):
        folder = tmp_path / f"{number:02}"
        folder.mkdir()
        if too_much == "refused":
            for name in "abc":
                (folder / name).symlink_to("/etc/hosts")
        else:
            (folder / "file").write_bytes(bytes(1000 if too_much == "bytes" else 1))
    limits = ProjectLimits(bytes=5000) if too_much == "bytes" else ProjectLimits(files=10)
    with pytest.raises(InputError):
        scan(tmp_path, limits=limits)
    assert len(listed) <= 20  # of 101; 100,000 of a disk's root took a minute


@pytest.mark.parametrize("path", ["/", "/proc", "/proc/self", "/sys", "/dev", "//proc/../sys"])
def test_no_folder_of_the_system_is_walked(path: str, listed: list[str]) -> None:
    with pytest.raises(InputError, match="is a system folder"):
        scan(Path(path))
    assert not listed


def test_a_disk_in_memory_is_no_folder_of_the_system() -> None:
    assert not project_walk.is_system(Path("/dev/shm/project"))


def outside(tmp_path: Path) -> Path:
    write(tmp_path / "shared", "lib/helper.py", "lib/deep/other.py", "plain.py")
    (tmp_path / "shared/innocent").symlink_to("id_rsa")
    (tmp_path / "shared/id_rsa").write_text("a key")
    (tmp_path / "shared/token.py").write_text(f"token = 'ghp_{'a1B2c3D4' * 4}A1b2'\n")
    project = write(tmp_path / "p", "train.py")
    for name in ("lib", "plain.py", "innocent", "token.py"):
        (project / name).symlink_to(f"../shared/{name}")
    return project


def test_a_link_out_is_refused_with_its_target(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        scan(outside(tmp_path))
    assert f"'innocent' points outside the project, to '../shared/innocent' ({tmp_path}" in str(
        refused.value.message
    )
    assert "shared/id_rsa); use `links:`" in refused.value.message
    assert "`follow_links: [plain.py]`" in refused.value.message


def sent_of(manifest: Manifest, where: Callable[[str], Path]) -> bytes:
    return b"".join(b"".join(content(one, where(one.path))) for one in manifest.files)


def test_links_out_that_are_named_are_followed_but_not_to_secrets(tmp_path: Path) -> None:
    project, guard = outside(tmp_path), ScanGuard()
    follow = Follow(["*"])
    manifest = scan(project, guard=guard, follow=follow)
    assert [entry.path for entry in manifest.entries] == [
        "lib/deep/other.py", "lib/helper.py", "plain.py", "train.py"
    ]  # fmt: skip
    assert not any(entry.target for entry in manifest.entries)
    assert {item.path: item.by for item in guard.kept_back} == {
        "innocent": "name", "token.py": "contents"
    }  # fmt: skip
    where = source_of(project, follow.taken)
    assert where("lib/deep/other.py") == tmp_path / "shared/lib/deep/other.py"
    assert b"a key" not in sent_of(manifest, where)


def test_links_inside_stay_links_where_the_project_is_behind_a_link(tmp_path: Path) -> None:
    project = write(tmp_path / "p", "sub/a")
    (project / "b").symlink_to("sub/a")
    (tmp_path / "behind").symlink_to("p")
    manifest = scan(tmp_path / "behind")
    assert {entry.path: entry.target for entry in manifest.entries} == {"b": "sub/a", "sub/a": None}


def test_a_followed_circle_ends(tmp_path: Path) -> None:
    project = write(tmp_path / "p", "train.py")
    (project / "up").symlink_to("..")
    with pytest.raises(
        InputError, match=r"'up/p/up' is a link to .*, which contains the link itself"
    ):
        scan(project, follow=Follow(["up"]))


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_that_takes_a_place_after_the_scan_sends_nothing(tmp_path: Path, what: str) -> None:
    project = write(tmp_path / "p", "sub/a")
    write(tmp_path / "secret", "a")
    (tmp_path / "secret/a").write_text("SECRET")
    manifest = scan(project)
    place = project / "sub/a" if what == "file" else project / "sub"
    place.rename(project / "kept")
    place.symlink_to(tmp_path / "secret" / ("a" if what == "file" else ""))
    with pytest.raises(InputError, match="changed while it was read"):
        sent_of(manifest, source_of(project))
