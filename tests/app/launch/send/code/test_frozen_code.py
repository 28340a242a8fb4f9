"""Frozen code on the cluster: what a run writes, what is edited later, what is purged."""

import hashlib
import os
import secrets
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.history.run import Run
from lumitui.app.launch.send import submit
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import RefusedError
from lumitui.remote.transfer.contents.content_upload import Shipped
from lumitui.remote.transfer.snapshots import snapshot_store
from tests.support.jobs.small_jobs import finish, hello_job, wait_until
from tests.support.servers.cluster import Cluster

# Prints what it is and what lies beside it, then ruins every file of its run that it can reach.
SPOILS = """\
import hashlib, os, sys
here = os.path.dirname(os.path.abspath(__file__))
names = ["spoils.py", "pkg/a.py"]
print("I am", [hashlib.sha256(open(os.path.join(here, name), "rb").read()).hexdigest()
               for name in names], flush=True)
for top in (here, os.environ["RUN_DIR"] + "/code"):
    for at, folders, files in os.walk(top):
        os.chmod(at, 0o700)
        for name in files:
            os.chmod(os.path.join(at, name), 0o600)
            open(os.path.join(at, name), "w").write("ruined\\n")
        open(os.path.join(at, "more"), "w").write("more\\n")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / f"frozen-{secrets.token_hex(4)}"
    (root / "pkg").mkdir(parents=True)
    (root / "spoils.py").write_text(SPOILS)
    (root / "pkg" / "a.py").write_text("a = 1\n")
    return root


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Shipped]:
    """What each send had to send."""
    seen: list[Shipped] = []
    plain = snapshot_store.sync

    def counted(*words: Any) -> Shipped:
        seen.append(plain(*words))
        return seen[-1]

    monkeypatch.setattr(submit, "sync", counted)
    return seen


def identity(root: Path) -> str:
    """What `spoils.py` prints of the files as they are in `root`."""
    names = ("spoils.py", "pkg/a.py")
    return f"I am {[hashlib.sha256((root / name).read_bytes()).hexdigest() for name in names]}"


def said(runs: Runs, run: Run) -> str:
    log = runs.read_log(run.id)[1].decode()
    assert run.state is State.DONE, log
    return log


def test_a_queued_run_is_touched_by_no_other_and_by_no_edit(
    cluster_runs: Runs, cluster: Cluster, project: Path, sent: list[Shipped]
) -> None:
    runs, first = cluster_runs, identity(project)
    job = hello_job(script="spoils.py", gpus_per_node=1)
    held = hello_job(script="spoils.py", gpus_per_node=1, sbatch=["--hold"])
    behind = runs.send(runs.preview(held, project))
    spoiling = finish(runs, runs.send(runs.preview(job, project)))
    assert first in said(runs, spoiling) and spoiling.snapshot == behind.snapshot
    # Edited on the laptop, and sent as another run, while the other one waits.
    (project / "pkg" / "a.py").write_text("a = 2\n")
    edited = finish(runs, runs.send(runs.preview(job, project)))
    assert identity(project) in said(runs, edited) and first not in said(runs, edited)
    # The snapshot is whole: the same code again sends nothing.
    (project / "pkg" / "a.py").write_text("a = 1\n")
    again = finish(runs, runs.send(runs.preview(job, project)))
    assert first in said(runs, again)
    assert [item.files_sent for item in sent] == [2, 0, 1, 0]
    assert cluster.admin("scontrol", "release", str(behind.job_id)).returncode == 0
    assert first in said(runs, finish(runs, behind))
    same = runs.resubmit(runs.plan_resubmission(spoiling.id))
    assert first in said(runs, finish(runs, same))


def test_a_pruned_run_is_resubmitted_from_its_own_copy(
    cluster_runs: Runs, cluster: Cluster, project: Path
) -> None:
    runs, first = cluster_runs, identity(project)
    job = hello_job(script="spoils.py", gpus_per_node=1, sbatch=["--hold"])
    held = runs.send(runs.preview(job, project))
    at = f"{held.root}/code/{held.snapshot}"
    assert cluster.login(f"chmod -R u+w {at}; rm -rf {at} {at}.sums").returncode == 0
    plan = runs.plan_resubmission(held.id, settings=["sbatch=[]"])
    assert first in said(runs, finish(runs, runs.resubmit(plan)))
    assert held.job_id and cluster.admin("scancel", held.job_id).returncode == 0
    wait_until(lambda: not [runs.refresh() for _ in runs.history.unfinished()])


@pytest.mark.parametrize(
    ("harm", "words", "files"),
    [
        ("chmod -R u+w {at}; rm -rf {at} {at}.sums {list}", "no longer on the site", 2),
        ("chmod u+w {at}/pkg; rm -f {at}/pkg/a.py", "no longer complete", 0),
        ("chmod u+w {at}/pkg/a.py; printf 'a = 9\\n' >{at}/pkg/a.py", "no longer complete", 1),
        ("chmod u+w {at}; echo more >{at}/more.py", "no longer complete", 0),
    ],
    ids=["purged", "partly", "changed", "added"],
)
def test_a_purged_snapshot_is_reported_at_a_resubmission_and_sent_again(
    cluster_runs: Runs,
    cluster: Cluster,
    project: Path,
    sent: list[Shipped],
    harm: str,
    words: str,
    files: int,
) -> None:
    runs = cluster_runs
    job = hello_job(script="spoils.py", gpus_per_node=1, sbatch=["--hold"])
    run = runs.send(runs.preview(job, project))
    assert run.snapshot and sent[0].files_sent == 2
    at = f"{run.root}/code/{run.snapshot}"
    harmed = harm.format(at=at, list=f"{run.folder}/.code.sums.*")
    assert cluster.login(harmed).returncode == 0
    with pytest.raises(RefusedError, match=words) as refused:
        runs.resubmit(runs.plan_resubmission(run.id))
    assert "--code current" in refused.value.hint
    left = runs.history.page(1)[0]
    if "longer complete" in words:  # only the copy of the code shows that
        assert left.state is State.REFUSED and not os.path.exists(left.folder)
    else:
        assert left.id == run.id, "a run that could not be sent is in the history"
    mended = runs.resubmit(runs.plan_resubmission(run.id, code="current"))
    assert mended.snapshot == run.snapshot
    assert [item.files_sent for item in sent[1:]] == [files]
    for each in (run, mended):
        assert each.job_id and cluster.admin("scancel", each.job_id).returncode == 0
    wait_until(lambda: not [runs.refresh() for _ in runs.history.unfinished()])
