"""venv.sh on this machine: with the real venv and pip, and a wheel that the test made."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lumitui.app.job.spec import parse_job
from lumitui.app.launch.compose import compose
from lumitui.app.launch.send.code.requirement_files import with_requirements
from lumitui.remote.site.run_folder import VENV_SCRIPT
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.files.wheels import make_wheel
from tests.support.jobs.small_jobs import wait_until

JOB = "name: a\nsite: laptop\npartition: local\ntime: '1:00:00'\nscript: a.py\n"
Make = Callable[..., Path]


@pytest.fixture
def run(tmp_path: Path) -> Make:
    """Return what makes the folder of another run that needs an environment."""
    project = tmp_path / "project"
    make_wheel(project / "wheels", "tiny", "1.2")

    def made(
        name: str, packages: str = "tiny", python: str = sys.executable, shared: str = ""
    ) -> Path:
        folder = tmp_path / "the site's" / "p" / "runs" / name
        (folder / "code").mkdir(parents=True)
        os.symlink(project / "wheels", folder / "code" / "wheels")
        laptop = Sites((BUILT_IN,)).load("laptop")
        recipe = laptop.venv.model_copy(update={"folder": shared})
        site = laptop.model_copy(update={"python": python, "venv": recipe})
        spec = parse_job(f"{JOB}venv: {{packages: [{packages}], wheels: wheels}}", "job")
        launch = compose(with_requirements(spec, project), site)
        (folder / VENV_SCRIPT).write_text(launch.texts[VENV_SCRIPT])
        return folder

    return made


def start(folder: Path, **environ: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        ["bash", folder / VENV_SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOME": str(folder), **environ},
        start_new_session=True,
    )


def build(folder: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    process = start(folder, **environ)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def venvs(folder: Path) -> list[str]:
    """What is among the environments, the lock included."""
    return sorted(path.name for path in (folder / "../../../venvs").iterdir())


def test_two_people_at_once_share_one_build(run: Make, tmp_path: Path) -> None:
    folders = [run(name, shared=f"{tmp_path}/{{account}}/the group's") for name in "ab"]
    processes = [start(folder) for folder in folders]
    said = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    assert said[0][0] == said[1][0]
    assert sum("Successfully installed" in err for _, err in said) == 1
    # Their group may read it and add to it, nobody else may.
    place = tmp_path / "none" / "the group's"
    link, data = sorted(place.iterdir())
    assert (link.resolve(), data.name.partition(".")[0]) == (data, link.name)
    assert place.stat().st_mode & 0o7777 == 0o2770
    assert data.stat().st_mode & 0o7777 == 0o2770
    assert all(path.lstat().st_mode & 0o040 for path in data.rglob("*"))
    # Its own program, the version, and what the interpreter that made it sees.
    tree = Path(said[0][0].strip())
    assert tree == data / "tree"
    shown = subprocess.run([tree / "bin" / "tiny"], capture_output=True, text=True, check=True)
    assert shown.stdout == "1.2\n"
    see = "import tiny, importlib.util as i; assert i.find_spec('torch') and i.find_spec('pip')"
    subprocess.run([tree / "bin" / "python", "-c", see], check=True)
    assert '"tiny": "1.2"' in (data / "facts.json").read_text()


def test_a_failure_says_what_pip_said_and_leaves_nothing(run: Make) -> None:
    folder = run("first", packages="tiny==3")
    # What another machine's build left behind has said nothing for ten minutes.
    (name,) = re.findall(r"^name=(.+)$", (folder / VENV_SCRIPT).read_text(), re.MULTILINE)
    place = folder / "../../../venvs"
    (place / f"{name}.other-1-2").mkdir(parents=True)
    lock = place / f".lock-{name}"
    lock.symlink_to("other-1-2")
    old = time.time() - 600
    os.utime(lock, (old, old), follow_symlinks=False)
    done = build(folder)
    assert done.returncode == 1
    assert "lumitui: the build by other ended early; starting again" in done.stderr
    assert done.stdout == ""
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        "lumitui: the environment could not be built: "
        "ERROR: No matching distribution found for tiny==3"
    )
    assert venvs(folder) == []


def test_a_folder_that_cannot_be_written_is_said(run: Make) -> None:
    folder = run("first")
    (folder / "../../../venvs").write_text("")
    done = build(folder)
    assert done.returncode == 1
    assert "venvs" in done.stderr


def test_a_signal_ends_the_whole_build_at_once(run: Make, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid\nexec sleep 600\n")
    slow.chmod(0o755)
    folder = run("first", python=str(slow))
    process = start(folder)
    wait_until(lambda: (tmp_path / "pid").exists())
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 143
    child = int((tmp_path / "pid").read_text())
    wait_until(lambda: not Path(f"/proc/{child}").exists())
    assert venvs(folder) == []


KILLER = "set -T; trap '((++n == {at})) && kill -9 $$' DEBUG\n"
"""Kills the shell before one of its commands, and leaves what it started alone."""


@pytest.mark.slow
@pytest.mark.parametrize("at", range(12, 60, 3))
def test_a_build_that_was_killed_is_made_again(run: Make, tmp_path: Path, at: int) -> None:
    (tmp_path / "killer").write_text(KILLER.format(at=at))
    folder = run("first")
    build(folder, BASH_ENV=str(tmp_path / "killer"))
    again = build(folder)
    assert again.returncode == 0, again.stderr
    left = [name for name in venvs(folder) if not name.startswith(".lock-")]
    assert len(left) == 2
    subprocess.run([f"{again.stdout.strip()}/bin/tiny"], check=True)
