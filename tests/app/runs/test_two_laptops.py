"""Two copies of one history on two laptops: what both send again is trained once."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from lumitui.app.history.run import Run
from lumitui.app.job.spec import read_job
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.small_jobs import finish
from tests.support.program.command_line import PROGRAM as LUMITUI
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

pytestmark = pytest.mark.cluster

JOB = """name: counted
site: minilumi
account: {account}
partition: small-g
gpus_per_node: 1
cpus_per_task: 1
memory: 300M
time: "00:05:00"
launcher: srun
script: program
proof: "off"
container: {{none: true}}
"""
GRID = "grid: {env.CELL: [a, b, c]}\n"
PROGRAM = """#!/bin/bash
[[ $SLURM_PROCID == 0 ]] || exit 0
echo "$CELL-$SLURM_JOB_NUM_NODES $SLURM_JOB_ID" >>"$RUN_DIR/../../trained"
"""

# One after the other takes as long, and its claim is made long before.
AT_ONCE = pytest.mark.parametrize("at_once", [True, pytest.param(False, marks=pytest.mark.slow)])
# A sender that was killed a step earlier left less behind.
STOPPED = pytest.mark.parametrize(
    "stopped", ["", pytest.param("prepare", marks=pytest.mark.slow), "submit"]
)


class Killed(BaseException):
    """The program ends here."""


@dataclass
class Laptops:
    """One laptop with a job file, and later the same history on a second one."""

    cluster: Cluster
    first: Home
    second: Home
    job: Path

    def copy(self) -> None:
        """Copy all of the first laptop's data to the second one."""
        shutil.rmtree(self.second.data, ignore_errors=True)
        shutil.copytree(self.first.data, self.second.data)

    def start(self, home: Home, *argv: str) -> subprocess.Popen[str]:
        """Start lumitui on a laptop."""
        return subprocess.Popen(
            [*LUMITUI, *argv, "--yes"], env=home.environ, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def both(self, *argv: str, at_once: bool) -> list[tuple[int, str]]:
        """Run lumitui on both, and return each one's status and words."""
        ended = []
        begun = []
        for home in (self.first, self.second):
            begun.append(self.start(home, *argv))
            if not at_once:
                begun[-1].wait(120)
        for one in begun:
            out, err = one.communicate(timeout=120)
            ended.append((one.returncode, out + err))
        return ended

    def trained(self) -> list[str]:
        """Return what each job that trained was, when all of both histories have ended."""
        root = ""
        for home in (self.first, self.second):
            runs = Runs(home.settings)
            for run in runs.history.page():
                root = run.root
                state = finish(runs, run, 60).state
                assert state in (State.DONE, State.NOT_SENT, State.REFUSED)
            runs.close()
        return sorted(self.cluster.login(f"cat {root}/trained").stdout.split()[::2])


@pytest.fixture
def laptops(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Laptops:
    homes = []
    for name in ("first", "second"):
        home = Home(tmp_path / name / "config", tmp_path / name / "data")
        (home.config / "sites").mkdir(parents=True)
        home.add_cluster(cluster)
        homes.append(home)
    monkeypatch.setenv("HOME", str(tmp_path))
    project = tmp_path / f"project{os.getpid()}{tmp_path.name}".replace("_", "").lower()
    project.mkdir()
    (project / "program").write_text(PROGRAM)
    (project / "program").chmod(0o755)
    (project / "job.yaml").write_text(JOB.format(account=cluster.account))
    return Laptops(cluster, homes[0], homes[1], project / "job.yaml")


def killed_at(step: str) -> Callable[[str, str], None]:
    """Return what hears of a send's steps and ends the program at one."""

    def report(name: str, words: str) -> None:
        if name == step:
            raise Killed

    return report


def sent_one(laptops: Laptops, stopped: str = "") -> Run:
    """Send a run alone, whose sender may be killed at a step."""
    runs = Runs(laptops.first.settings)
    (preview,) = runs.drafts.previews(read_job(laptops.job), laptops.job.parent, laptops.job)
    if stopped:
        with pytest.raises(Killed):
            runs.send(preview, report=killed_at(stopped))
    else:
        finish(runs, runs.send(preview))
    (run,) = runs.history.page()
    runs.close()
    return run


@AT_ONCE
@STOPPED
def test_the_rest_of_a_grid_is_trained_once(laptops: Laptops, at_once: bool, stopped: str) -> None:
    """Whether the second member was never begun, or its sender killed at a step."""
    laptops.job.write_text(laptops.job.read_text() + GRID)
    runs = Runs(laptops.first.settings)
    series = runs.series.begin_grid(
        runs.drafts.previews(read_job(laptops.job), laptops.job.parent, laptops.job)
    )
    runs.series.send(series.id, agreed=series.members[:1])
    if stopped:
        with pytest.raises(Killed):
            runs.series.send(series.id, agreed=series.members[1:2], report=killed_at(stopped))
    runs.close()
    laptops.copy()
    ended = laptops.both("submit", str(laptops.job), "--rest", at_once=at_once)
    words = "\n".join(text for _, text in ended)
    assert [code for code, _ in ended] == [0, 0], words
    # A member that the other laptop is just settling is left to it, as unknown.
    assert words.count(" sent by ") + (at_once and words.count("unknown: ")) == 2, words
    if not at_once:
        # The second laptop knows now what the first one sent.
        assert words.count("already sent by") == 2 and ": job " in ended[1][1], words
        known = Runs(laptops.second.settings)
        assert known.series.unsent() == [] and known.history.series.offered() == []
        known.close()
    assert laptops.trained() == ["a-1", "b-1", "c-1"]


@AT_ONCE
@pytest.mark.parametrize("rest", [True, False])
def test_a_ladder_is_trained_once(laptops: Laptops, at_once: bool, rest: bool) -> None:
    """What is left of it, and one that both begin anew."""
    parent = sent_one(laptops)
    runs = Runs(laptops.first.settings)
    how = ["--ladder", "1,2"]
    if rest:
        plans = [runs.plan_resubmission(parent.id, nodes=nodes) for nodes in (1, 2)]
        runs.series.begin_again(plans)
        how = ["--rest"]
    runs.close()
    laptops.copy()
    ended = laptops.both("resubmit", parent.id, *how, at_once=at_once)
    assert [code for code, _ in ended] == [0, 0], ended
    assert laptops.trained() == ["-1", "-1", "-2"], "the parent, and each size once"


@AT_ONCE
@STOPPED
def test_a_run_that_both_send_again_is_trained_once(
    laptops: Laptops, at_once: bool, stopped: str
) -> None:
    """One that ended, and one whose sender was killed."""
    parent = sent_one(laptops, stopped)
    laptops.copy()
    ended = laptops.both("resubmit", parent.id, at_once=at_once)
    assert sorted(code for code, _ in ended) == [0, 4], ended
    (refused,) = (text for code, text in ended if code)
    # Who sent it is known where its mark was met, not where its folder was met first.
    assert "lumitui sent nothing twice" in refused
    assert laptops.trained() == (["-1"] if stopped else ["-1", "-1"])


def test_a_copy_that_was_made_while_a_run_was_sent_sends_it_no_second_time(
    laptops: Laptops,
) -> None:
    """The copy takes the run for one whose sender was killed."""
    runs = Runs(laptops.first.settings)
    (preview,) = runs.drafts.previews(read_job(laptops.job), laptops.job.parent, laptops.job)

    def report(step: str, words: str) -> None:
        if step == "prepare":
            laptops.copy()

    run = runs.send(preview, report=report)
    finish(runs, run)
    runs.close()
    second = laptops.start(laptops.second, "resubmit", run.id)
    out, err = second.communicate(timeout=120)
    assert second.returncode == 4 and f"sent: job {run.job_id}" in err, out + err
    assert laptops.trained() == ["-1"]


def test_a_person_may_send_a_run_again_and_again(laptops: Laptops) -> None:
    parent = sent_one(laptops)
    for _ in range(2):
        done = laptops.start(laptops.first, "resubmit", parent.id)
        out, err = done.communicate(timeout=120)
        assert done.returncode == 0, out + err
    laptops.copy()
    assert laptops.trained() == ["-1"] * 3
