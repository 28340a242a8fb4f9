"""`venv:` where there is no container, and where nothing reaches an index: two other machines."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs
from lumitui.remote.site.states import State
from tests.support.program.home import Home
from tests.support.jobs.small_jobs import finish
from tests.support.servers.cluster import running_cluster
from tests.support.files.wheels import make_wheel

pytestmark = [pytest.mark.slow, pytest.mark.cluster]


@dataclass(frozen=True)
class Case:
    """A machine, and how its job gets what it lacks."""

    shape: str
    site: str
    account: str
    partition: str
    venv: str
    at: str
    """Where the ranks find the package."""


CASES = (
    # Modules alone, and an environment of plain files.
    Case("puhti", "mini-puhti", "project_2001659", "gputest",
         "venv: {packages: [tiny], wheels: wheels}", "/lumitui/venvs/"),
    # A container, and wheels that came over the host for files.
    Case("mn5-acc", "mini-mn5", "ehpc01", "acc_debug",
         "venv: {packages: [tiny], wheels: $STAGE_WHEELS}\nstage: {WHEELS: wheels}",
         "/user-software/lib/"),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.shape)
def test_it_is_built_by_the_sites_own_recipe(home: Home, tmp_path: Path, case: Case) -> None:
    project = tmp_path / "test_venv"
    make_wheel(project / "wheels", "tiny", "1.2")
    (project / "show.py").write_text(
        "import tiny, importlib.util as i\nprint(tiny.__file__, bool(i.find_spec('torch')))\n"
    )
    text = f"name: venv\nsite: {case.site}\naccount: {case.account}\nscript: show.py\n"
    text += f"partition: {case.partition}\ngpus_per_node: 1\ntime: '00:05:00'\nproof: 'off'\n"
    with running_cluster(case.shape) as cluster:
        home.add_cluster(cluster, case.site, case.site)
        cluster.login(f"rm -rf {cluster.scratch}/{cluster.user}/lumitui/venvs")
        runs = Runs(home.settings)
        preview = runs.preview(parse_job(text + case.venv, "job"), project)
        run = finish(runs, runs.send(preview))
        log = runs.read_log(run.id)[1].decode()
        (found,) = runs.environments.venvs(case.site).values()
        runs.close()
    assert run.state is State.DONE, log
    assert case.at in log and "tiny.py True" in log
    assert [venv.packages for venv in found] == [{"tiny": "1.2"}]
