"""Errors of the system about a path, as errors for the user."""

import os
import subprocess
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


def test_a_path_on_a_read_only_disk_is_named(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs root on Linux to mount a file system")
    try:
        with pytest.raises(OSError, match="Read-only") as raised:
            (tmp_path / "file").touch()
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)
    error = unusable_path(raised.value)
    assert error and str(tmp_path / "file") in error.message and "that you can write" in error.hint
