"""`venv:` where the site wants it built in the job: on this machine, through a whole run."""

from pathlib import Path

import pytest

from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.states import State
from tests.support.jobs.small_jobs import finish
from tests.support.files.wheels import make_wheel

JOB = """\
name: venv
site: laptop
partition: local
gpus_per_node: 1
time: "00:05:00"
launcher: plain
script: show.sh
proof: "off"
venv: {requirements: r.txt, wheels: wheels}
"""


def test_the_job_builds_what_it_lacks(runs: Runs, tmp_path: Path) -> None:
    make_wheel(tmp_path / "wheels", "tiny", "1.2")
    (tmp_path / "r.txt").write_text("tiny\n")
    script = tmp_path / "show.sh"
    script.write_text('#!/bin/sh\n"$(command -v tiny)" && command -v python && echo "$VENV"\n')
    script.chmod(0o755)
    preview = runs.preview(parse_job(JOB, "job"), tmp_path)
    run = finish(runs, runs.send(preview))
    log = runs.read_log(run.id)[1].decode()
    assert run.state is State.DONE, log
    assert "Successfully installed tiny-1.2" in log
    version, python, venv = log.splitlines()[-3:]
    assert (version, python) == ("1.2", f"{venv}/bin/python")
    # The record is complete: a resubmission needs no file of the project.
    (tmp_path / "r.txt").unlink()
    again = runs.plan_resubmission(run.id)
    assert again.preview.launch.script == run.script
    # Another environment than the run's is read anew, the run's own is not.
    (tmp_path / "more.txt").write_text("einops\ntqdm\n")
    other = ["venv=more.txt"]
    planned = runs.plan_resubmission(run.id, settings=other, code="current")
    new = planned.preview.launch.spec.venv
    assert new and new.lines == ("einops", "tqdm")
    with pytest.raises(InputError, match="--code current"):
        runs.plan_resubmission(run.id, settings=other)
