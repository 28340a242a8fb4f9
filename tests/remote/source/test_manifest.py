"""The list of files that a send has, and the scan that makes it."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lumitui.remote.site.errors import InputError
from lumitui.remote.source import scan as module
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.source.scan import scan, source_of
from tests.support.files.project_files import shipped, write


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


def test_a_secret_that_is_excluded_is_no_matter(tmp_path: Path) -> None:
    write(tmp_path, ".env", "a")
    (tmp_path / ".lumituiignore").write_text(".env\n")
    assert shipped(tmp_path) == [".lumituiignore", "a"]


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

    opened = module.opened

    def writing(source: Path) -> int:
        source.write_text("longer than before")
        return opened(source)

    monkeypatch.setattr(module, "opened", writing)
    with pytest.raises(InputError, match="'a' changed while it was read"):
        scan(tmp_path)


def test_a_missing_project_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        scan(tmp_path / "none")
