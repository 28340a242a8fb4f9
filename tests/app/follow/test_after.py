"""`after:`: a job that Slurm starts once others have ended as required."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.explain.waiting import plain_reason
from lumitui.app.history.run import Run
from lumitui.app.job.settings import Settings
from lumitui.app.job.spec import JobSpec, read_job
from lumitui.app.launch.dependency import dependency_of
from lumitui.app.launch.send.preview import Preview
from lumitui.app.runs import InputError, Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.chained_runs import chained, hurry
from tests.support.jobs.endings import opened
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import finish, hello_job, hello_project, wait_until
from tests.support.program.command_line import CLUSTER, LAPTOP, Here, history, lt, told, write
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

LUMI = Sites([BUILT_IN]).load("lumi")


@pytest.mark.cluster
def test_a_job_starts_once_the_last_attempt_of_a_chain_is_done(
    cluster: Cluster, tmp_path: Path
) -> None:
    project = hello_project(tmp_path / "hello")

    def waiting(runs: Runs, after: object) -> Preview:
        spec = hello_job(proof="off")
        return runs.previews(spec, project, changes={"after": after})[0]

    with opened(cluster, tmp_path) as runs:
        sent: list[Run] = []
        try:
            train = chained(runs, tmp_path / "train", "hold 0")
            sent.append(train)
            evaluation = runs.send(waiting(runs, train.id))
            rescue = runs.send(waiting(runs, {"run": [train.id], "when": "failed"}))
            last = runs.send(waiting(runs, [evaluation.id, train.id]))
            sent += [evaluation, rescue, last]
            assert f"--dependency=afterok:{train.job_id}\n" in evaluation.script
            assert evaluation.spec.after is not None and evaluation.spec.after.run == (train.id,)

            def reason(run: Run) -> str:
                runs.refresh(run.site)
                return plain_reason(runs.history.get(run.id))

            wait_until(lambda: "another job to end" in reason(evaluation))
            wait_until(lambda: not reason(train) and runs.history.get(train.id).started is not None)
            cluster.login(f"touch {train.folder}/go-on-1")

            def is_over() -> bool:
                hurry(cluster, [train])
                runs.refresh(train.site)
                over = runs.history.get(train.id).state.is_final
                if not over:
                    waits = runs.history.get(evaluation.id).state is State.QUEUED
                    assert waits, "an attempt was enough"
                return over

            wait_until(is_over)
            assert runs.history.get(train.id).attempt == 2
            ended = finish(runs, evaluation, 60)
            assert ended.state is State.DONE, runs.read_log(ended.id)
            assert finish(runs, last, 60).state is State.DONE
            assert runs.history.get(train.id).ended <= ended.started  # type: ignore[operator]
            # What can never start is told, and ends when a user says so.
            wait_until(lambda: "cancel it (DependencyNeverSatisfied)" in reason(rescue))
            assert runs.wait(rescue.id).never_starts, "it is not waited for"
            assert runs.cancel(rescue.id).state is State.CANCELLED
            late = waiting(runs, train.id)
            assert "--dependency" not in late.launch.script and late.launch.spec.after is None
            assert [f.message for f in late.findings if f.rule == "after"] == [
                f"The job does not wait for {train.id} (done), which has ended."
            ]
            again = runs.plan_resubmission(evaluation.id)
            assert "--dependency" not in again.preview.launch.script
        finally:
            cluster.login("scancel " + " ".join(run.job_id or "" for run in sent))


def test_what_ends_during_an_upload_is_found_right_before_the_submit_step(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "job.yaml", LAPTOP)
    steps: list[str] = []

    def check(preview: Preview) -> None:
        if "prepare" in steps:
            raise InputError("It has ended meanwhile.", "Preview the job again.")

    monkeypatch.setattr(runs, "_check_awaited", check)
    with pytest.raises(InputError, match="ended meanwhile"):
        runs.send(runs.preview(path), report=lambda step, words: steps.append(step))
    (run,) = runs.history.page()
    assert (run.state, run.job_id) == (State.NOT_SENT, None) and "submit" not in steps


@pytest.mark.cluster
def test_a_run_that_failed_while_nobody_looked_is_judged_before_the_send(
    cluster: Cluster, home: Home, tmp_path: Path
) -> None:
    home.add_cluster(cluster)
    path = write(tmp_path / "job.yaml", CLUSTER | {"env": {"FAIL_RANK": "0"}})
    assert lt(home, "submit", str(path), "--yes").returncode == 0
    (run,) = history(home)
    wait_until(lambda: not cluster.login(f"squeue -h -j {run['job_id']} -t PD,R,CG").stdout)
    assert not history(home)[0]["ended"], "somebody polled: the test shows nothing"
    with Runs(home.settings) as runs:
        (preview,) = runs.previews(
            read_job(path), path.parent, changes={"after": {"run": run["id"], "when": "any"}}
        )
        for heard in (1.0, time.time() + 7200):  # long ago; before the clock was set back
            runs.history.update(run["id"], updated=heard)
            with pytest.raises(InputError, match="has since ended: failed"):
                runs.send(preview)
            runs.history.update(run["id"], state=State.RUNNING, ended=None)
        assert len(runs.history.page()) == 1, "nothing was sent"
    refused = lt(home, "submit", str(path), "--after", run["id"], "--yes")
    told(refused, 2, "has ended as failed", "would never start")
    assert len(history(home)) == 1


def waiting_for(run: Run, when: str = "done") -> JobSpec:
    job = CLUSTER | {"site": "lumi", "after": {"run": [run.id], "when": when}}
    return JobSpec.model_validate(job)


@pytest.mark.parametrize(
    ("state", "when", "words"),
    [
        (State.DONE, "done", ""),
        (State.DONE, "failed", "as done, so a job that waits for it to fail"),
        (State.FAILED, "done", "as failed, so a job that waits for it to be done"),
        (State.TIMEOUT, "failed", ""),
        (State.CANCELLED, "any", ""),
        (State.REFUSED, "any", "never became a job"),
        (State.NOT_SENT, "failed", "never became a job"),
    ],
)
def test_a_run_that_has_ended_is_judged_before_anything_is_sent(
    state: State, when: str, words: str
) -> None:
    run = a_run(site="lumi", state=state, job_id="7")
    if words:
        with pytest.raises(InputError, match=words):
            dependency_of(waiting_for(run, when), LUMI, lambda word: run)
    else:
        dependency = dependency_of(waiting_for(run, when), LUMI, lambda word: run)
        assert (dependency.options, dependency.spec.after) == ((), None)
        assert dependency.findings


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"site": "karolina"}, "is a run at karolina"),
        ({"state": State.UNKNOWN}, "The state of"),
        ({"state": State.SENDING, "job_id": None}, "is unknown whether"),
    ],
)
def test_a_run_that_slurm_cannot_wait_for_is_refused(
    changes: dict[str, object], words: str
) -> None:
    run = replace(a_run(site="lumi", state=State.QUEUED, job_id="7"), **changes)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=words) as error:
        dependency_of(waiting_for(run), LUMI, lambda word: run)
    assert error.value.field == "after"


def test_each_job_is_named_once_and_each_kind_of_end_is_slurms() -> None:
    run = a_run(site="lumi", state=State.QUEUED, job_id="7")
    for when, kind in {"done": "afterok", "failed": "afternotok", "any": "afterany"}.items():
        spec = JobSpec.model_validate(
            CLUSTER | {"site": "lumi", "after": {"run": ["last", run.id], "when": when}}
        )
        dependency = dependency_of(spec, LUMI, lambda word: run)
        assert dependency.options[0] == f"--dependency={kind}:7"
        assert dependency.spec.after is not None and dependency.spec.after.run == (run.id,)


def test_the_verb_names_what_is_wrong(here: Here, settings: Settings, tmp_path: Path) -> None:
    job = str(write(tmp_path / "job.yaml", CLUSTER | {"site": "laptop", "partition": "local"}))
    told(here("submit", job, "--after", "x'; y", "--yes"), 2, "has no queue")
    told(here("submit", job, "--when", "any", "--yes"), 2, "works only with --after")
    cluster = str(write(tmp_path / "other.yaml", CLUSTER | {"site": "lumi"}))
    told(here("submit", cluster, "--after", "x'; y", "--yes"), 2, "is not a run")
