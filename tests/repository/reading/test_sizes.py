"""A folder can be read at a glance, and so can a file."""

from collections.abc import Iterable
from pathlib import Path

from tests.support.places import ROOT

MOST_ENTRIES = 12
MOST_LINES = 400  # app/lint/program/python.py is one walk of a tree
WIDE = {"app": 17, "tests/app": 17}
"""Folders that may have more entries; docs/decisions.md says why."""


def folders(root: Path, names: Iterable[str]) -> dict[str, int]:
    """Return the folders that hold Python, each with its number of entries."""
    found: dict[str, set[str]] = {}
    for path in (path for name in names for path in (root / name).rglob("*.py")):
        for place in (path, *path.relative_to(root).parents):
            inner = root / place
            if inner != root and inner.name != "__init__.py":
                found.setdefault(inner.parent.relative_to(root).as_posix(), set()).add(inner.name)
    return {name: len(entries) for name, entries in found.items() if name != "."}


def test_no_folder_has_more_entries_than_a_person_reads_at_once() -> None:
    found = folders(ROOT, ("app", "remote", "tests", "trainers"))
    assert found["remote"] > 8
    assert {name: n for name, n in found.items() if n > WIDE.get(name, MOST_ENTRIES)} == {}


def test_no_file_is_longer_than_a_person_reads_at_once() -> None:
    paths = [
        path
        for name in ("app", "remote", "tests", "trainers")
        for path in (ROOT / name).rglob("*.py")
    ]
    lines = {path.relative_to(ROOT).as_posix(): path.read_text().count("\n") for path in paths}
    assert len(lines) > 1000
    assert {name: n for name, n in lines.items() if n > MOST_LINES} == {}


def test_a_folder_counts_its_folders_and_its_modules(tmp_path: Path) -> None:
    for name in ("app/__init__.py", "app/a.py", "app/b/__init__.py", "app/b/c/d.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert folders(tmp_path, ["app"]) == {"app": 2, "app/b": 1, "app/b/c": 1}
