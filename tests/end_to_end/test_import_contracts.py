"""The import contracts hold, and they would notice."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ROOT

LINT = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]


def lint(folder: Path) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "PYTHONPATH": str(folder / "src")}
    return subprocess.run(LINT, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def test_the_contracts_hold() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("app/explain/words_of_today.py", "import lumitui.app.scale.rescale"),
        ("app/newcomer/__init__.py", "from pathlib import Path"),
        ("remote/transport/shell.py", "import lumitui.remote.ssh.link"),
        ("remote/newcomer/__init__.py", "from pathlib import Path"),
        ("remote/errors.py", "import lumitui.app.settings"),
        ("app/scale/rescale.py", "import textual"),
        ("app/runs.py", "import click"),
        ("app/send/submit.py", "import jinja2"),
        ("app/runs.py", "import sqlite3"),
        ("remote/snapshots/upload.py", "import paramiko"),
        ("app/job/strategies.py", "import lumitui.app.job.spec"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, module: str, line: str) -> None:
    for name in ("app", "remote", "templates", "trainers", "src"):
        ignore = shutil.ignore_patterns("__pycache__", "*.gz", "*.egg-info")
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    path = tmp_path / module
    path.parent.mkdir(exist_ok=True)
    text = path.read_text() if path.exists() else ""
    path.write_text(text + f"\n{line}\n")
    result = lint(tmp_path)
    assert result.returncode != 0
    assert "BROKEN" in result.stdout


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import lumitui.app.runs", {"textual", "rich", "torch"}),
        ("import lumitui.app.compose.launch", {"textual", "paramiko", "sqlite3"}),
        ("import lumitui.remote.scheduler.slurm", {"textual", "paramiko", "pydantic"}),
    ],
)
def test_what_a_module_loads_at_run_time(statement: str, absent: set[str]) -> None:
    # The static graph cannot tell a late import from one at the top.
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    argv = [sys.executable, "-c", code]
    loaded = subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout
    assert not absent & set(loaded.split())
