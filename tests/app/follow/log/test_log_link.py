"""A log on a screen goes on by itself after an outage and says what the link is like. Real sshd."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lumitui.app.follow.log_follower import LogBegan, LogEvent, LogGrew, LogHeard, LogLost
from lumitui.app.runs import Runs
from lumitui.remote.connect import Connection
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.scheduler.slurm import Slurm
from lumitui.remote.site.profile import Site
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.ssh.prompts import Ask
from tests.support.jobs.made_runs import a_run
from tests.support.program.home import Home
from tests.support.servers.link_proxy import LinkProxy, link_proxy
from tests.support.servers.sshd import Sshd, wait_for


class Screen:
    """A screen with the log of one run: all that it is told, in a thread as in the app."""

    def __init__(self, runs: Runs, run_id: str) -> None:
        self.events: list[LogEvent] = []
        self.over = threading.Event()
        self._log = runs.show_log(run_id, stop=self.over.is_set)
        self._thread = threading.Thread(target=lambda: self.events.extend(self._log))
        self._thread.start()

    @property
    def text(self) -> bytes:
        return b"".join(event.data for event in self.events if isinstance(event, LogGrew))

    def last(self, kind: type[LogEvent]) -> Callable[[], bool]:
        return lambda: bool(self.events) and isinstance(self.events[-1], kind)

    def close(self) -> None:
        self.over.set()
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.fixture
def network(server: Sshd) -> Iterator[LinkProxy]:
    with link_proxy(server.port) as proxy:
        server.configure(
            f"Port {proxy.port}", "HostKeyAlias it", "ConnectTimeout 1", "ServerAliveInterval 1"
        )
        server.trust("it")
        yield proxy


@pytest.fixture
def core(server: Sshd, network: LinkProxy, home: Home) -> Iterator[Runs]:
    ssh = Ssh(server.login())

    def connecting(site: Site, ask: Ask) -> Connection:
        return Connection(ssh, Slurm(ssh), lambda: "me", "~", silence=ssh.silence)

    runs = Runs(home.settings, connect=connecting)
    yield runs
    runs.close()


def test_a_log_says_that_its_link_is_away_and_goes_on_by_itself(
    core: Runs, network: LinkProxy, tmp_path: Path
) -> None:
    log = tmp_path / "attempt-1.out"
    log.write_text("one\n")
    core.history.begin(
        a_run("r1", site="lumi", state=State.RUNNING, job_id="7", folder=str(tmp_path))
    )
    network.refuse()
    screen = Screen(core, "r1")  # opened in an outage
    try:
        wait_for(screen.last(LogLost), "the outage to be said")
        lost = screen.events[-1]
        assert isinstance(lost, LogLost) and lost.words and not screen.text
        network.accept()
        wait_for(lambda: screen.text == b"one\n", "the log to begin by itself", 30)
        wait_for(screen.last(LogHeard), "a sign of life")
        network.stall()
        wait_for(screen.last(LogLost), "the stall to be said", 30)
        with log.open("a") as file:
            file.write("two\n")
        network.flow()
        # Another request makes the connection again: the log does not wait for its own turn.
        core.read_log("r1")
        wait_for(lambda: screen.text == b"one\ntwo\n", "the log to go on where it was", 30)
        assert screen.last(LogGrew)()
        assert sum(isinstance(event, LogBegan) for event in screen.events) == 1
    finally:
        screen.close()
