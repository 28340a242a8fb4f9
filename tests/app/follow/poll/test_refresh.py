"""What a refresh says it asked, and of which sites it heard."""

from pathlib import Path

from lumitui.app.job.settings import Settings
from lumitui.app.launch.send.lock import sender_lock
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import LinkError
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


def test_a_request_that_never_left_is_not_counted(settings: Settings, tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text("Host *\n  Port 1\n  ConnectTimeout 2\n")
    profile = settings.profiles[0] / "far.yaml"
    hosts = f"hosts: {{login: 127.0.0.1, ssh_config: {config}}}"
    profile.write_text(f"extends: lumi\nname: far\n{hosts}\n")
    runs = Runs(settings)
    runs.history.begin(a_run("far-000001", site="far", state=State.RUNNING, job_id="7"))
    found = runs.refresh("far", attended=False)
    assert isinstance(found.failed["far"], LinkError) and found.requests == 0, found
    runs.close()
