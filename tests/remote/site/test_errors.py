"""Errors of the system about a path, as errors for the user."""

import os
from pathlib import Path

import pytest

from lumitui.remote.site.errors import unusable_path


def test_a_path_is_named_and_an_open_file_is_lumituis_own_fault(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(OSError, match="Not a directory") as path:
        os.listdir(file)
    assert str(file) in str(unusable_path(path.value))
    with file.open() as opened, pytest.raises(OSError, match="Not a directory") as number:
        os.listdir(opened.fileno())
    assert unusable_path(number.value) is None
