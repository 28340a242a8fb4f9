"""What a refresh says it asked, and of which sites it heard."""

from lumitui.app.runs import Runs
from lumitui.app.send.lock import sender_lock
from lumitui.app.settings import Settings
from lumitui.remote.scheduler.protocol import State
from tests.support.jobs.made_runs import a_run


def test_a_refresh_that_waits_for_a_send_asks_and_hears_nothing(settings: Settings) -> None:
    runs = Runs(settings)
    runs.history.begin(a_run("sends-000001", site="laptop", state=State.SENDING))
    with sender_lock(settings.data / "sending", "sends-000001") as free:
        assert free
        found = runs.refresh("laptop", attended=False)
    assert found.requests == 0
    assert found.held == {"laptop"} and not found.heard
    runs.close()
