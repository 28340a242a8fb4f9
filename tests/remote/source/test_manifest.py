"""What of a project is shipped, what is refused, and how it is named."""

import hashlib
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lumitui.remote.errors import InputError
from lumitui.remote.source import scan as module
from lumitui.remote.source.manifest import Manifest, differing
from lumitui.remote.source.scan import scan, source_of
from lumitui.remote.source.walk import Limits


def write(root: Path, *paths: str, **named: str) -> Path:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)
    for path, text in named.items():
        (root / path).write_text(text)
    return root


def shipped(root: Path) -> list[str]:
    return [entry.path for entry in scan(root).entries]


def test_entries_are_sorted_and_say_what_a_file_is(tmp_path: Path) -> None:
    write(tmp_path, "b/run.sh", "a b.txt", "ünï.txt")
    (tmp_path / "b" / "run.sh").chmod(0o755)
    (tmp_path / "b" / "link").symlink_to("../a b.txt")
    found = scan(tmp_path)
    assert [entry.path for entry in found.entries] == ["a b.txt", "b/link", "b/run.sh", "ünï.txt"]
    text, link, program, _ = found.entries
    assert (text.size, text.executable, text.target) == (7, False, None)
    assert text.sha256 == hashlib.sha256(b"a b.txt").hexdigest()
    assert (link.target, link.sha256) == ("../a b.txt", "")
    assert program.executable
    assert source_of(tmp_path)("b/run.sh").read_text() == "b/run.sh"


def test_the_name_changes_with_content_mode_path_and_link_only(tmp_path: Path) -> None:
    write(tmp_path, "a", "b")
    first = scan(tmp_path)
    os.utime(tmp_path / "a", (1, 1))
    assert scan(tmp_path).id == first.id and len(first.id) == 24
    seen = {first.id}
    (tmp_path / "a").chmod(0o755)
    seen.add(scan(tmp_path).id)
    (tmp_path / "b").write_text("c")
    seen.add(scan(tmp_path).id)
    (tmp_path / "a").rename(tmp_path / "c")
    seen.add(scan(tmp_path).id)
    (tmp_path / "l").symlink_to("b")
    seen.add(scan(tmp_path).id)
    assert len(seen) == 5


def test_a_manifest_is_read_back_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, "tab\there", "back\\slash", "quote'\"")
    (tmp_path / "l").symlink_to("tab\there")
    found = scan(tmp_path)
    assert Manifest.parse(found.text) == found
    with pytest.raises(InputError):
        Manifest.parse("{}")


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs GNU coreutils")
def test_sha256sum_itself_takes_the_checksums(tmp_path: Path) -> None:
    write(tmp_path / "p", "plain", "a  b", "back\\slash", "-dash", "d/e")
    text = scan(tmp_path / "p").checksum_text()
    (tmp_path / "sums").write_text(text)
    command = ["sha256sum", "-c", "--strict", "--quiet", "../sums"]
    assert subprocess.run(command, cwd=tmp_path / "p").returncode == 0
    (tmp_path / "p" / "back\\slash").write_text("changed")
    assert subprocess.run(command, cwd=tmp_path / "p", capture_output=True).returncode == 1


def test_some_folders_are_never_shipped(tmp_path: Path) -> None:
    write(tmp_path, ".git/config", "__pycache__/a.pyc", "x/node_modules/b", "my env/pyvenv.cfg")
    write(tmp_path, "my env/bin/python", "x/kept")
    assert shipped(tmp_path) == ["x/kept"]


def test_a_worktree_s_git_file_is_not_shipped(tmp_path: Path) -> None:
    assert shipped(write(tmp_path, ".git", "a")) == ["a"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git decides what is right")
def test_gitignore_means_what_it_means_to_git(tmp_path: Path) -> None:
    write(
        tmp_path,
        "a.log", "keep.log", "d/a.log", "d/deep/x.log", "d/deep/own.log", "build/x", "src/build/y",
        "data/big", "data/small", "root_only", "d/root_only", "star/a/b/c", "star/b/c", "é.tmp",
        "sp ace ", "d/data2/keep/x", "lib/in/a", "lib/out/a",
    )  # fmt: skip
    (tmp_path / ".gitignore").write_text(
        "*.log\n!keep.log\nbuild/\ndata/*\n!data/small\n/root_only\nstar/**/c\n*.tmp\n# no\n\n"
        "sp\\ ace\\ \nlib/*\n!lib/in\n"
    )
    (tmp_path / "d" / ".gitignore").write_text("!deep/x.log\n/data2\n")
    (tmp_path / "d" / "deep" / ".gitignore").write_text("own.log\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    assert shipped(tmp_path) == sorted(filter(None, listed))


def test_lumituiignore_decides_over_gitignore(tmp_path: Path) -> None:
    write(tmp_path, "data/a.bin", "data/sub/b.bin", "out/c", "notes.md", "d/x.md")
    (tmp_path / ".gitignore").write_text("data/\nout/\n")
    (tmp_path / ".lumituiignore").write_text("*.md\n!data/sub/b.bin\n!out/\n")
    (tmp_path / "d" / ".lumituiignore").write_text("!x.md\n")
    (tmp_path / "data" / ".gitignore").write_text("!a.bin\n")  # git does not read it there
    expected = [".gitignore", ".lumituiignore", "d/.lumituiignore", "d/x.md"]
    assert shipped(tmp_path) == sorted([*expected, "data/sub/b.bin", "out/c"])


def test_ignored_folders_are_not_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "data/deep/a", "b")
    (tmp_path / ".gitignore").write_text("data\n")
    looked: list[str] = []
    scandir = os.scandir

    def watched(path: Path) -> Iterator["os.DirEntry[str]"]:
        looked.append(path.name)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", watched)
    assert shipped(tmp_path) == [".gitignore", "b"]
    assert looked == [tmp_path.name]


@pytest.mark.parametrize("name", [".env", "conf/.env", "key.pem", "id_ed25519"])
def test_secrets_are_refused_unless_allowed(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, "a")
    (tmp_path / name).write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    with pytest.raises(InputError, match=name.replace(".", r"\.")) as raised:
        scan(tmp_path)
    assert "allow:" in raised.value.message
    assert len(scan(tmp_path, allow=[name]).entries) == 2


def test_a_module_named_like_a_key_is_shipped(tmp_path: Path) -> None:
    assert shipped(write(tmp_path, "id_mapping.py")) == ["id_mapping.py"]


def test_a_secret_that_is_excluded_is_no_matter(tmp_path: Path) -> None:
    write(tmp_path, ".env", "a")
    (tmp_path / ".lumituiignore").write_text(".env\n")
    assert shipped(tmp_path) == [".lumituiignore", "a"]


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
    with pytest.raises(InputError, match="line end") as raised:
        scan(tmp_path)
    assert raised.value.message.count("rename it") == 2


def test_sockets_and_pipes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is at most 107 bytes
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind("sock")
        with pytest.raises(InputError, match=r"'pipe' .*; 'sock' "):
            scan(tmp_path)


def test_too_many_files_name_the_largest(tmp_path: Path) -> None:
    write(tmp_path, *(f"many/{n}" for n in range(12)), *(f"few/{n}" for n in range(3)), "one")
    with pytest.raises(InputError, match=r"limit of 10 files; the largest: many/ \(12 .*few/"):
        scan(tmp_path, limits=Limits(files=10))
    with pytest.raises(InputError, match=r"more than \d+ files"):
        scan(tmp_path, limits=Limits(files=1))


def test_too_many_bytes_name_the_largest(tmp_path: Path) -> None:
    write(tmp_path, *(f"many/{n}" for n in range(12)))
    (tmp_path / "big").write_bytes(bytes(2_000_000))
    with pytest.raises(InputError, match=r"limit of 1 MB; the largest: big \(1 files, 2\.0 MB\)"):
        scan(tmp_path, limits=Limits(bytes=1_000_000))


def test_files_from_elsewhere_get_their_place(tmp_path: Path) -> None:
    project = write(tmp_path / "p", "a")
    extra = {".lumitui/trainers/ddp.py": write(tmp_path / "e", "ddp.py") / "ddp.py"}
    found = scan(project, extra=extra)
    assert [entry.path for entry in found.entries] == [".lumitui/trainers/ddp.py", "a"]
    assert source_of(project, extra)(".lumitui/trainers/ddp.py").read_text() == "ddp.py"
    with pytest.raises(InputError, match="rename"):
        scan(project, extra={"a": tmp_path / "e" / "ddp.py"})
    with pytest.raises(InputError, match="cannot be read"):
        scan(project, extra={"b": tmp_path / "none"})


def test_a_file_that_changes_while_it_is_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a")

    def check(path: str, where: Callable[[str], Path], *_: object) -> None:
        where(path).write_text("longer than before")

    monkeypatch.setattr(module, "_check_secret", check)
    with pytest.raises(InputError, match="'a' changed while it was read"):
        scan(tmp_path)


def test_a_missing_project_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        scan(tmp_path / "none")


def test_what_differs_between_two_states(tmp_path: Path) -> None:
    write(tmp_path, "same", "edited", "gone", "mode")
    old = scan(tmp_path)
    (tmp_path / "edited").write_text("x")
    (tmp_path / "gone").unlink()
    (tmp_path / "mode").chmod(0o755)
    write(tmp_path, "new")
    sent, gone = differing(scan(tmp_path), old)
    assert [entry.path for entry in sent] == ["edited", "mode", "new"]
    assert gone == ["edited", "gone", "mode"]
