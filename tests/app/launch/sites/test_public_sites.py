"""Profiles made from public pages alone: what is theirs alone is in the script, as data."""

import pytest

from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.compose import compose
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.sites.accounts import own_account


@pytest.fixture(scope="module", params=["alps", "frontier", "leonardo"])
def site(request: pytest.FixtureRequest) -> Site:
    return Sites([BUILT_IN]).load(request.param)


def job(site: Site, **changes: object) -> JobSpec:
    data: dict[str, object] = {
        "name": "job",
        "site": site.name,
        "account": own_account(site),
        "partition": next(iter(site.partitions)),
        "time": "01:00:00",
        "launcher": site.launchers[0],
        "script": "train.sh",
    }
    return JobSpec.model_validate(data | changes)


def said(launch: Launch, site: Site) -> list[str]:
    return [one.message for one in findings(launch, site) if one.severity == "error"]


def test_a_first_job_on_two_nodes_has_no_error(site: Site) -> None:
    launch = compose(job(site, nodes=2), site)
    assert said(launch, site) == []
    assert launch.layout.masks  # the map is public, or follows from one socket
    assert launch.price.amount > 0


def only(name: str) -> Site:
    return Sites([BUILT_IN]).load(name)


def test_a_limit_that_depends_on_the_number_of_nodes_is_kept() -> None:
    frontier = only("frontier")
    small = compose(job(frontier, nodes=64, time="04:00:00"), frontier)
    assert any("2:00:00" in words for words in said(small, frontier))
    assert said(compose(job(frontier, nodes=92, time="04:00:00"), frontier), frontier) == []
    alps = only("alps")
    debug = compose(job(alps, partition="debug", nodes=2, time="01:00:00"), alps)
    assert said(debug, alps) != []
    fits = compose(job(alps, partition="debug", nodes=2, time="00:45:00"), alps)
    assert said(fits, alps) == []


def test_a_container_may_be_an_option_of_srun() -> None:
    alps = only("alps")
    script = compose(job(alps, container={"generation": "engine"}), alps).script
    words = " ".join(script.replace("\\\n", " ").split())
    assert '--environment "$SIF" bash -c' in words
    assert "#SBATCH --gpus" not in script and "--mem" not in script


def test_further_lines_and_masks_are_the_sites_own() -> None:
    frontier, lumi = only("frontier"), only("lumi")
    script = compose(job(frontier), frontier).script
    assert "#SBATCH --network=disable_rdzv_get\n" in script
    assert "module load rccl-net-plugin\n" in script
    # The same nodes: the same masks by the same generator.
    theirs = compose(job(lumi, partition="standard-g"), lumi).layout.masks
    assert compose(job(frontier), frontier).layout.masks == theirs


def test_a_qos_is_an_entry_of_its_own() -> None:
    leonardo = only("leonardo")
    script = compose(job(leonardo, partition="boost_qos_dbg", time="00:10:00"), leonardo).script
    assert "#SBATCH --partition=boost_usr_prod\n" in script
    assert "#SBATCH --qos=boost_qos_dbg\n" in script
