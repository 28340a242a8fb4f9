"""A history that is gone, rebuilt from the runs' folders, on this machine and on the cluster."""

import os
import re
import shutil
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.follow import recover
from lumitui.app.history.history import History
from lumitui.app.history.rows.run_record import record_text
from lumitui.app.runs import Runs
from lumitui.remote.scheduler import run_files, run_folders
from lumitui.remote.scheduler.run_folders import RunFolder
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Transport
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import finish, hello_job
from tests.support.program.command_line import HELLO, Here, envelope, runs_of
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster
from tests.support.servers.transports import FixedAnswer

METRICS = """\
import json, os, sys
path = os.path.join(os.environ["RUN_DIR"], "metrics.jsonl")
if os.environ["RANK"] == "0":
    with open(path, "a") as file:
        for step in range(3000):
            file.write(json.dumps({"step": step, "loss": 1.0 / (step + 1)}) + "\\n")
sys.exit(7 if os.environ.get("FAIL_RANK") == os.environ["RANK"] else 0)
"""
"""More metrics than one poll of a site brings (64 KiB)."""

# What is not in the folder, or is a time of the laptop's clock.
APART = ("updated", "note", "submitted")


def facts(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        row["id"]: {key: value for key, value in row.items() if key not in APART} for row in rows
    }


def lose(home: Home) -> None:
    for path in home.data.glob("history.db*"):
        path.unlink()


# -- what is asked, and what is made of the answer


def test_folders_are_listed_and_read(transport: Transport, tmp_path: Path) -> None:
    work = tmp_path / "work"
    made = work / "project" / "runs" / "good-000001"
    made.mkdir(parents=True)
    (made / "lumitui.json").write_bytes(b"{\xff}\nno line end")
    (made / "attempt-1.submit").mkdir()
    (made / "attempt-1.receipt").write_text("42\n")
    claimed = work / "project" / "runs" / "claimed-000002"
    claimed.mkdir()
    (claimed / "job.sh").write_text("")
    (claimed / "attempt-1.claim").symlink_to("43")
    (claimed / "attempt-1.receipt").write_text("$(reboot)")
    trap = work / "a.b" / "runs" / "trap-000003"
    trap.mkdir(parents=True)
    os.mkfifo(trap / "lumitui.json")
    os.mkfifo(trap / "attempt-1.receipt")
    (trap / "attempt-1.claim").symlink_to("void")
    (work / "project" / "runs" / "link-000004").symlink_to(made)
    (work / "project" / "runs" / "line\n." / "x").mkdir(parents=True)
    (work / "project" / "runs" / "file").write_text("")
    (work / "project" / "runs" / "two words").mkdir()

    paths = run_folders.list_folders(transport, str(work))
    assert paths is not None
    assert set(paths) == {str(made), str(claimed), str(trap), f"{work}/project/runs/line"}
    paths = [str(made), str(claimed), str(trap), f"{work}/project/runs/line"]
    found = run_folders.read_folders(transport, paths)
    assert all(folder.age is not None and -60 < folder.age < 600 for folder in found)
    assert [replace(folder, age=None) for folder in found] == [
        RunFolder(str(made), b"{\xff}\nno line end", locked=True, job_id="42", age=None),
        RunFolder(str(claimed), None, locked=False, job_id="43", age=None),
        RunFolder(str(trap), None, locked=False, job_id=None, age=None),
    ]


def test_a_work_root_that_is_not_there_or_empty(transport: Transport, tmp_path: Path) -> None:
    for work, expected in ((tmp_path / "no", None), (tmp_path, [])):
        assert run_folders.list_folders(transport, str(work)) == expected


def test_accounts_are_the_listed_names_that_fit() -> None:
    text = "project_462000001|\nproject_465000002|\nroot|\nusers\nproject_462000001\n\n"
    found = run_folders.parse_accounts(text, r"^project_46[25]\d{6}$")
    assert found == ["project_462000001", "project_465000002"]


# -- on this machine


def test_lost_runs_come_back_as_they_were(here: Here, job: Path, home: Home) -> None:
    (job.parent / "hello.py").write_text(METRICS)
    assert here("submit", str(job), "--yes", "--wait").returncode == 0
    done = here("resubmit", "last", "--set", "args=[two]", "--yes")
    assert done.returncode == 0, done.stderr
    assert here("logs", "-f", "last").returncode == 0
    job.write_text(HELLO.replace("name: hello", "name: broken") + 'env: {FAIL_RANK: "0"}\n')
    assert here("submit", str(job), "--yes", "--wait").returncode == 5
    three = facts(runs_of(here))
    assert sorted(row["state"] for row in three.values()) == ["done", "done", "failed"]
    assert {row["parent"] for row in three.values()} & set(three)

    lose(home)
    assert runs_of(here) == []
    answer = envelope(here("history", "--recover", "laptop", "--json"))["data"]
    assert answer["passed_over"] == answer["warnings"] == []
    assert facts(answer["rebuilt"]) == facts(runs_of(here)) == three
    core = Runs(home.settings)
    for run_id in three:
        assert [point.step for point in core.history.metrics.of(run_id)] == list(range(3000))

    # Not by the poll that comes next: of very many runs at once it brings too much.
    with core.history._file.transaction() as db:
        db.execute("DELETE FROM runs")
    site = core.sites.load("laptop")
    connection, told = core._connections.get(site), list[str]()
    before_a_poll = recover.rebuild(connection, site, "", core.history, told.append).rebuilt
    assert {run.state for run in before_a_poll} == {State.UNKNOWN}
    assert [len(core.history.metrics.of(run.id)) for run in before_a_poll] == [3000] * 3
    core.refresh()

    # A run that is known is never overwritten, whatever its folder says now.
    kept, *lost = three
    core.history.update(kept, note="mine", reason="as it was")
    with core.history._file.transaction() as db:
        db.execute("DELETE FROM runs WHERE id != ?", (kept,))
    core.close()
    (Path(three[kept]["folder"]) / "lumitui.json").write_text("no longer a record")
    answer = envelope(here("history", "--recover", "laptop", "--json"))["data"]
    assert {row["id"] for row in answer["rebuilt"]} == set(lost)
    assert answer["known"] == 1
    found = {row["id"]: row for row in runs_of(here)}
    assert (found[kept]["note"], found[kept]["reason"]) == ("mine", "as it was")


def test_texts_that_the_disk_has_lost_come_back(here: Here, job: Path, home: Home) -> None:
    assert here("submit", str(job), "--yes", "--wait").returncode == 0
    (before,) = runs_of(here)
    core = Runs(home.settings)
    whole = core.history.get("last")
    with core.history._file.transaction() as db:
        db.execute("UPDATE blobs SET packed = x'00' WHERE kind IN ('spec', 'script', 'layout')")
    core.close()
    assert runs_of(here) == []
    answer = envelope(here("history", "--recover", "laptop", "--json"))["data"]
    assert [row["id"] for row in answer["rebuilt"]] == [before["id"]]
    assert runs_of(here) == [before]
    assert here("history", "--check").stdout.endswith("sound\n")
    core = Runs(home.settings)
    assert core.history.get("last") == whole
    core.close()
    answer = envelope(here("history", "--recover", "laptop", "--json"))["data"]
    assert (answer["rebuilt"], answer["known"]) == ([], 1)


@pytest.fixture
def folders(home: Home) -> Path:
    """The folder of a project's runs at the embedded site."""
    path = home.data.parent / ".local/share/lumitui/site/project/runs"
    path.mkdir(parents=True)
    return path


def write_record(folder: Path, **changes: object) -> Path:
    folder.mkdir()
    run = a_run(folder.name, site="laptop", **changes)
    (folder / "lumitui.json").write_text(record_text(run))
    return folder


def test_folders_without_a_run_are_named(folders: Path, here: Here) -> None:
    old = folders / "old-000001"
    old.mkdir()
    (old / "job.sh").touch()
    (old / "attempt-1.receipt").write_text("4711\n")
    (folders / "empty-000002").mkdir()
    broken = write_record(folders / "broken-000003") / "lumitui.json"
    broken.write_bytes(broken.read_bytes()[:-20])
    huge = write_record(folders / "huge-000004") / "lumitui.json"
    huge.write_bytes(b" " * 1_000_000 + huge.read_bytes())
    write_record(folders / "moved-000005").rename(folders / "other-000005")
    write_record(folders / "lumi-000006", created=5.0)
    away = folders / "lumi-000006" / "lumitui.json"
    away.write_text(away.read_text().replace('"site": "laptop"', '"site": "lumi"'))
    done = here("history", "--recover", "laptop")
    assert (done.returncode, done.stdout) == (0, "")
    for words in (
        "old-000001: it has no record of a run; its job was 4711",
        "empty-000002: it has no record of a run",
        "broken-000003: its record cannot be read: not JSON",
        "huge-000004: its record has more than 1000000 bytes",
        "other-000005: its record cannot be read: it is the record of 'moved-000005'",
        "lumi-000006: its site is 'lumi': `lumitui history --recover lumi`",
        "Rebuilt 0 runs at laptop; 0 were already in the history, 6 were skipped.",
    ):
        assert words in done.stderr


def test_a_run_that_was_never_submitted_is_settled(folders: Path, here: Here) -> None:
    """Its folder was made, and then the laptop died: no job can come of it any more."""
    # The laptop that made them was three days ahead: the site's clock alone counts.
    ahead = time.time() + 260_000
    young = write_record(folders / "young-000001", created=ahead)
    old = write_record(folders / "old-000002", created=ahead)
    copied = write_record(folders / "copied-000003", created=ahead, resumed_from="old-000002")
    for folder in (old, copied):
        os.utime(folder, (time.time() - 1000,) * 2)
    answer = envelope(here("history", "--recover", "laptop", "--json"))["data"]
    assert {item["folder"]: item["why"] for item in answer["passed_over"]} == {
        str(young): "lumitui may still be sending it; try again in 5 min",
        str(copied): "lumitui may still be sending it; try again in 1 h 00 min",
    }
    (row,) = answer["rebuilt"]
    assert (row["id"], row["state"]) == (old.name, State.NOT_SENT)
    assert not (young / "attempt-1.submit").exists()


def test_a_job_that_was_refused_is_refused_again(folders: Path, here: Here) -> None:
    folder = write_record(folders / "refused-000001", created=time.time()) / "attempt-1.submit"
    folder.mkdir()
    (folder / "rc").write_text("1\n")
    (folder / "out").touch()
    (folder / "err").write_text("sbatch: error: Invalid account\n")
    (row,) = envelope(here("history", "--recover", "laptop", "--json"))["data"]["rebuilt"]
    assert (row["state"], row["reason"]) == ("refused", "sbatch: error: Invalid account")


def test_a_job_that_nobody_knows_ends_as_its_exit_file_says(folders: Path, here: Here) -> None:
    folder = write_record(folders / "gone-000001")
    (folder / "attempt-1.submit").mkdir()
    (folder / "attempt-1.receipt").write_text("999999\n")
    text = '{"rc": 3, "rank": 1, "job": "999999", "restart": 0, "ended": 2000}'
    (folder / "attempt-1.exit").write_text(text)
    answer = envelope(here("history", "--recover", "laptop", "--json"))["data"]
    (row,) = answer["rebuilt"]
    assert (row["state"], row["rc"], row["failed_rank"]) == ("failed", 3, 1)
    assert (row["job_id"], row["ended"]) == ("999999", 2000)


def test_a_long_recovery_reports_how_far_it_is(
    folders: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folders, "PAGE", 2)
    for number in range(3):
        folder = write_record(folders / f"gone-{number:06d}")
        (folder / "attempt-1.submit").mkdir()
        (folder / "attempt-1.receipt").write_text("999999\n")
    told: list[str] = []
    assert len(runs.recover("laptop", report=told.append).rebuilt) == 3
    work = folders.parents[1]
    assert told == [
        f"reading run folders: 0 of 3 in {work}",
        f"reading run folders: 2 of 3 in {work}",
        "rebuilt 3 runs, querying their states",
    ]


def test_what_stays_unknown_is_said_with_what_may_settle_it(folders: Path, here: Here) -> None:
    folder = write_record(folders / "gone-000001")
    (folder / "attempt-1.submit").mkdir()
    (folder / "attempt-1.receipt").write_text("999999\n")
    done = here("history", "--recover", "laptop")
    assert "The state of 1 run is unknown. `lumitui status` queries Slurm again;" in done.stderr
    assert "reading run folders" not in done.stderr, "progress is for a terminal"


def test_recover_says_what_it_needs(here: Here) -> None:
    done = here("history", "--account", "project_462000001")
    assert done.returncode == 2 and "--recover SITE" in done.stderr
    assert here("history", "--recover", "nowhere").returncode == 2
    done = here("history", "--recover", "laptop")
    assert done.returncode == 0
    assert "warning: There is no readable folder" in done.stderr


# -- on the cluster


def test_runs_of_the_cluster_come_back_and_go_on(
    home: Home, cluster: Cluster, here: Here, job: Path
) -> None:
    home.add_cluster(cluster)
    # A work root of its own: everything in it is searched.
    work = Path(cluster.scratch) / cluster.user / f"recover-{os.getpid()}"
    with (home.config / "sites" / "minilumi.yaml").open("a") as profile:
        profile.write(f"\nwork_root: /scratch/{{account}}/{{user}}/{work.name}\n")
    folder = job.parent
    (folder / "hello.py").write_text(METRICS)
    core = Runs(home.settings)
    first = core.send(core.preview(hello_job(), folder))
    failing = hello_job(name="broken-lr0.001.", env={"FAIL_RANK": "1"})
    broken = core.send(core.preview(failing, folder))
    assert re.fullmatch(r"broken-lr0\.001-[0-9a-f]{6}", broken.id), "as readable as its name"
    first = finish(core, first)
    plan = core.plan_resubmission(first.id, nodes=2)
    second = finish(core, core.resubmit(plan))
    broken = finish(core, broken)
    assert [run.state for run in (first, second, broken)] == ["done", "done", "failed"]
    assert second.layout.nodes == 2
    before = [core.history.get(run.id) for run in (first, second, broken)]
    core.close()
    rows = facts(runs_of(here))

    history = home.data / "history.db"
    history.write_bytes(b"\0" * history.stat().st_size)
    cluster.clear_calls()
    done = here("history", "--recover", "minilumi", "--json")
    assert done.returncode == 0, done.stderr
    assert "damaged" in done.stderr
    found = facts(envelope(done)["data"]["rebuilt"])
    assert {key: found[key] for key in rows} == rows
    # The names of accounts, one query of the queue, and accounting for what it has forgotten.
    assert Counter(call.command for call in cluster.calls()) <= Counter(
        {"sacctmgr": 1, "squeue": 1, "sacct": 1}
    )

    core = Runs(home.settings)
    for run in before:
        again = core.history.get(run.id)
        assert (again.script, again.token, again.spec) == (run.script, run.token, run.spec)
        assert (again.binding, again.log_sizes) == (run.binding, run.log_sizes)
        assert (again.started, again.ended, again.rc) == (run.started, run.ended, run.rc)
        assert len(core.history.metrics.of(run.id)) == 3000
    assert [run.id for run in core.history.lineage(first.id)] == [first.id, second.id]
    # It is a run like any other: its code is still there.
    third = core.resubmit(core.plan_resubmission(second.id, nodes=1))
    assert (third.parent, third.snapshot) == (second.id, first.snapshot)
    assert finish(core, third).state is State.DONE
    core.close()
    shutil.rmtree(work)


def test_a_long_line_of_metrics_is_passed_over(tmp_path: Path) -> None:
    run = a_run("r1", folder=str(tmp_path), job_id="7")
    long = b'{"step": 2, "x": "' + b"x" * 20_000_000 + b'"}\n'
    (tmp_path / "metrics.jsonl").write_bytes(b'{"step": 1}\n' + long + b'{"step": 3}\n')
    history = History(tmp_path / "history.db")
    history.begin(run)
    recover.fetch_metrics(Local(), [run], history)
    assert [point.step for point in history.metrics.of("r1")] == [1, 3]
    assert history.get("r1").metrics_offset == (tmp_path / "metrics.jsonl").stat().st_size
    history.close()


def test_metrics_without_end_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recover, "MOST_ROUNDS", 3)
    monkeypatch.setattr(run_files, "METRICS_BYTES", 100)
    monkeypatch.setattr(run_files, "REST_BYTES", 100)
    run = a_run("r1", folder="/f", job_id="7")
    history = History(tmp_path / "history.db")
    history.begin(run)
    endless = b"MARKER metrics 0 0\n" + b'{"step": 1}\n' * 100 + b"\nMARKER end\n"
    recover.fetch_metrics(FixedAnswer(endless), [run], history)
    assert 0 < history.get("r1").metrics_offset < 1000
    history.close()
