"""Fetched results lie in the project, and the next run is sent without them."""

from pathlib import Path

import pytest

from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs
from tests.support.program.command_line import Here
from tests.support.program.home import Home

JOB = """\
name: saves
site: laptop
partition: local
gpus_per_node: 1
time: "00:05:00"
script: train.py
proof: "off"
"""
SCRIPT = """\
import os
os.mkdir(os.environ["RUN_DIR"] + "/checkpoints")
with open(os.environ["RUN_DIR"] + "/checkpoints/last.pt", "wb") as file:
    file.truncate(2_010_000)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text(SCRIPT)
    (root / "job.yaml").write_text(JOB)
    return root


def test_what_fetch_brings_into_the_project_is_not_sent_as_code(
    here: Here, runs: Runs, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    spec = parse_job(JOB, "job.yaml")
    before = runs.preview(spec, project)
    run = runs.send(before)
    runs.wait(run.id)
    done = here("fetch", run.id, "checkpoints")
    assert done.returncode == 0, done.stderr
    assert (project / run.id / "checkpoints/last.pt").stat().st_size == 2_010_000
    after = runs.preview(spec, project)
    assert (after.files.count, after.files.bytes) == (before.files.count, before.files.bytes)
    assert after.files.count == 2
    done = here("preview", "job.yaml")
    assert f"; code: {before.files.weight}\n" in done.stderr, done.stderr
    assert before.files.weight.startswith("2 files, ")
    # Who wants the folder to be sent removes the file in it that says so.
    (project / run.id / ".lumituiignore").unlink()
    assert runs.preview(spec, project).files.bytes > 2_000_000


def test_no_folder_that_is_there_is_kept_from_the_code(
    home: Home, runs: Runs, project: Path
) -> None:
    (project / "train.py").write_text("print(1)\n")
    run = runs.send(runs.preview(parse_job(JOB, "job.yaml"), project))
    runs.wait(run.id)
    runs.fetch(run.id, project, ["job.sh"])
    assert (project / "job.sh").exists() and not (project / ".lumituiignore").exists()


def test_a_preview_names_what_is_large_or_looks_like_results(runs: Runs, project: Path) -> None:
    spec = parse_job(JOB, "job.yaml")
    for name in (
        "old/checkpoints/a",
        "old/checkpoints/b.json",
        "wandb/run-1/x",
        "net.pt",
        "big.csv",
    ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("12345")
    (project / "checkpoints").mkdir()
    (project / "checkpoints/save.py").write_text("code")
    (project / "big.csv").write_bytes(bytes(20_000_000))
    (project / "net.pt").write_bytes(bytes(2_000_000))
    (told,) = [one for one in runs.preview(spec, project).findings if one.rule == "code-large"]
    assert told.severity == "warning" and ".lumituiignore" in told.do
    for words in ("big.csv (1 file, 20 MB)", "old/checkpoints/ (2 files, 10 B)", "wandb/ (1 ",
                  "net.pt (1 file, 2.0 MB)"):  # fmt: skip
        assert words in told.message, told.message
    assert "save.py" not in told.message and told.message.count("(") == 4
