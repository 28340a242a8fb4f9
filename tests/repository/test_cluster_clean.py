"""`tests/cluster/down --clean` leaves what another cluster of the machine uses."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.places import CLUSTER


def made(folder: Path, *names: str) -> Path:
    """Return the folder of a stopped cluster that made these things for all clusters."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    folder.mkdir(exist_ok=True)
    (folder / "cluster.env").write_text(f"ROOT={folder}\nBASE=1\nPROGRAMS=/usr/bin\n")
    return folder


def clean(root: Path, python: Path, roster: Path) -> None:
    names = {
        "ROOT": str(root),
        "PYTHON": str(python),
        "ROSTER": str(roster),
        "LOGIN": "nobody-here",
    }
    done = subprocess.run(
        [CLUSTER / "down", "--clean"],
        env={**os.environ, **names}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="the mini cluster needs root")
def test_the_last_cluster_of_a_machine_removes_what_they_share(tmp_path: Path) -> None:
    python, tree, link = tmp_path / "python", tmp_path / "tree", tmp_path / "appl"
    python.mkdir()
    tree.mkdir()
    first = made(tmp_path / "first", "made/python", "run/munged.pid")
    second = made(tmp_path / "second")
    (first / "made" / "trees").write_text(f"{tree}\n")
    (first / "made" / "links").write_text(f"{link}\n")
    for root in (first, second):
        (root / str(link).lstrip("/")).mkdir(parents=True)
    link.symlink_to(first / str(link).lstrip("/"))
    roster = tmp_path / "roots"
    roster.write_text(f"{first}\n{second}\n")
    clean(first, python, roster)
    assert not first.exists()
    assert python.exists() and tree.exists() and link.exists(), "the second one uses them"
    assert roster.read_text() == f"{second}\n"
    clean(second, python, roster)
    assert not any(path.exists() for path in (second, python, tree))
    assert not link.is_symlink()
