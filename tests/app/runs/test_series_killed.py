"""A client killed by SIGKILL within a grid on a real Slurm: the next sends the rest, none twice."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.program.command_line import lt
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

JOB = """name: counted
site: minilumi
account: {account}
partition: small-g
gpus_per_node: 1
cpus_per_task: 1
memory: 500M
time: "00:05:00"
launcher: plain
strategy: single
script: program
proof: "off"
container: {{none: true}}
grid: {{env.CELL: [a, b, c, d]}}
"""
SEQUENCE = """env: {{CELL: a}}
then: {{b: {{env: {{CELL: b}}}}, c: {{env: {{CELL: c}}, when: any}}, d: {{env: {{CELL: d}}}}}}
"""
PROGRAM = """#!/bin/bash
echo "$CELL $SLURM_JOB_ID" >>"$RUN_DIR/../../trained"
"""
CLIENT = """
import sys
from pathlib import Path
from lumitui.app.job.spec import read_job
from lumitui.app.runs import Runs
from lumitui.app.job.settings import settings
runs, job = Runs(settings()), Path(sys.argv[1])
def report(step, words):
    print(step, words, flush=True)
series = runs.series.begin_grid(runs.drafts.previews(read_job(job), job.parent, job))
runs.series.send(series.id, report=report)
"""


def killed(
    cluster: Cluster, home: Home, tmp_path: Path, at: tuple[str, str], delay: float, series: str
) -> Path:
    """Kill a client `delay` seconds after a step of a member; return the job file."""
    step, member = at
    # The site's folder has this name; two tests must not share what they trained.
    project = tmp_path / f"project{os.getpid()}{tmp_path.name}".replace("_", "")
    project.mkdir()
    (project / "program").write_text(PROGRAM)
    (project / "program").chmod(0o755)
    job = project / "job.yaml"
    text = JOB if series == "grid" else JOB.replace("grid: {{env.CELL: [a, b, c, d]}}\n", SEQUENCE)
    job.write_text(text.format(account=cluster.account))
    home.add_cluster(cluster)
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(job)], stdout=subprocess.PIPE, text=True,
        env=home.environ,
    )  # fmt: skip
    assert client.stdout is not None
    for line in client.stdout:
        if line.startswith(f"{step} ") and member in line:
            time.sleep(delay)
            break
    client.send_signal(signal.SIGKILL)
    assert client.wait(20) == -signal.SIGKILL, "it had sent all before it was killed"
    return job


@pytest.mark.slow
@pytest.mark.parametrize("step", ["prepare", "submit"])
def test_a_client_killed_in_the_last_run_of_a_sequence_has_not_sent_it_whole(
    cluster: Cluster, home: Home, tmp_path: Path, step: str
) -> None:
    # At once: 50 ms later it may have sent all, and what is submitted then is a new sequence.
    job = killed(cluster, home, tmp_path, (step, " 4 of 4"), 0.0, "then")
    deadline = time.monotonic() + 400
    while (again := lt(home, "submit", str(job), "--yes")).returncode == 1:
        assert "It is still unknown whether" in again.stderr, again.stderr
        assert time.monotonic() < deadline
        time.sleep(5)
    assert again.returncode == 0, again.stderr
    runs = Runs(home.settings)
    for run in runs.history.page():
        if run.state not in (State.NOT_SENT, State.REFUSED):
            assert runs.wait(run.id).state is State.DONE
    trained = cluster.login(f"cat {runs.history.page()[0].root}/trained").stdout.split()
    assert sorted(trained[::2]) == ["a", "b", "c", "d"], "each once"
    runs.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "delay"),
    [("begin", 0.0), ("sync", 0.05), ("prepare", 0.1), ("submit", 0.0), ("submit", 0.15),
     ("record", 0.0)],
)  # fmt: skip
@pytest.mark.parametrize("series", ["grid", "then"])
def test_what_a_killed_client_has_left_is_sent_once(
    cluster: Cluster, home: Home, tmp_path: Path, step: str, delay: float, series: str
) -> None:
    job = killed(cluster, home, tmp_path, (step, "" if step == "record" else " 2 of 4"), delay,
                 series)  # fmt: skip
    assert job.is_file()
    runs = Runs(home.settings)
    (left,) = runs.series.unsent()
    assert len(left.sent) + len(left.open) + len(left.left) == 4
    deadline = time.monotonic() + 240
    while runs.history.series.offered() and time.monotonic() < deadline:
        runs.series.send(left.series.id)
        if runs.series.unsent() or runs.history.series.offered():
            time.sleep(5)  # a submission without any sign stays open for three minutes
    assert runs.history.series.offered() == [], "all are sent in the end"
    for run in runs.history.page():
        if run.state not in (State.NOT_SENT, State.REFUSED):
            assert runs.wait(run.id).state is State.DONE
    root = runs.history.page()[0].root
    trained = cluster.login(f"cat {root}/trained").stdout.split()
    assert sorted(trained[::2]) == ["a", "b", "c", "d"], "each once, whatever was killed"
    runs.close()
