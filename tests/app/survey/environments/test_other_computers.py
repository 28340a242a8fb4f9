"""An environment that a run of another computer needs stays; nobody asks that computer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.app.cli.views.environment_tables import removed_text
from lumitui.app.history.run import Run
from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs
from lumitui.remote.site.errors import AnswerUnusable, InputError
from lumitui.remote.site.states import State
from lumitui.remote.transfer.run_users import venv_users
from tests.support.files.wheels import make_wheel
from tests.support.jobs.small_jobs import wait_until
from tests.support.program.home import Home
from tests.support.servers.transports import FixedAnswer

JOB = """\
name: venv
site: laptop
partition: local
gpus_per_node: 1
time: "00:10:00"
launcher: plain
script: wait.sh
proof: "off"
venv: {packages: [tiny], wheels: wheels}
"""


@pytest.fixture
def run(runs: Runs, tmp_path: Path) -> Iterator[Run]:
    """A run that works in an environment."""
    make_wheel(tmp_path / "wheels", "tiny", "1.2")
    script = tmp_path / "wait.sh"
    script.write_text("#!/bin/sh\necho at work\nexec sleep 600\n")
    script.chmod(0o755)
    sent = runs.send(runs.preview(parse_job(JOB, "job"), tmp_path))
    wait_until(lambda: b"at work" in runs.read_log(sent.id)[1], 120)
    yield sent
    if not runs.history.get(sent.id).state.is_final:
        runs.cancel(sent.id)


def test_what_a_run_of_another_computer_uses_stays(
    home: Home, runs: Runs, run: Run, tmp_path: Path
) -> None:
    elsewhere = Home(home.config, tmp_path / "another laptop")
    elsewhere.data.mkdir(mode=0o700)
    other = Runs(elsewhere.settings)
    try:
        ((folder, (found,)),) = [item for item in other.environments.venvs("laptop").items()]
        with pytest.raises(InputError, match=f"{run.id} of another computer uses"):
            other.environments.remove("laptop", [found.name])
        kept = other.environments.remove("laptop")
        assert removed_text(kept) == f"{folder}: 0 environments, 0 B"
        assert Path(folder, found.name).exists()
        runs.cancel(run.id)
        assert runs.wait(run.id).state is State.CANCELLED
        assert other.environments.remove("laptop", [found.name])[folder].names == (found.name,)
    finally:
        other.close()


def test_an_answer_that_is_none_removes_nothing() -> None:
    with pytest.raises(AnswerUnusable, match="instead of the runs that use environments"):
        venv_users(FixedAnswer(b"welcome to the cluster\n"), "/scratch")
