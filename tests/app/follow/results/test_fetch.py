"""Results of a run that goes on, brought from the mini cluster by the core and the command line."""

from pathlib import Path

from lumitui.app.history.metric_points import parse_line
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.endings import send
from tests.support.jobs.small_jobs import finish, wait_until
from tests.support.program.command_line import Here, envelope

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
        assert "no file matches plots/* of `fetch:`" in done.stderr and "6 files in" in done.stderr
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
