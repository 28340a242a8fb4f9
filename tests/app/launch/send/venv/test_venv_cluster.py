"""`venv:` on the mini cluster: built on the login node once, mounted into the job's container."""

import json
from pathlib import Path

import pytest

from lumitui.app.job.spec import JobSpec
from lumitui.app.runs import Runs
from lumitui.remote.site.errors import RefusedError
from lumitui.remote.site.states import State
from tests.support.jobs.small_jobs import finish, hello_job
from tests.support.servers.cluster import Cluster
from tests.support.files.wheels import make_wheel

SHOW = """\
import json, os, sys, tiny
from importlib.metadata import version
print(json.dumps({"tiny": tiny.VERSION, "at": tiny.__file__, "torch": version("torch"),
                  "python": sys.executable, "home": os.environ["PYTHONNOUSERSITE"]}))
"""


class Told:
    """What a send says."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def __call__(self, step: str, words: str) -> None:
        self.words.append(words)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a requirements file and the wheel that it names."""
    root = tmp_path / "test_venv"
    make_wheel(root / "wheels", "tiny", "1.2")
    (root / "requirements.txt").write_text("tiny==1.2 # ours\n")
    (root / "show.py").write_text(SHOW)
    return root


def job(**changes: object) -> JobSpec:
    venv = {"requirements": "requirements.txt", "wheels": "wheels"}
    return hello_job(script="show.py", gpus_per_node=1, venv=venv, preflight="off", **changes)


def test_the_second_run_builds_nothing(cluster: Cluster, cluster_runs: Runs, project: Path) -> None:
    cluster.login(f"rm -rf {cluster.scratch}/{cluster.user}/lumitui/venvs")
    said: list[list[str]] = []
    logs = []
    for _ in range(2):
        told = Told()
        preview = cluster_runs.preview(job(proof="off"), project)
        run = cluster_runs.send(preview, report=told)
        said.append(told.words)
        run = finish(cluster_runs, run)
        log = cluster_runs.read_log(run.id)[1].decode()
        assert run.state is State.DONE, log
        logs.append(json.loads(log[log.index("{") : log.rindex("}") + 1]))
    assert [sum(words.startswith("Installing collected") for words in told) for told in said] == [
        1,
        0,
    ]
    for shown in logs:
        assert shown["tiny"] == "1.2" and shown["torch"]
        assert shown["at"].startswith("/user-software/lib/")
        assert shown["python"] == "/user-software/bin/python"
    (found,) = cluster_runs.environments.venvs("minilumi").values()
    (venv,) = found
    assert venv.requirements == ("tiny==1.2",)
    assert venv.packages == {"tiny": "1.2"}


def test_a_failure_is_said_before_a_job_is_submitted(cluster_runs: Runs, project: Path) -> None:
    (project / "requirements.txt").write_text("tiny==3\n")
    with pytest.raises(RefusedError, match="No matching distribution found for tiny==3") as refused:
        cluster_runs.send(cluster_runs.preview(job(), project))
    assert "venv.log" in refused.value.hint
    (run,) = cluster_runs.history.page(limit=1)
    assert run.state is State.REFUSED
