"""The title bar of every screen says whether the sites answer, also behind a bad network."""

import time
from pathlib import Path

import pytest
from textual.widgets import Static

from lumitui.app.follow.sites.poll_schedule import RefreshEnding
from lumitui.app.job.settings import Settings
from lumitui.app.launch.send.lock import sender_lock
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.screens.page import FullScreen
from lumitui.app.tui.screens.runs_screen import RunsScreen
from lumitui.remote.connect import Connection
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.scheduler.slurm import Slurm
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import Sites
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.ssh.prompts import Ask
from lumitui.remote.transport.local import Local
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import screen_lines, until
from tests.support.servers.link_proxy import link_proxy
from tests.support.servers.sshd import Sshd


async def test_every_screen_says_whether_the_site_answers(
    settings: Settings, project: Path
) -> None:
    app = LumiApp(settings)
    app.runs.history.begin(a_run("waits-000001", state=State.QUEUED, job_id="41"))
    async with app.run_test(size=(100, 30)) as pilot:
        for failed, word in ((True, "connecting"), (False, "live")):
            app.schedule.began("somewhere", 0.0)
            now = app.schedule.last_input
            ending = RefreshEnding(1, ("down",) if failed else (), answered=not failed)
            app.schedule.site("somewhere").busy_since = now
            app.schedule.ended("somewhere", now, ending, pause=500)
            app.schedule.due = lambda names, now: []  # type: ignore[method-assign]
            for keys in ("1", "1 enter", "2", "3"):
                await pilot.press(*keys.split())
                await until(pilot, lambda: f"somewhere {word}" in screen_lines(app)[0], word)  # noqa: B023
        app.absence = f"14 ended while you were away: {'12 done, ' * 9}"
        await until(pilot, lambda: "14 ended" in screen_lines(app)[0], "the news")
        assert "… " in screen_lines(app)[0] and "● somewhere live" in screen_lines(app)[0]


async def test_an_idle_app_draws_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    app = LumiApp(settings)
    for number in range(3):
        app.runs.history.begin(a_run(f"run-{number:06d}", state=State.DONE, job_id="1"))
    for kind in (RunsScreen, FullScreen):
        monkeypatch.setattr(kind, "draw", counted(kind.draw, drawn))
    update = Static.update
    monkeypatch.setattr(Static, "update", counted(update, drawn))
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: "draw" in drawn, "the first draw")
        await pilot.pause(1.5)
        drawn.clear()
        for _ in range(5):
            app.tick()
            screen = app.screen
            assert isinstance(screen, FullScreen)
            screen.every_second()
        await pilot.pause(1.2)
        assert drawn == []
        app.runs.history.update("run-000001", note="a note")
        await until(pilot, lambda: "draw" in drawn, "what was written")


def counted(call: object, into: list[str]) -> object:
    """Return `call`, which writes its name into `into` whenever it is called."""
    assert callable(call)

    def counting(*given: object, **named: object) -> object:
        into.append(getattr(call, "__name__", ""))
        return call(*given, **named)

    return counting


async def test_a_send_that_hears_nothing_is_no_live_link(settings: Settings) -> None:
    local, silence = Local(), [20.0]

    def connect(site: Site, ask: Ask) -> Connection:
        return Connection(local, Slurm(local), lambda: "me", "~", silence=lambda: silence[0])

    app = LumiApp(settings, connect=connect)
    app.runs.history.begin(a_run("sends-000001", site="laptop", state=State.SENDING))
    with sender_lock(settings.data / "sending", "sends-000001"):
        async with app.run_test(size=(100, 30)) as pilot:
            app.under_way.append("sending r-000001")
            await until(pilot, lambda: "laptop reconnecting" in screen_lines(app)[0], "silence")
            assert app.schedule.requests == 0
            silence[0] = 0.0
            await until(pilot, lambda: "laptop live" in screen_lines(app)[0], "the site is heard")
            app.under_way.clear()


async def test_a_poll_records_the_least_pause_of_its_site(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sites, "least_pause", lambda _sites, name: 500.0 * (name == "laptop"))
    app = LumiApp(settings)
    app.runs.history.begin(a_run("waits-000001", site="laptop", state=State.QUEUED, job_id="41"))
    async with app.run_test(size=(100, 30)) as pilot:
        site = app.schedule.site("laptop")
        await until(pilot, lambda: site.earliest > time.monotonic() + 400, "the poll's end")


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
