"""Secrets, files from elsewhere, and files that change while they are read."""

from pathlib import Path

import pytest

from lumitui.remote.site.errors import InputError
from lumitui.remote.source import scan as module
from lumitui.remote.source.scan import scan, source_of
from tests.support.files.project_files import shipped, write


def test_a_module_named_like_a_key_is_shipped(tmp_path: Path) -> None:
    assert shipped(write(tmp_path, "id_mapping.py")) == ["id_mapping.py"]


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
