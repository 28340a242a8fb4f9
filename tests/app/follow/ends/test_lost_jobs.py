"""Waiting ends, and says why, for a job that neither the queue nor accounting knows."""

import time

import pytest

from lumitui.app.cli.output import Reply
from lumitui.app.cli.send_progress import show_end, wait_for_end
from lumitui.app.follow import transitions
from lumitui.app.follow.log_follower import LogGrew
from lumitui.app.follow.refresh import Refreshed, Watcher, refresh
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import OutcomeUnknown, WaitTimedOut
from tests.support.jobs.made_runs import a_run
from tests.support.servers.cluster import Cluster


def test_waiting_for_a_job_nobody_knows_ends(
    cluster_runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = cluster_runs
    run = a_run("lost", site="minilumi", state=State.RUNNING, job_id="987654", folder="/none")
    runs.history.begin(run)
    with pytest.raises(WaitTimedOut):  # accounting may be late
        wait_for_end(Reply(json=False), runs, run, 0.5)
    assert transitions.nobody_knows(runs.history.get("lost"))
    monkeypatch.setattr(transitions, "ACCOUNTING_SECONDS", 0.2)
    refreshes: list[bool] = []

    def watched(watcher: Watcher, site_name: str | None, *, attended: bool) -> Refreshed:
        refreshes.append(attended)
        return refresh(watcher, site_name, attended=attended)

    monkeypatch.setattr("lumitui.app.follow.log_follower.refresh", watched)
    with pytest.raises(OutcomeUnknown, match=r"unknown since .* accounting does not list it"):
        wait_for_end(Reply(json=False), runs, run, 30.0)
    assert refreshes[-1] and len(refreshes) > 1, "asked once more, as a person would"


def test_following_its_log_ends_too(cluster_runs: Runs, cluster: Cluster) -> None:
    folder = f"{cluster.scratch}/{cluster.user}/lost"
    cluster.login(f"mkdir -p {folder}; echo the last words >{folder}/attempt-1.out")
    run = a_run("lost", site="minilumi", state=State.RUNNING, job_id="987656", folder=folder)
    cluster_runs.history.begin(run)
    deadline = time.monotonic() + 90
    events = cluster_runs.follow("lost", stop=lambda: time.monotonic() > deadline)
    text = b"".join(event.data for event in events if isinstance(event, LogGrew))
    assert text == b"the last words\n" and time.monotonic() < deadline
    with pytest.raises(OutcomeUnknown, match="the job left the queue"):
        show_end(cluster_runs.history.get("lost"))


def test_accounting_that_cannot_be_asked_is_waited_for() -> None:
    reason = "unknown since 2026-01-01 00:00: the job left the queue; accounting cannot be queried"
    run = a_run("silent", site="minilumi", state=State.UNKNOWN, job_id="987655", reason=reason)
    assert not transitions.nobody_knows(run)
