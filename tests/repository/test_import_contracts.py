"""The import contracts of pyproject.toml hold, and each of them would find a violation."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.places import ROOT

LINT = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
APP = "app: interfaces, facade, decisions, knowledge"
REMOTE = "remote: sites, schedulers, connections, words"
INTERFACES = "Only the interfaces know Textual, Rich and Click"
HALVES = "app stands on remote"
ALONE = "knowledge stands on remote.site alone"
DOOR = "The interfaces come through the door"
SCREENS = "Screens and agents know no job file but through the door"
PROTOCOL = "Only mcp knows the Model Context Protocol"
CIRCLES = "No circles, in no folder"
# A new file, what it imports, the contract that this breaks, and what is said of it there.
PLANTED = [
    ("app/explain/planted.py", "lumitui.app.scale", APP, "planted -> lumitui.app.scale"),
    ("app/newcomer.py", "os", APP, "not listed as layers:\n\n- lumitui.app.newcomer"),
    ("remote/transport/planted.py", "lumitui.remote.ssh", REMOTE, "planted -> lumitui.remote.ssh"),
    ("remote/newcomer.py", "os", REMOTE, "not listed as layers:\n\n- lumitui.remote.newcomer"),
    ("remote/site/planted.py", "lumitui.app.job", HALVES, "site.planted -> lumitui.app.job"),
    ("app/scale/planted.py", "textual", INTERFACES, "app.scale.planted -> textual"),
    ("app/follow/planted.py", "rich", INTERFACES, "follow.planted -> rich"),
    ("app/follow/results/planted.py", "click", INTERFACES, "results.planted -> click"),
    ("app/explain/pages.py", "jinja2", "Only launch knows Jinja", "explain.pages -> jinja2"),
    ("app/knowledge/planted.py", "lumitui.app.job", ALONE, "planted -> lumitui.app.job"),
    ("app/cli/planted.py", "lumitui.app.history.run", DOOR, "cli.planted -> lumitui.app.history"),
    ("app/cli/verbs/planted.py", "lumitui.remote.ssh", DOOR, "verbs.planted -> lumitui.remote.ssh"),
    ("app/tui/screens/planted.py", "lumitui.remote.site", DOOR, "planted -> lumitui.remote.site"),
    ("app/tui/planted.py", "lumitui.app.job.spec", SCREENS, "planted -> lumitui.app.job.spec"),
    ("app/mcp/planted.py", "lumitui.app.job.spec", SCREENS, "planted -> lumitui.app.job.spec"),
    ("app/mcp/opened.py", "lumitui.app.history.run", DOOR, "opened -> lumitui.app.history"),
    ("app/cli/served.py", "mcp", PROTOCOL, "cli.served -> mcp"),
    ("app/job/bash.py", "tree_sitter", "Only knowledge knows tree-sitter", "bash -> tree_sitter"),
    ("app/launch/planted.py", "sqlite3", "Only history knows SQLite", "planted -> sqlite3"),
    ("remote/transfer/planted.py", "paramiko", "Only ssh knows paramiko", "planted -> paramiko"),
    ("app/job/planted.py", "lumitui.app.job.second", CIRCLES, "No cycles are allowed in"),
    ("app/job/second.py", "lumitui.app.job.planted", CIRCLES, "allowed in lumitui.app.job.\n"),
]  # fmt: skip


def lint(folder: Path) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "PYTHONPATH": str(folder / "src")}
    return subprocess.run(LINT, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def contracts() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return [contract["name"] for contract in settings["tool"]["importlinter"]["contracts"]]


def test_the_contracts_hold() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of a copy that has all violations, from the first broken contract on."""
    copy = tmp_path_factory.mktemp("planted")
    for name in ("app", "remote", "templates", "trainers", "src"):
        ignore = shutil.ignore_patterns("__pycache__", "*.gz", "*.egg-info")
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", copy)
    for file, module, _, _ in PLANTED:
        assert not (copy / file).exists()
        (copy / file).write_text(f"import {module}\n")
    result = lint(copy)
    assert result.returncode == 1, result.stdout + result.stderr
    return result.stdout.partition("\nBroken contracts\n")[2]


@pytest.mark.parametrize(
    ("contract", "finding"), [case[2:] for case in PLANTED], ids=[case[0] for case in PLANTED]
)
def test_a_planted_violation_breaks_its_contract(report: str, contract: str, finding: str) -> None:
    heading = f"\n{contract}\n{'-' * len(contract)}\n"
    assert heading in report
    section = report.partition(heading)[2].partition("\n---")[0]
    assert finding in section


def test_every_contract_has_a_planted_violation() -> None:
    assert sorted(contracts()) == sorted({contract for _, _, contract, _ in PLANTED})


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("from lumitui.app.runs import Runs", {"textual", "rich", "torch"}),
        ("import lumitui.app.launch.compose", {"textual", "paramiko", "sqlite3"}),
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


def test_the_page_about_the_architecture_has_the_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = {one["name"]: one["layers"] for one in contracts["contracts"] if "layers" in one}
    page = (ROOT / "docs" / "architecture.md").read_text().partition("```\n")[2].partition("```")[0]
    shown = [line[9:] for line in page.splitlines()]
    assert shown == [*layers[APP], *layers[REMOTE]]
