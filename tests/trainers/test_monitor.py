"""The folder `monitor`, copied alone, watches the loop that docs/trainers.md shows."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.places import ROOT, TRAINERS

IMPORTED = "import sys, atexit\natexit.register(lambda: print(*sys.modules))\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Copy the folder, and the example beside it."""
    caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(TRAINERS / "monitor", tmp_path / "project" / "monitor", ignore=caches)
    page = (ROOT / "docs" / "trainers.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "project" / "loop.py"
    path.write_text(IMPORTED + example)
    return path


@contextmanager
def started(script: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    environ = {"PATH": os.environ["PATH"], "RUN_DIR": str(script.parent), **variables}
    command = [sys.executable, "-S", str(script)]  # without any package
    with subprocess.Popen(command, env=environ, stdout=-1, stderr=-1, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def steps(script: Path) -> list[int]:
    path = script.parent / "metrics.jsonl"
    return (
        [json.loads(line)["step"] for line in path.read_text().splitlines()]
        if path.exists()
        else []
    )


def wait_for(found: Path, process: subprocess.Popen[str]) -> None:
    ends = time.monotonic() + 60
    while not found.exists():
        assert process.poll() is None and time.monotonic() < ends, process.communicate()
        time.sleep(0.02)


@pytest.mark.parametrize("how", ["signal", "file"])
def test_a_loop_of_ones_own_stops_and_goes_on(script: Path, how: str) -> None:
    with started(script) as process:
        wait_for(script.parent / "metrics.jsonl", process)
        if how == "signal":
            process.send_signal(signal.SIGUSR1)
        else:
            (script.parent / "stop").touch()
        said = process.communicate(timeout=60)
        assert process.returncode == 85, said
    before = steps(script)
    assert before and before[-1] < 200 and not (script.parent / "stop").exists()
    with started(script) as process:
        said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    assert steps(script) == list(range(1, 201))
    assert not {"torch", "engine", "saving", "data"} & set(said[0].split())


def test_a_loop_of_ones_own_that_hangs_is_named(script: Path) -> None:
    text = script.read_text()
    held = 'while step == 50 and not (run_dir / "free").exists():\n        time.sleep(0.02)'
    script.write_text(text.replace("loss = 1 / step", f"{held}\n    loss = 1 / step"))
    with started(script, TRAINER_STILL_SECONDS="1") as process:
        wait_for(script.parent / "hung.json", process)
        found = json.loads((script.parent / "hung.json").read_text())
        assert found["sentence"].startswith("Rank 0 on ") and found["step"] == 50
        (script.parent / "free").touch()
        said = process.communicate(timeout=60)
        assert process.returncode == 0, said
    assert "moves again." in said[1]
    assert not (script.parent / "hung.json").exists()
