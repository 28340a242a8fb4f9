"""`lumitui fetch` where some files cannot come: they are named, the others come, the code is 4."""

import os
from pathlib import Path

from lumitui.app.runs import Runs
from tests.support.jobs.small_jobs import finish, hello_job, hello_project
from tests.support.program.command_line import envelope, lt
from tests.support.program.home import Home


def test_files_that_cannot_come_are_named_and_the_others_come(
    runs: Runs, home: Home, tmp_path: Path
) -> None:
    job = hello_job(site="laptop", partition="local", account="none", gpus_per_node=1)
    run = finish(runs, runs.send(runs.preview(job, hello_project(tmp_path / "project"))))
    there, here = Path(run.folder) / "results", tmp_path / "here"
    long = "n" * 245
    for name in (long, "a/b", "out/c", "good/d", "wanted"):
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_text(name)
    (there / os.fsdecode(b"caf\xe9")).write_text("not UTF-8")
    with (there / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    (here / "results").mkdir(parents=True)
    (here / "results" / "a").write_text("a file where a folder is wanted")
    (here / "results" / "wanted").mkdir()
    (tmp_path / "outside").mkdir()
    (here / "results" / "out").symlink_to(tmp_path / "outside")

    done = lt(home, "fetch", run.id, "results", "--to", str(here))
    assert done.returncode == 4, done.stderr
    assert "2 files in" in done.stderr and "Traceback" not in done.stderr
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    for words in (
        "results/a/b (results/a is not a folder here)",
        "results/out/c (results/out is a link here that leads out of",
        "results/wanted (a folder of that name is here)",
        "results/sparse (it has 1,099.5 GB, but this disk has room for",
        "(its name is not UTF-8)",
    ):
        assert words in error
    assert (here / "results" / long).read_text() == long
    assert (here / "results" / "good" / "d").read_text() == "good/d"
    assert os.listdir(tmp_path / "outside") == []
    assert not (here / ".lumitui-fetch").exists()

    done = lt(home, "fetch", run.id, "results/good", "--to", str(tmp_path / "whole"), "--json")
    assert done.returncode == 0, done.stderr
    assert [item["name"] for item in envelope(done)["data"]["files"]] == ["results/good/d"]
