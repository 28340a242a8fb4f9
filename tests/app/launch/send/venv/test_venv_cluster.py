"""`venv:` on the mini cluster: built on the login node once, mounted into the job's container."""

import hashlib
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
    keys = {"script": "show.py", "gpus_per_node": 1, "venv": venv, "preflight": "off"}
    return hello_job(**keys | changes)


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


LOCK = """\
version = 1
requires-python = ">=3.9"

[[package]]
name = "demo"
version = "0.1"
source = { virtual = "." }
dependencies = [{ name = "tiny" }, { name = "torch" }]

[[package]]
name = "tiny"
version = "1.2"
source = { registry = "https://index.example/simple" }
wheels = [{ url = "https://files.example/tiny-1.2-py3-none-any.whl", hash = "sha256:HASH" }]

[[package]]
name = "torch"
version = "99.0"
source = { registry = "https://index.example/simple" }
"""


def test_a_lock_is_installed_by_its_hashes_beside_the_images_torch(
    cluster_runs: Runs, project: Path
) -> None:
    (wheel,) = (project / "wheels").glob("*.whl")
    lock = LOCK.replace("HASH", hashlib.sha256(wheel.read_bytes()).hexdigest())
    (project / "uv.lock").write_text(lock)
    venv = {"requirements": "uv.lock", "wheels": "wheels"}
    run = cluster_runs.send(cluster_runs.preview(job(venv=venv, proof="off"), project))
    run = finish(cluster_runs, run)
    log = cluster_runs.read_log(run.id)[1].decode()
    assert run.state is State.DONE, log
    shown = json.loads(log[log.index("{") : log.rindex("}") + 1])
    assert shown["tiny"] == "1.2" and shown["torch"] != "99.0"
    (project / "uv.lock").write_text(LOCK.replace("HASH", "0" * 64))
    with pytest.raises(RefusedError, match="(?i)hash"):
        cluster_runs.send(cluster_runs.preview(job(venv=venv, proof="off"), project))


def test_a_failure_is_said_before_a_job_is_submitted(cluster_runs: Runs, project: Path) -> None:
    (project / "requirements.txt").write_text("tiny==3\n")
    with pytest.raises(RefusedError, match="No matching distribution found for tiny==3") as refused:
        cluster_runs.send(cluster_runs.preview(job(), project))
    assert "venv.log" in refused.value.hint
    (run,) = cluster_runs.history.page(limit=1)
    assert run.state is State.REFUSED
