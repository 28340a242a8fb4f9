"""Results on the laptop: of a run that goes on, around obstacles, inside the project."""

import os
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.follow.results import result_files
from lumitui.app.history.metric_points import parse_line
from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.transfer.results.fetch_files import FetchOutcome
from tests.support.jobs.endings import send
from tests.support.jobs.small_jobs import finish, hello_job, hello_project, wait_until
from tests.support.program.command_line import Here, envelope, lt
from tests.support.program.home import Home

# Checkpoints as DeepSpeed saves them, and 20 lines a second until it is told to end.
WRITER = """\
#!/bin/bash
cd "$RUN_DIR"
mkdir -p checkpoints/step-5/zero
echo model >checkpoints/step-5/zero/rank-0.pt
echo module >checkpoints/step-5/module.pt
printf step-5 >checkpoints/latest
step=0
until [ -e go-on ]; do
  step=$((step + 1))
  echo "{\\"step\\": $step, \\"loss\\": 1.5}" >>metrics.jsonl
  echo "step $step"
  echo "step $step" >>progress.txt
  sleep 0.05
done
"""
CHECKPOINTS = {
    f"checkpoints/{name}" for name in ("latest", "step-5/module.pt", "step-5/zero/rank-0.pt")
}


def test_a_running_runs_results_come_with_folders_and_all(
    cluster_runs: Runs, here: Here, tmp_path: Path
) -> None:
    runs, project = cluster_runs, tmp_path / "project"
    project.mkdir()
    (project / "program").write_text(WRITER)
    (project / "program").chmod(0o755)
    run = send(runs, project, "writer", gpus_per_node=1, fetch=["checkpoints", "plots/*"])
    there = Path(run.folder)
    try:
        wait_until((there / "metrics.jsonl").exists, 90, "the job logs")
        for number in range(3):
            brought = runs.fetch(run.id, tmp_path / f"here-{number}")
            assert (brought.left, brought.troubles) == ((), ())
            names = {item.name for item in brought.files}
            assert names == CHECKPOINTS | {"metrics.jsonl", "attempt-1.out", "job.sh"}
            assert brought.unmatched == ("plots/*",)
            lines = (tmp_path / f"here-{number}" / "metrics.jsonl").read_bytes().splitlines()
            assert all(map(parse_line, lines[:-1]))
        to = ("--to", str(tmp_path / "there"))
        done = here("fetch", run.id, *to)
        assert done.returncode == 0, done.stderr
        assert "No file matches plots/* of `fetch:`" in done.stderr and "6 files in" in done.stderr
        done = here("fetch", run.id, "checkpoints", "progress.txt", *to, "--json")
        assert done.returncode == 0, done.stderr
        names = {item["name"] for item in envelope(done)["data"]["files"]}
        assert names == CHECKPOINTS | {"progress.txt"}
        done = here("fetch", run.id, "checkpoints/*", "plots", *to)
        assert (done.returncode, len(done.stdout.splitlines())) == (2, 3)
        assert "No file matches plots." in done.stderr
        (there / "mem").symlink_to("/proc/self/mem")
        done = here("fetch", run.id, "mem", "job.sh", *to)
        assert (done.returncode, len(done.stdout.splitlines())) == (4, 1)
        assert "Not everything was fetched" in done.stderr and "mem" in done.stderr
    finally:
        (there / "go-on").touch()
    assert finish(runs, run).state is State.DONE


def test_what_a_job_wrote_beside_its_code_is_named_and_found_by_its_ending(
    runs: Runs, here: Here, tmp_path: Path
) -> None:
    project = hello_project(tmp_path / "project")
    (project / "old.pth").touch()
    (project / "hello.py").write_text(
        "import os\nos.makedirs('sub/__pycache__')\n"
        "for name in ('sub/new.pth', 'sub/__pycache__/a.pyc', '.cache'):\n    open(name, 'w')\n"
    )
    job = hello_job(site="laptop", partition="local", account="none", gpus_per_node=1)
    run = finish(runs, runs.send(runs.preview(job, project)))
    to = ("--to", str(tmp_path / "here"))
    done = here("fetch", run.id, *to)
    assert "These results stay on the site: code/sub/ (1 file, 0 B)." in done.stderr
    done = here("fetch", run.id, "*.pth", *to)
    assert done.returncode == 0, done.stderr
    assert [line.removeprefix(f"{tmp_path}/here/") for line in done.stdout.splitlines()] == [
        "code/sub/new.pth"
    ], "old.pth is the project's own"
    (project / "hello.py").write_text("print('other code')\n")
    finish(runs, runs.send(runs.preview(job, project)))
    done = here("fetch", run.id, "--to", str(tmp_path / "later"))
    assert "on the site: code/sub/ (1 file, 0 B)." in done.stderr, "by its name"
    assert "No file matches *.txt." in here("fetch", run.id, "*.txt", *to).stderr


def test_files_that_cannot_come_are_named_and_the_others_come(
    runs: Runs, home: Home, tmp_path: Path
) -> None:
    job = hello_job(site="laptop", partition="local", account="none", gpus_per_node=1)
    run = finish(runs, runs.send(runs.preview(job, hello_project(tmp_path / "project"))))
    there, here = Path(run.folder) / "results", tmp_path / "here"
    long = "n" * 245
    for name in (long, "a/b", "out/c", "good/d", "wanted"):
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_text(name)
    (there / os.fsdecode(b"caf\xe9")).write_text("not UTF-8")
    with (there / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    (here / "results").mkdir(parents=True)
    (here / "results" / "a").write_text("a file where a folder is wanted")
    (here / "results" / "wanted").mkdir()
    (tmp_path / "outside").mkdir()
    (here / "results" / "out").symlink_to(tmp_path / "outside")

    done = lt(home, "fetch", run.id, "results", "--to", str(here))
    assert done.returncode == 4, done.stderr
    assert "2 files in" in done.stderr and "Traceback" not in done.stderr
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    for words in (
        "results/a/b (results/a is not a folder here)",
        "results/out/c (results/out is a link here that points outside",
        "results/wanted (a folder with that name exists here)",
        "results/sparse (it has 1,099.5 GB, but this disk has room for",
        "(its name is not UTF-8)",
    ):
        assert words in error
    assert (here / "results" / long).read_text() == long
    assert (here / "results" / "good" / "d").read_text() == "good/d"
    assert os.listdir(tmp_path / "outside") == []
    assert not (here / ".lumitui-fetch").exists()

    done = lt(home, "fetch", run.id, "results/good", "--to", str(tmp_path / "whole"), "--json")
    assert done.returncode == 0, done.stderr
    assert [item["name"] for item in envelope(done)["data"]["files"]] == ["results/good/d"]


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


def test_what_stays_in_the_runs_folder_is_named_with_the_way_to_fetch_it(
    here: Here, runs: Runs, project: Path, tmp_path: Path
) -> None:
    (project / "train.py").write_text(
        SCRIPT + "open(os.environ['RUN_DIR'] + '/best model.pt', 'w').write('12')\n"
    )
    run = finish(runs, runs.send(runs.preview(parse_job(JOB, "job.yaml"), project)))
    assert "Fetch its results" in here("show", run.id).stdout
    done = here("fetch", run.id, "--to", str(tmp_path / "here"))
    assert (
        "These results stay on the site: best model.pt (1 file, 2 B), checkpoints/ (1 file, 2.0 MB)"
        f". To fetch them, run `lumitui fetch {run.id} 'best model.pt' checkpoints`, or open the "
        "run in the TUI and press F. With `fetch: [best model.pt, checkpoints]` in the job file, "
        "each fetch copies them." in done.stderr
    )
    assert "Fetch its results" not in here("show", run.id).stdout
    done = here("fetch", run.id, "best model.pt", "checkpoints", "--to", str(tmp_path / "here"))
    assert (done.returncode, "stay on the site" in done.stderr) == (0, False)
    spec = parse_job(JOB + "fetch: [best model.pt, checkpoints]\n", "job.yaml")
    run = finish(runs, runs.send(runs.preview(spec, project)))
    done = here("fetch", run.id, "--to", str(tmp_path / "all"))
    assert (done.returncode, "stay on the site" in done.stderr) == (0, False)


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


def test_a_note_written_during_a_fetch_is_kept(
    runs: Runs, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = finish(runs, runs.send(runs.preview(parse_job(JOB, "job.yaml"), project)))
    bring = result_files.bring

    def noted(*given: Any) -> FetchOutcome:
        runs.history.update(run.id, note="the best")
        return bring(*given)

    runs.fetch(run.id, tmp_path / "one", ["job.sh"])
    assert not runs.history.get(run.id).note, "its other results are still to be fetched"
    monkeypatch.setattr(result_files, "bring", noted)
    runs.fetch(run.id, tmp_path / "here")
    assert runs.history.get(run.id).note == "the best #fetched"
