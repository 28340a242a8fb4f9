"""Which sites the screen Cluster asks: those that the person uses, never all that are known."""

from lumitui.app.runs import Runs
from lumitui.remote.site.states import State
from tests.support.jobs.made_runs import a_run
from tests.support.program.home import Home


def test_a_site_where_the_person_may_be_nobody_is_not_asked(home: Home, runs: Runs) -> None:
    assert runs.clusters.sites() == ["laptop"]
    (home.config / "sites" / "karolina.yaml").write_text("extends: karolina\n")
    assert runs.clusters.sites() == ["karolina"]
    runs.history.begin(a_run("new-000001", site="lumi", state=State.DONE))
    assert runs.clusters.sites() == ["lumi"]
