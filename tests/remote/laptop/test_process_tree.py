"""The process table, with ps(1) and without, and who descends from whom."""

import os
import sys

import pytest

from lumitui.remote.laptop import process_tree


def test_the_process_table_needs_no_ps(monkeypatch: pytest.MonkeyPatch) -> None:
    with_ps = process_tree.processes()
    assert with_ps[os.getpid()] == os.getppid()
    if sys.platform == "linux":
        monkeypatch.setenv("PATH", "/nonexistent")
        without = process_tree.processes()
        assert without[os.getpid()] == os.getppid()
        assert len(set(with_ps) ^ set(without)) < len(with_ps) / 2


def test_descendants() -> None:
    parents = {2: 1, 3: 2, 4: 3, 5: 1, 6: 5}
    assert process_tree.below({2, 6}, parents) == {3, 4}
