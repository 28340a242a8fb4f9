"""A colleague's runs: read from folders that may hold anything, and nothing is changed there."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lumitui.app.follow.colleague import MOST_RUNS, OPENING
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.run_folders import RECORD_BYTES, read_newest
from lumitui.remote.site.errors import InputError
from lumitui.remote.transport.transport import Transport
from tests.support.jobs.small_jobs import finish, hello_job, hello_project
from tests.support.places import ROOT
from tests.support.program.command_line import Here, envelope
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

COLLEAGUE = "games"
"""A user whom each Debian has, and squeue knows."""
PROGRAM = """\
import json, os, sys
if os.environ["RANK"] == "0":
    with open(os.path.join(os.environ["RUN_DIR"], "metrics.jsonl"), "a") as file:
        for step in range(3000):
            file.write(json.dumps({"step": step, "loss": 1.0 / (step + 1)}) + "\\n")
raise KeyError("the colleague's mistake")
"""


def made(runs: Path, name: str) -> Path:
    folder = runs / name
    (folder / "attempt-1.submit").mkdir(parents=True)
    (folder / "lumitui.json").write_text("{}")
    return folder


def test_hostile_folders_neither_lead_away_nor_stop_the_reading(
    transport: Transport, tmp_path: Path
) -> None:
    work = tmp_path / "it's work"
    runs = work / "project" / "runs"
    made(runs, "good-000001")
    (made(runs, "linked-000002") / "metrics.jsonl").symlink_to("/etc/passwd")
    os.mkfifo(made(runs, "pipe-000003") / "attempt-1.receipt")
    with (made(runs, "huge-000004") / "lumitui.json").open("r+b") as file:
        file.truncate(1 << 40)
    made(runs, "line\nlumitui-0 end\n-000005")
    made(runs, "$(touch pwned)")
    outside = made(tmp_path / "elsewhere" / "runs", "outside-000006")
    (runs / "link-000007").symlink_to(outside)
    (work / "other").mkdir()
    (work / "other" / "runs").symlink_to(outside.parent)
    (work / "third").symlink_to(outside.parents[1])
    before = sorted(map(str, tmp_path.rglob("*")))

    found = read_newest(transport, [str(work), str(tmp_path / "gone")], "", 50)

    assert found.roots == (str(work),)
    by_name = {folder.path.rpartition("/")[2]: folder for folder in found.folders}
    assert set(by_name) == {"good-000001", "linked-000002", "pipe-000003", "huge-000004"}
    assert {name for name, folder in by_name.items() if folder.linked} == {"linked-000002"}
    assert len(by_name["huge-000004"].record or b"") == RECORD_BYTES
    assert by_name["good-000001"].path == f"{runs}/good-000001"
    assert sorted(map(str, tmp_path.rglob("*"))) == before
    newest = read_newest(transport, [str(work)], "", 2)
    assert len(newest.folders) == 2
    one = read_newest(transport, [str(work)], "good-000001", 50)
    assert [folder.path for folder in one.folders] == [f"{runs}/good-000001"]


def test_the_recipe_that_opens_a_run_works_and_leaves_secrets_closed(tmp_path: Path) -> None:
    theirs = tmp_path / "anna"
    run = made(theirs / "lumitui" / "project" / "runs", "vit-000001")
    (run / "attempt-1.claim").symlink_to("node:4711")
    for name in ("job.sh", "attempt-1.log", "secrets"):
        (run / name).write_text("x")
    for path in (theirs, *theirs.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o700 if path.is_dir() else 0o600)
    for line in OPENING:
        subprocess.run(["sh", "-c", line], cwd=run, check=True)
        assert f"    {line}\n" in (ROOT / "docs" / "laptops.md").read_text()
    for folder in (run, *run.parents[:3]):
        assert folder.stat().st_mode & 0o070 == 0o050
    assert theirs.stat().st_mode & 0o070 == 0o010, "its list stays hers"
    for name in ("lumitui.json", "job.sh", "attempt-1.log"):
        assert (run / name).stat().st_mode & 0o040
    assert not (run / "secrets").stat().st_mode & 0o077


@pytest.mark.parametrize("user", ["", "../root", "a b", "$(id)", "-x", "a/b", "a\n"])
def test_a_user_is_a_plain_name(runs: Runs, user: str) -> None:
    with pytest.raises(InputError, match="is not a user name"), runs.of_colleague(user, "lumi"):
        pass


def test_the_options_of_a_colleague_need_one(here: Here) -> None:
    assert "--site works only with --of" in here("show", "last", "--site", "lumi").stderr
    assert "Give --site SITE" in here("history", "--of", "anna").stderr
    assert "cannot be combined" in here("history", "--of", "anna", "--check").stderr
    assert "does not contain {user}" in here("history", "--of", "anna", "--site", "laptop").stderr


def snapshot(folder: Path) -> dict[str, tuple[int, int, int]]:
    paths = (folder, *folder.rglob("*"))
    return {
        str(path): (status.st_mtime_ns, status.st_size, status.st_mode)
        for path in paths
        if (status := path.lstat())
    }


def test_a_colleagues_run_on_the_mini_cluster_is_shown_and_nothing_is_kept(
    cluster_runs: Runs, cluster: Cluster, here: Here, home: Home, tmp_path: Path
) -> None:
    project = hello_project(tmp_path)
    (project / "hello.py").write_text(PROGRAM)
    sent = cluster_runs.send(cluster_runs.preview(hello_job(), project))
    run = finish(cluster_runs, sent)
    theirs = Path(cluster.scratch) / COLLEAGUE
    target = theirs / "lumitui" / "project-1" / "runs" / run.id
    try:
        shutil.copytree(run.folder, target, symlinks=True)
        closed = made(target.parent, "closed-000001")
        record = json.loads((target / "lumitui.json").read_text())
        foreign = made(target.parent, "foreign-000002")
        (foreign / "lumitui.json").write_text(json.dumps(record | {"id": "another"}))
        for path in (theirs, *theirs.rglob("*")):
            if not path.is_symlink():  # the claim leads nowhere
                shutil.chown(path, COLLEAGUE, cluster.account)
                path.chmod(0o750 if path.is_dir() else 0o640)
        closed.chmod(0o700)
        before = snapshot(theirs)
        for path in home.data.glob("history.db*"):
            path.unlink()  # it is their run alone

        # Slurm tells a user of another's job, too.
        told = subprocess.run(
            [shutil.which("runuser") or "", "-u", COLLEAGUE, "--", f"{cluster.programs}/sacct",
             "-nPXD", "-j", run.job_id or "", "-o", "State"],
            env={"SLURM_CONF": f"{cluster.root}/etc/slurm.conf"}, capture_output=True, text=True,
        )  # fmt: skip
        assert told.stdout == "FAILED\n", told.stderr
        listed = here("history", "--of", COLLEAGUE, "--site", "minilumi", "--account",
                      cluster.account)  # fmt: skip
        assert listed.returncode == 0, listed.stderr
        assert run.id in listed.stdout and "failed" in listed.stdout
        assert "closed-000001: you cannot read it. games can open it with: cd /" in listed.stderr
        assert "foreign-000002: its record cannot be read" in listed.stderr
        words = ("--of", COLLEAGUE, "--site", "minilumi", "--account", cluster.account)
        shown = here("show", run.id, *words, "--json")
        page = envelope(shown)["data"]
        assert page["run"]["state"] == "failed" and page["run"]["billed"] > 0
        # A part of a node: which cores it gets is not planned.
        assert page["proof"]["sentence"].startswith("2 ranks reported")
        assert page["metrics"]["steps"] == 3000
        assert "2 ranks reported" in here("show", run.id, *words).stdout
        why = here("why", run.id, *words)
        assert "the colleague's mistake" in why.stdout and "Do: lumitui" not in why.stdout
        absent = here("show", "absent-1", *words)
        assert absent.returncode == 2 and "games has no readable run absent-1" in absent.stderr

        runs = Runs(home.settings)
        with runs, runs.of_colleague(COLLEAGUE, "minilumi", account=cluster.account) as (_, found):
            assert [one.id for one in found.runs] == [run.id]
            assert runs.footprint("minilumi").requests == 2 and MOST_RUNS == 50
            assert runs.history.count() == 0
        assert snapshot(theirs) == before
    finally:
        shutil.rmtree(theirs, ignore_errors=True)
