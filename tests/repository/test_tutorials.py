"""The commands of the documents that need no cluster are run, in the order of their page.

A block marked `sh` is run; one marked with a title is the file that it names. What needs a cluster
is an indented block, or marked `bash`.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.remote.site.partition import SumBilling
from lumitui.remote.site.sites import Sites
from tests.support.places import ROOT

DOCS = ROOT / "docs"
_BLOCK = re.compile(r'(?ms)^```(\w+)(?: title="([\w.]+)")?\n(.*?)^```$')
PAGES = [path for path in sorted(DOCS.glob("*.md")) if "\n```sh\n" in path.read_text()]
AFTER = {"scale_up": "own_script"}
"""The page whose files another one continues with."""


def blocks(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield the language, the title and the text of each block."""
    for found in _BLOCK.finditer((DOCS / f"{page}.md").read_text()):
        yield found[1], found[2] or "", found[3]


def run(words: str, folder: Path, home: Path) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home), "LUMITUI_CONFIG_DIR": str(home / "conf"),
        "LUMITUI_DATA_DIR": str(home / "data"), "LUMITUI_PYTHON": sys.executable,
    }  # fmt: skip
    argv = ["bash", "-euc", words]
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=240)


@pytest.mark.parametrize("page", [path.stem for path in PAGES])
def test_the_commands_of_a_page_run(page: str, tmp_path: Path) -> None:
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    if page in AFTER:
        assert run("lumitui new --script train.py --run-file", folder, home).returncode == 0
        for _, title, text in blocks(AFTER[page]):
            if title:
                (folder / title).write_text(text)
    ran = 0
    for language, title, text in blocks(page):
        if title:
            (folder / title).write_text(text)
        elif language == "sh":
            done = run(text, folder, home)
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
            assert "internal error" not in done.stderr
            ran += 1
    assert ran


def test_the_tutorial_shows_what_happens(tmp_path: Path) -> None:
    """A failure of the tutorial's last step is named, in the words that the page gives."""
    files = {title: text for _, title, text in blocks("own_script") if title}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "lumitui_run.py").write_text(
        (ROOT / "templates" / "examples" / "lumitui_run.py").read_text()
    )
    home = tmp_path.parent / f"{tmp_path.name}-home"  # beside the project, or it would be sent
    home.mkdir()
    failing = files["job.yaml"].replace("--steps, 60", "--lr, fast, --steps, 60")
    (tmp_path / "job.yaml").write_text(failing)
    sent = run("lumitui submit job.yaml --yes --wait --force", tmp_path, home)
    assert sent.returncode == 5, sent.stderr
    why = run("lumitui why last", tmp_path, home).stdout
    assert "invalid float value: 'fast'" in why


def test_the_page_of_import_shows_what_import_prints(tmp_path: Path) -> None:
    (script,) = (text for _, title, text in blocks("import") if title)
    shown = next(text for language, _, text in blocks("import") if language == "text")
    (tmp_path / "train.sh").write_text(script)
    home = tmp_path / "home"
    home.mkdir()
    done = run("COLUMNS=100 lumitui import train.sh 2>&1", tmp_path, home)
    assert done.stdout == shown


def test_the_profile_that_the_page_shows_is_one(tmp_path: Path) -> None:
    ((name, text),) = ((title, text) for _, title, text in blocks("profiles") if title)
    (tmp_path / name).write_text(text)
    site = Sites([tmp_path]).load("ostrich")
    assert site.partitions["gpu"].billing == SumBilling(per_gpu_hour=1)


def test_the_rule_that_the_page_for_centres_shows_finds_its_script(tmp_path: Path) -> None:
    ((name, profile),) = ((title, text) for _, title, text in blocks("profiles") if title)
    (rules,) = (text for language, _, text in blocks("centres") if language == "yaml")
    (tmp_path / name).write_text(f"{profile}{rules}")
    found = {}
    for account in ("test", "proj123"):
        (tmp_path / "job.sh").write_text(f"#!/bin/bash\n#SBATCH -A {account} -p gpu\nhostname\n")
        found[account] = run(
            f"lumitui lint --site {name} job.sh || true", tmp_path, tmp_path
        ).stdout
    assert "error ostrich-account" in found["test"]
    assert "ostrich-account" not in found["proj123"]


def test_the_commands_of_the_uninstall_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(("XDG_", "LUMITUI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    lumitui = Path(sys.executable).with_name("lumitui")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").touch()
    sent = (
        f"{lumitui} new --site laptop --script train.py && {lumitui} submit job.yaml --yes --wait"
    )
    subprocess.run(["sh", "-c", sent], cwd=tmp_path / "project", check=True, timeout=120)
    assert (tmp_path / ".local/state/lumitui/jobs").is_dir()
    (commands,) = re.findall(r"(?m)^    (rm -rf .+)$", (DOCS / "files.md").read_text())
    subprocess.run(["sh", "-c", commands], check=True, timeout=60)
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.parent.name for path in left} == {"project"}
