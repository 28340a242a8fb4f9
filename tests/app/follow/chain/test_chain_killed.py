"""A chain whose batch shell is killed at every command, and one whose node dies. With Slurm."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from lumitui.app.history.run import KILLED, Run
from lumitui.app.job.launch import LaunchFile
from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.run_folder import MACHINERY
from tests.support.jobs.chained_runs import chained_preview, hurry, retrained, steps_of
from tests.support.jobs.endings import bring_up, ended_daemon, in_shell, kill_node, opened, queue
from tests.support.jobs.small_jobs import finish, wait_until
from tests.support.servers.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

GOING = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING")
AT_ONCE = 24
KILLER = """\
# The first attempt's shell counts its commands, and is killed before one of them.
commands=0
if [[ -z ${SLURM_RESTART_COUNT:-} ]]; then
  set -T
  trap '((BASH_SUBSHELL)) || { ((++commands != KILL_AT)) || kill -9 $$; }' DEBUG
fi
"""
TRAINING = """
name: pytorch
site: minilumi
account: project_462000001
partition: small-g
gpus_per_node: 2
time: "00:05:00"
chain: 9
launcher: srun
trainer: ddp
proof: "off"
args: [--model, cnn-gn, --steps, "1500", --epochs, "1000", --batch-size, "8", --eval, never]
"""


@pytest.fixture
def runs(cluster: Cluster, tmp_path: Path) -> Iterator[Runs]:
    """A core of its own."""
    with opened(cluster, tmp_path) as core:
        yield core


def metrics_of(cluster: Cluster, run: Run) -> list[tuple[int, int]]:
    return steps_of(cluster.login(f"cat {run.folder}/metrics.jsonl").stdout)


def wait_until_over(cluster: Cluster, *sent: Run, seconds: float) -> None:
    def over() -> bool:
        hurry(cluster, sent)
        return not any(queue(cluster, run) in GOING for run in sent)

    wait_until(over, seconds, f"the jobs of {[run.name for run in sent]} have ended")


def send_killed(runs: Runs, project: Path, at: int) -> Run:
    """Send a run whose first attempt is killed before its command number `at`."""
    preview = chained_preview(runs, project, "85 0", name=f"killed-{at}")
    killer = KILLER.replace("KILL_AT", str(at))
    files = tuple(
        LaunchFile(file.name, killer + file.content) if file.name == MACHINERY else file
        for file in preview.launch.files
    )
    return runs.send(replace(preview, launch=replace(preview.launch, files=files)))


def test_the_batch_shell_is_killed_before_each_of_its_commands(
    runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    seen: dict[int, Run] = {}
    for first in count(1, AT_ONCE):
        places = range(first, first + AT_ONCE)
        sent = {at: send_killed(runs, tmp_path / "project", at) for at in places}
        wait_until_over(cluster, *sent.values(), seconds=180)
        seen |= {at: finish(runs, run, 60) for at, run in sent.items()}
        if not any(run.state is State.FAILED for run in list(seen.values())[-len(places) :]):
            break  # it has fewer commands
    outcomes = set()
    for at, run in seen.items():
        steps = metrics_of(cluster, run)
        # However it ended: no step twice, none left out, never two attempts at once.
        assert not retrained(steps), (at, steps)
        assert [step for step, _ in steps] == list(range(1, len(steps) + 1)), (at, steps)
        ends = [record.end for record in run.attempts]
        times = [moment for item in run.attempts for moment in (item.started, item.ended or 0)]
        assert len(ends) < 2 or times == sorted(times), (at, run.attempts)
        if run.state is State.DONE:
            # The requeue was accepted, or nothing was killed.
            assert (ends, len(steps)) == (["requeue", "done"], 6), at
        else:
            assert run.state is State.FAILED, at
            assert ends in ([], [""], ["requeue"]), (at, ends)
            assert not in_shell(cluster, f"ls {run.folder} | grep attempt-2 || true"), at
        outcomes.add((run.state, tuple(ends)))
    print(f"{len(seen)} kills: {outcomes}")
    assert len(outcomes) >= 4


def test_a_training_with_pytorch_goes_on_after_signals_and_a_dead_node(
    runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    run = runs.send(runs.preview(parse_job(TRAINING, "pytorch"), project))
    job = run.job_id or ""

    def trained(attempt: int) -> int:
        return sum(number == attempt for _, number in metrics_of(cluster, run))

    def goes_on(attempt: int) -> bool:
        hurry(cluster, [run])
        return trained(attempt) > 150

    wait_until(lambda: goes_on(1), 90, "attempt 1 trains")
    # As if its limit were near: Slurm sends the signal.
    cluster.admin("scontrol", "update", f"jobid={job}", "EndTime=now+62seconds")
    wait_until(lambda: goes_on(2), 180, "attempt 2 trains")
    node = cluster.admin("squeue", "-h", "-j", job, "-o", "%N").stdout.strip()
    kill_node(cluster, node)
    cluster.admin("scontrol", "update", f"nodename={node}", "state=down", "reason=killed")
    bring_up(cluster)
    wait_until_over(cluster, run, seconds=300)
    run = finish(runs, run)
    assert (run.state, run.rc) == (State.DONE, 0)
    # The end that was set is a shorter time limit from then on: a slow machine needs more of them.
    first, killed, *others, last = [record.end for record in run.attempts]
    assert (first, killed, set(others) - {"requeue"}, last) == ("requeue", KILLED, set(), "done")
    steps = metrics_of(cluster, run)
    assert {step for step, _ in steps} == set(range(1, 1501))
    reached = max(step for step, number in steps if number == 2)
    again = retrained(steps)
    assert not again or (max(again) == reached and reached - min(again) < 100)


def test_slurmctld_is_away_when_an_attempt_ends(
    runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    run = runs.send(chained_preview(runs, tmp_path / "project", "hold 0", name="away"))

    def says(words: str) -> bool:
        return words in cluster.login(f"cat {run.folder}/attempt-1.out").stdout

    wait_until(lambda: says("trained to step 3"), 60)
    ended_daemon(cluster, "slurmctld")
    in_shell(cluster, f": >{run.folder}/go-on-1")
    ended = f"grep -q requeue {run.folder}/attempts.jsonl"
    wait_until(lambda: cluster.login(ended).returncode == 0, 60, "attempt 1 has ended")
    bring_up(cluster)
    wait_until_over(cluster, run, seconds=180)
    run = finish(runs, run)
    assert (run.state, [record.end for record in run.attempts]) == (State.DONE, ["requeue", "done"])
    steps = metrics_of(cluster, run)
    assert [step for step, _ in steps] == list(range(1, 7))
