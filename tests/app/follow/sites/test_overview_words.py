"""What is said of a site beside its overview, and which site is not asked for one."""

import pytest

from lumitui.app.follow.sites.overview_words import (
    no_overview_yet,
    overview_age,
    overview_parts,
)
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.cluster_overview import ClusterOverview, Nodes
from lumitui.remote.site.states import State
from tests.support.jobs.made_runs import a_run
from tests.support.program.home import Home


@pytest.mark.parametrize(
    ("answered", "tried", "asking", "said"),
    [
        (None, None, True, "querying …"),
        (None, None, False, "not queried"),
        (None, 95.0, False, "queried 5s ago, no answer"),
        (38.0, 38.0, False, "1m02 ago"),
        (38.0, None, False, "1m02 ago"),
        (38.0, 95.0, False, "1m02 ago, queried 5s ago, no answer"),
    ],
)
def test_a_site_that_was_asked_is_not_called_unasked(
    answered: float | None, tried: float | None, asking: bool, said: str
) -> None:
    assert overview_age(answered, tried, 100.0, asking=asking) == said


def test_the_first_second_says_what_is_going_on() -> None:
    assert no_overview_yet("lumi", asking=True).startswith("Querying lumi for its nodes")
    assert no_overview_yet("lumi", asking=False).endswith("Press r to query it again.")


def test_a_site_where_the_person_may_be_nobody_is_not_asked(home: Home, runs: Runs) -> None:
    assert runs.clusters.sites() == ["laptop"]
    (home.config / "sites" / "karolina.yaml").write_text("extends: karolina\n")
    assert runs.clusters.sites() == ["karolina"]
    runs.history.begin(a_run("new-000001", site="lumi", state=State.DONE))
    assert runs.clusters.sites() == ["lumi"]


@pytest.mark.parametrize(
    ("limit", "nodes", "said"),
    [
        ("1-16", 2, "1-2"), ("1-16", 16, "1-16"), ("1-4", 8, "1-4"), ("1-16", 1, "1"),
        ("1-infinite", 8, "1-8"), ("1-infinite", 0, "1-any"), ("4-16", 2, "4-16"), ("2", 8, "2"),
    ],
)  # fmt: skip
def test_a_job_has_no_more_nodes_than_its_partition(limit: str, nodes: int, said: str) -> None:
    found = ClusterOverview((Nodes("gpu", "up", "1:00:00", limit, nodes),))
    assert overview_parts(found, 0.0)[0].rows[0][-1] == said
