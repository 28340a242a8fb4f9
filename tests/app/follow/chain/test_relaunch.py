"""`relaunch:` on this machine, within each attempt of a chain. test_relaunch_cluster.py: Slurm."""

from pathlib import Path

from lumitui.app.explain.timeline import attempts_of, happenings
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.chained_runs import steps_of
from tests.support.jobs.small_jobs import finish, hello_job

PROGRAM = r"""#!/bin/bash
# Rank 0 trains one step and saves it. Each launch then ends as the next word of PLAN says: rank 1
# is killed, or rank 0 ends with a number.
read -ra plan <<<"$PLAN"
attempt=$((${SLURM_RESTART_COUNT:-0} + 1))
told=$RUN_DIR/told-$attempt-$MASTER_PORT
if [[ $RANK == 1 ]]; then
  until [[ -e $told ]]; do sleep 0.05; done
  [[ $(<"$told") != die ]] || kill -9 $$
  exit 0
fi
step=$(cat "$RUN_DIR/checkpoints/step" 2>/dev/null || echo 0)
how=${plan[step]}
say() { echo "$1" >>"$RUN_DIR/metrics.jsonl"; }
say "{\"event\": \"start\", \"time\": $(date +%s), \"attempt\": $attempt, \"world_size\": 2}"
say "{\"step\": $((step + 1)), \"loss\": 0.5, \"seconds\": 1}"
echo "$* from $step at port $MASTER_PORT"
mkdir -p "$RUN_DIR/checkpoints"
echo $((step + 1)) >"$RUN_DIR/checkpoints/new" && mv "$RUN_DIR"/checkpoints/{new,step}
# It takes its time to end.
trap 'kill $!; sleep 0.3; echo "left $step"; exit 1' TERM
echo "$how" >"$told.new" && mv "$told"{.new,}
case $how in
  die) sleep 600 & wait ;;
  *) exit "$how" ;;
esac
"""


def test_a_program_goes_on_in_its_job_after_a_rank_was_killed(runs: Runs, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train").write_text(PROGRAM)
    (project / "train").chmod(0o755)
    job = hello_job(
        site="laptop", account="none", partition="local", container={}, script="train",
        resume=["--resume"], signal="USR1@60", chain=2, relaunch=1, proof="off",
        env={"PLAN": "die 85 die 0"}, time="00:10:00",
    )  # fmt: skip
    run = finish(runs, runs.send(runs.preview(job, project)), 30)
    folder = Path(run.folder)
    logs = [(folder / f"attempt-{number}.out").read_text() for number in (1, 2)]
    assert (run.state, run.rc, run.attempt) == (State.DONE, 0, 2), logs
    assert [record.end for record in run.attempts] == ["requeue", "done"]
    assert steps_of((folder / "metrics.jsonl").read_text()) == [(1, 1), (2, 1), (3, 2), (4, 2)]
    for step, log in zip((1, 3), logs, strict=True):
        said = f"launch 2 of 2: rank 1 ended with 137 after step {step}; it restarts from its last"
        assert said in log
        assert log.index(f"left {step - 1}") < log.index("launch 2 of 2")
    ports = [line.split()[-1] for log in logs for line in log.splitlines() if " at port " in line]
    assert [line.count("--resume from") for line in logs] == [1, 2]
    assert len(set(ports[:2])) == len(set(ports[2:])) == 2
    points = runs.history.metrics.of(run.id)
    told = [row.what for row in happenings(run, attempts_of(points), None)]
    assert [what for what in told if "program started" in what] == [
        f"program started on 2 ranks (program start {number})" for number in (1, 2, 3, 4)
    ]
