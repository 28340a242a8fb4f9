"""From a host name to a run that is proved on two nodes, on a cluster without a profile."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lumitui.app.history.run import NODE_PROBE
from lumitui.app.runs import Runs
from lumitui.remote.site.states import State
from tests.support.program.command_line import envelope, lt
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster, running_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(scope="module")
def unknown() -> Iterator[Cluster]:
    """The cluster that no profile describes."""
    with running_cluster("unknown") as found:
        yield found


def done(home: Home, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a step of the person's, which must end well."""
    found = lt(home, *words)
    assert found.returncode == 0, found.stdout + found.stderr
    return found


def test_a_person_proves_a_run_on_two_nodes_of_a_cluster_that_nobody_described(
    home: Home, unknown: Cluster, tmp_path: Path
) -> None:
    config = str(unknown.ssh_config)
    # 1. The profile, from the host's name. One login, one command there.
    unknown.clear_calls()
    done(home, "site", "add", "breeze", "--host", "minilumi", "--ssh-config", config)
    asked = unknown.sessions()
    assert (asked.logins, asked.commands + asked.shells) == (1, 1)
    assert {call.command for call in unknown.calls()} <= {"sbatch", "sinfo", "scontrol", "sacctmgr"}
    profile = home.config / "sites" / "breeze.yaml"
    profile.write_text(profile.read_text() + "poll_seconds: 1  # a cluster of my own\n")
    # It is never overwritten.
    again = lt(home, "site", "add", "breeze", "--host", "minilumi", "--ssh-config", config)
    assert (again.returncode, "already" in again.stderr) == (2, True)
    # 2. One node of it, measured by a job like any other. Without a yes nothing is sent.
    refused = lt(home, "site", "check", "breeze", "--probe")
    assert (refused.returncode, "Cannot ask for confirmation" in refused.stderr) == (2, True)
    found = envelope(done(home, "site", "check", "breeze", "--probe", "--write", "--yes", "--json"))
    changes = found["data"]["changes"]
    assert "poll_seconds: 1  # a cluster of my own" in profile.read_text()
    truth = ["13-23", "1-11", "37-47", "25-35"]
    assert changes["node.gpu_cores"] == truth
    # What it read can be read again, and nothing is left to change.
    run = found["data"]["run"]
    later = envelope(done(home, "site", "check", "breeze", "--probe", "--run", run, "--json"))
    assert later["data"]["diff"] == ""
    done(home, "site", "check", "breeze")
    # 3. A job file for two nodes. 4. Send it.
    script = tmp_path / "hello.sh"
    script.write_text('#!/bin/sh\necho "rank $RANK of $SLURM_NTASKS"\n')
    script.chmod(0o755)
    job = tmp_path / "job.yaml"
    words = ("--site", "breeze", "--script", script.name, "--output", str(job))
    done(home, "new", *words)
    text = job.read_text()
    spec = yaml.safe_load(text)
    assert (spec["partition"], spec["account"]) == ("whole", "ag-lehre42")
    spec |= {"nodes": 2, "time": "00:05:00", "launcher": "srun"}
    job.write_text(yaml.safe_dump(spec))
    done(home, "submit", str(job), "--yes", "--wait")
    runs = Runs(home.settings)
    try:
        last, probe = runs.history.page(limit=2)
        assert probe.name == NODE_PROBE and probe.state is State.DONE
        verdict = runs.proof(runs.history.get(last.id))
        assert verdict.kind == "proved", verdict
        assert runs.history.get(last.id).layout.planned_cores == tuple(truth)
        assert last.layout.world_size == 8
    finally:
        runs.close()
