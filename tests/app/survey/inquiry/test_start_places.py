"""`lumitui where`: the partitions that take a job, with Slurm's estimate of the start."""

import json
from pathlib import Path

import pytest

from lumitui.app.job.spec import JobSpec
from lumitui.app.runs import Preview, Runs, Site
from lumitui.app.survey.inquiry.start_places import start_places
from lumitui.remote.connect import Connection
from lumitui.remote.site.errors import LinkLost
from tests.support.jobs.sites.lumi_job import LUMI
from tests.support.program.command_line import CLUSTER, LAPTOP, Here, envelope, lt, told, write
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster


@pytest.mark.cluster
def test_slurm_says_where_a_job_would_start_and_nothing_is_submitted(
    cluster: Cluster, home: Home, tmp_path: Path
) -> None:
    home.add_cluster(cluster)
    ranks = {"strategy": "ddp", "launcher": "srun"}
    path = str(write(tmp_path / "job.yaml", CLUSTER | ranks))
    jobs = cluster.admin("squeue", "-h", "-a", "-o", "%A").stdout
    done = lt(home, "where", path, "--nodes", "1,2", "--json")
    assert done.returncode == 0, done.stderr
    places = envelope(done)["data"]
    open_places = [place for place in places if not place["refusal"]]
    assert {(row["partition"], row["nodes"]) for row in open_places} >= {
        ("small-g", 1), ("standard-g", 1), ("standard-g", 2),
    }  # fmt: skip
    for place in open_places:
        assert place["start"] and place["waiting"] is not None and place["price"]["amount"] > 0
        assert place["latest_end"] - place["start"] == 300
    same = next(row for row in open_places if (row["partition"], row["nodes"]) == ("small-g", 1))
    assert same["changes"] == {}
    assert cluster.admin("squeue", "-h", "-a", "-o", "%A").stdout == jobs
    shown = lt(home, "where", path)
    assert "standard-g" in shown.stdout and "STARTS" in shown.stdout
    told(lt(home, "where", path, "--sites", "no'where"), 2, "no'where")


def test_at_another_site_it_says_what_must_change(runs: Runs, tmp_path: Path) -> None:
    lumi = CLUSTER | {"site": "lumi", "nodes": 2, "gpus_per_node": 8, "partition": "standard-g",
                      "memory": "60G", "modules": ["x"],
                      "strategy": "ddp", "launcher": "srun"}  # fmt: skip
    path = write(tmp_path / "job.yaml", lumi)
    spec, mn5 = JobSpec.model_validate(lumi), runs.sites.load("mn5")
    made: list[JobSpec] = []

    def preview(spec: JobSpec) -> Preview:
        made.append(spec)
        return runs.drafts.previews(spec, path.parent)[0]

    def unreachable(site: Site) -> Connection:
        raise LinkLost("The host is down.", "Wait.")

    unpaid = start_places(spec, mn5, LUMI, "", (), preview, unreachable)
    assert {place.refusal for place in unpaid} == {
        "mn5 needs an account, but none of your runs there has one. "
        "Name yours: `--sites mn5=ACCOUNT`, or `--first mn5=ACCOUNT`."
    }
    assert not made
    places = start_places(spec, mn5, LUMI, "bsc1", (), preview, unreachable)
    assert {place.partition for place in places} == set(mn5.partitions)
    for place in places:
        assert place.changes["site"] == "mn5" and place.changes["account"] == "bsc1"
        assert place.changes["memory"] is None and place.changes["modules"] is None
        # As many ranks on nodes of four GPUs.
        assert (place.nodes, place.changes["gpus_per_node"]) == (4, 4)
    assert all(spec.memory is None and not spec.modules for spec in made)
    refusals = {place.refusal for place in places}
    assert any("The host is down" in refusal for refusal in refusals), refusals
    assert any(place.unreachable for place in places)
    assert {place.partition: place.caution for place in places}["acc_debug"] == "for trials"
    own = start_places(spec, LUMI, LUMI, "project_462000009", (), preview, unreachable)
    assert {place.changes["account"] for place in own} == {"project_462000009"}


def test_on_this_machine_it_starts_now_and_a_grid_is_refused(here: Here, tmp_path: Path) -> None:
    path = write(tmp_path / "job.yaml", LAPTOP)
    done = here("where", str(path), "--json")
    (place,) = json.loads(done.stdout)["data"]
    assert (place["partition"], place["refusal"]) == ("local", "") and place["start"]
    grid = write(tmp_path / "grid.yaml", LAPTOP | {"grid": {"--lr": ["1", "2"]}})
    told(here("where", str(grid)), 2, "for one run")
    wrong = write(tmp_path / "wrong.yaml", LAPTOP | {"gpus_per_node": 64})
    told(here("where", str(wrong)), 2, "would not run in any")
