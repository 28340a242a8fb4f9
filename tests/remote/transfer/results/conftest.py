"""A run with three files."""

from pathlib import Path

import pytest


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / name).write_text(name * 1000)
    return folder
