"""A history of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.app.history.history import History


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "history.db"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    made = History(path)
    yield made
    made.close()
