"""Trainings in bash that need several time limits: how each attempt ends is said beforehand."""

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from lumitui.app.history.run import Run
from lumitui.app.launch.send.preview import Preview
from lumitui.app.runs import Runs
from tests.support.jobs.small_jobs import hello_job
from tests.support.servers.cluster import Cluster

PROGRAM = r"""#!/bin/bash
# Rank 0 trains three steps an attempt, from its checkpoint on. PLAN has a word for each attempt:
# an exit code after a save, `lie`: 85 without a save, `stay`: 85 without a step,
# `lost`: 85 in a launcher that hides it,
# `wait`: no save and no end until somebody ends it, `hold`: save, and end with 85 when told.
attempt=$((${SLURM_RESTART_COUNT:-0} + 1))
read -ra plan <<<"$PLAN"
how=${plan[attempt - 1]:-0}
told() { until [[ -e $RUN_DIR/go-on-$attempt ]]; do sleep 0.2; done; }
if [[ $RANK != 0 ]]; then
  case $how in wait) sleep 600 ;; hold) told ;; esac
  exit 0
fi
say() { echo "$1" >>"$RUN_DIR/metrics.jsonl"; }
mkdir -p "$RUN_DIR/checkpoints"
step=$(cat "$RUN_DIR/checkpoints/step" 2>/dev/null || echo 0)
say "{\"event\": \"start\", \"time\": $(date +%s), \"attempt\": $attempt, \"world_size\": 2}"
if [[ $how != stay ]]; then
  for seconds in 1 2 3; do
    step=$((step + 1))
    say "{\"step\": $step, \"loss\": 0.$attempt, \"seconds\": $seconds}"
  done
fi
echo "attempt $attempt trained to step $step${TOKEN:+ with a secret}"
case $how in
  wait) sleep 600 & wait ;;
  hold) told && how=85 ;;
esac
if [[ $how == lost || ( $how == [0-9]* && $how != 7 ) ]]; then
  echo "$step" >"$RUN_DIR/checkpoints/step.new" && mv "$RUN_DIR"/checkpoints/step{.new,}
fi
case $how in
  stay | lie | 85 | lost)
    say "{\"event\": \"stop\", \"step\": $step, \"signal\": \"SIGUSR1\", \"seconds\": 4}"
    if [[ $how == lost ]]; then exit 1; else exit 85; fi ;;
  *) exit "$how" ;;
esac
"""


def chained(runs: Runs, project: Path, plan: str, **changes: object) -> Run:
    """Send a run whose attempts end as the words of `plan` say."""
    return runs.send(chained_preview(runs, project, plan, **changes))


def chained_preview(runs: Runs, project: Path, plan: str, **changes: object) -> Preview:
    """Return such a run as it would be sent."""
    project.mkdir(exist_ok=True)
    program = project / "train"
    if not program.exists():
        program.write_text(PROGRAM)
        program.chmod(0o755)
    job: dict[str, object] = {
        "name": "chained",
        "script": "train",
        "resume": ["--resume"],
        "signal": "USR1@60",
        "chain": 4,
        "env": {"PLAN": plan},
        "container": {"none": True},
        "cpus_per_task": 1,
        "memory": "400M",
        "proof": "off",
    }
    return runs.preview(hello_job(**(job | changes)), project)


def steps_of(metrics: str) -> list[tuple[int, int]]:
    """Return each trained step with the attempt that trained it, in the order of the file."""
    attempt, found = 0, []
    for line in map(json.loads, metrics.splitlines()):
        if line.get("event") == "start":
            attempt = line["attempt"]
        elif "event" not in line:
            found.append((line["step"], attempt))
    return found


def retrained(steps: Sequence[tuple[int, int]]) -> set[int]:
    """Return the steps of `steps_of` that several attempts trained."""
    found = [step for step, _ in steps]
    return {step for step in found if found.count(step) > 1}


def hurry(cluster: Cluster, sent: Iterable[Run]) -> None:
    """Let the jobs of `sent` that went back into the queue start soon, not after two minutes.

    Not at once: see `endings.start_again`.
    """
    rows = cluster.admin("squeue", "-h", "-t", "PD", "-o", "%A %r %S").stdout.splitlines()
    mine = {run.job_id for run in sent}
    for job, reason, start in (row.split() for row in rows):
        soon = time.time() + 10
        if job in mine and reason == "BeginTime" and _epoch(start) > soon:
            cluster.admin("scontrol", "update", f"jobid={job}", "StartTime=now+2seconds")


def _epoch(start: str) -> float:
    return 0.0 if start == "N/A" else time.mktime(time.strptime(start, "%Y-%m-%dT%H:%M:%S"))
