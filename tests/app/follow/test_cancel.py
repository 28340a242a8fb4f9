"""A cancel that fails says which one it was, and whether the job may still run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from lumitui.app.job.settings import Settings
from lumitui.app.runs import Runs
from lumitui.remote.connect import Connection
from lumitui.remote.scheduler.scheduler_protocol import State, Watch
from lumitui.remote.scheduler.slurm import Slurm
from lumitui.remote.site.errors import LinkError, LinkLost, LumiError, OutcomeUnknown, RefusedError
from lumitui.remote.transport.local import Local
from tests.support.jobs.made_runs import a_run


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (LinkError("No route.", "Check the network."), "r-000001 is not cancelled: No route."),
        (LinkLost("It was cut.", ""), "It is unknown whether r-000001 is cancelled: It was cut."),
        (RefusedError("Not yours.", ""), "r-000001 is not cancelled: Not yours."),
        (OutcomeUnknown("No list.", ""), "r-000001 is cancelled, not yet confirmed: No list."),
    ],
)
def test_a_cancel_that_fails_names_the_run_and_what_became_of_its_job(
    settings: Settings, tmp_path: Path, error: LumiError, words: str
) -> None:
    class Failing(Slurm):
        """A queue that takes no cancel."""

        def cancel(self, watches: Sequence[Watch]) -> Mapping[str, str]:
            raise error

    local = Local()
    runs = Runs(
        settings, connect=lambda site, ask: Connection(local, Failing(local), lambda: "me", "~")
    )
    runs.history.begin(a_run("r-000001", site="laptop", state=State.RUNNING, job_id="7"))
    with pytest.raises(type(error)) as raised:
        runs.cancel("r-000001")
    assert raised.value.message == words
    assert raised.value.hint.startswith("Its job may still run")
    assert raised.value.hint.endswith(error.hint)
    runs.close()
