"""Jobs of runs that were given up are cancelled; a wrong clock of the laptop decides nothing."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.follow.refresh import late_runs, recent_runs
from lumitui.app.history.history import History
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.endings import accident
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import wait_until
from tests.support.program.command_line import CLUSTER, Here, told, write
from tests.support.program.command_line import history as listed
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    found = History(tmp_path / "history.db")
    yield found
    found.close()


def test_only_runs_that_were_given_up_after_the_submit_step_have_late_jobs(
    history: History,
) -> None:
    now = time.time()
    given_up = {"state": State.REFUSED, "submitted": now, "updated": now, "job_id": None}
    history.begin(a_run("late0.1-00000a", site="lumi", token="c0ffee", **given_up))
    history.begin(a_run("renamed-00000b", site="lumi", token="decade", **given_up))
    history.begin(a_run("unsent-00000c", site="lumi", **given_up | {"submitted": None}))
    history.begin(a_run("away-00000d", site="other", **given_up))
    history.begin(a_run("old-00000e", site="lumi", **given_up | {"updated": now - 90_000}))
    history.begin(a_run("ended-0000aa", site="lumi", state=State.CANCELLED, job_id="8"))
    history.begin(a_run("done-00000f", site="lumi", state=State.DONE, job_id="7", submitted=now))
    others = [
        "late0.1-00000a|", "batch|lumitui:decade", "unsent-00000c|", "away-00000d|", "done-00000f|",
        "old-00000e|", "ended-0000aa|", "a job of hers|not lumitui's",
    ]  # fmt: skip
    found = {run.id for run in late_runs(history, "lumi", others)}
    assert found == {"late0.1-00000a", "renamed-00000b", "old-00000e", "ended-0000aa"}
    assert late_runs(history, "lumi", ["another-00000a1|", "late-00000|"]) == []
    assert {run.id for run in recent_runs(history, "lumi")} == {"late0.1-00000a", "renamed-00000b"}


@pytest.mark.parametrize("ahead", [0.0, 259_200.0, -259_200.0, -3_600.0])
def test_a_submission_is_given_up_by_the_site_s_clock(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    """The laptop's clock was changed after the submit step: its reply never came."""
    now = int(time.time())
    for name, age in (("old-000001", 181), ("young-000002", 30)):
        folder = tmp_path / name
        lock = folder / "attempt-1.submit"
        lock.mkdir(parents=True)
        (lock / "shell").write_text(f"1 elsewhere {now - age}\n")
        lost = a_run(name, site="laptop", state=State.UNKNOWN, job_id=None, submitted=float(now))
        runs.history.begin(replace(lost, folder=str(folder)))
    true_time = time.time
    monkeypatch.setattr(time, "time", lambda: true_time() + ahead)
    runs.refresh("laptop")
    assert runs.history.get("old-000001").state is State.NOT_SENT
    assert runs.history.get("young-000002").state is State.UNKNOWN


HELD = """real=$1
shift
(sleep 2; exec "$real" --hold "$@") >/dev/null 2>&1 </dev/null &
echo 'sbatch: error: Batch job submission failed: Unspecified error' >&2
exit 1
"""


@pytest.mark.cluster
def test_status_cancels_the_job_that_appears_after_a_refusal(
    cluster: Cluster, home: Home, here: Here, path: Path
) -> None:
    home.add_cluster(cluster)
    write(path, CLUSTER)
    with accident(cluster, "sbatch", HELD):
        told(here("submit", str(path), "--yes"), 4, "The scheduler refused the job")
    (row,) = listed(home)

    def waits() -> bool:
        queue = cluster.admin("squeue", "-h", "-n", str(row["id"]), "-o", "%T")
        return queue.stdout.split() == ["PENDING"]

    wait_until(waits, 30, "the late job")
    done = here("status")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: not waits(), 30, "its end")
    assert listed(home)[0]["state"] == "refused"
