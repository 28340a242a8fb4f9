"""A site behind a bad network: every title bar says so, and goes on by itself. Real sshd."""

from pathlib import Path

from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.remote.connect import Connection
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.scheduler.slurm import Slurm
from lumitui.remote.site.profile import Site
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.ssh.prompts import Ask
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import screen_lines, until
from tests.support.servers.link_proxy import link_proxy
from tests.support.servers.sshd import Sshd


async def test_the_title_bars_follow_the_link(
    server: Sshd, settings: Settings, tmp_path: Path
) -> None:
    # A site whose queue knows no job: each poll is one request over the real link.
    profile = settings.profiles[0] / "far.yaml"
    profile.write_text("extends: lumi\nname: far\npoll_seconds: 0.3\n")
    with link_proxy(server.port) as proxy:
        server.configure(f"Port {proxy.port}", "HostKeyAlias it", "ConnectTimeout 1")
        server.trust("it")
        ssh = Ssh(server.login())

        def connect(site: Site, ask: Ask) -> Connection:
            return Connection(ssh, Slurm(ssh), lambda: "me", "~")

        app = LumiApp(settings, connect=connect)
        app.runs.history.begin(
            a_run("r-000001", site="far", state=State.RUNNING, job_id="7", folder=str(tmp_path))
        )

        def bar(word: str) -> bool:
            return f"far {word}" in screen_lines(app)[0]

        async with app.run_test(size=(110, 24)) as pilot:
            # There is no squeue here, and the site answers all the same.
            await until(pilot, lambda: bar("incomplete"), "an answer")
            proxy.refuse()
            await until(pilot, lambda: bar("reconnecting"), "an outage")
            await pilot.press("3")
            await until(pilot, lambda: bar("reconnecting"), "on another screen too")
            proxy.accept()
            await until(pilot, lambda: bar("incomplete"), "an answer without a key")
