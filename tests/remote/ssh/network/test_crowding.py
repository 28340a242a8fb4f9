"""A login node with limits, and many callers: one TCP connection, waiting, a clear message."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lumitui.remote.connect import Connections
from lumitui.remote.site.errors import LinkError, LinkLost
from lumitui.remote.site.sites import Sites
from lumitui.remote.ssh.link import Link
from lumitui.remote.ssh.prompts import LoginQuestion
from lumitui.remote.transport.transport import Transport
from tests.support.places import SITES
from tests.support.program.home import Home
from tests.support.servers.sshd import Sshd, half_open, running_sshd, wait_for

pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")


class Watch:
    """The most TCP connections to a port that stood at the same time, seen every few ms."""

    def __init__(self, port: int) -> None:
        self.most, self._port, self._over = 0, f":{port:04X}", threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._over.wait(0.003):
            rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
            fields = [row.split() for row in rows]
            # 01 is ESTABLISHED; the far address is the server's. The kernel gives
            # a row twice when the table changes while it is read.
            near = {row[1] for row in fields if row[2].endswith(self._port) and row[3] == "01"}
            self.most = max(self.most, len(near))

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def test_two_sessions_with_a_log_open_serve_five_threads(tmp_path: Path) -> None:
    with running_sshd(tmp_path, "MaxSessions 2") as server:
        connection = server.connect()
        stream = connection.stream("echo on; tail -f /dev/null", stop=lambda: False)
        assert next(chunk for chunk in stream if chunk) == b"on\n"
        with ThreadPoolExecutor(5) as threads:
            answers = list(threads.map(lambda n: connection.run(f"echo {n}").text, range(10)))
        assert answers == [f"{n}\n" for n in range(10)]
        assert connection.connections == 1
        stream.close()  # type: ignore[attr-defined]  # a generator
        connection.close()


def test_a_site_that_turns_logins_away_is_asked_three_times_with_pauses(busy: Sshd) -> None:
    connection = busy.connect()
    with half_open(busy.port):
        began = time.monotonic()
        with pytest.raises(LinkError, match="Exceeded MaxStartups") as raised:
            connection.run("true")
        assert time.monotonic() - began > 0.4, "there are pauses between the tries"
    assert "try again in a minute" in raised.value.hint and raised.value.exit_code == 3
    assert connection.connections == 3
    wait_for(lambda: not busy.sessions(), "the other login to end")
    assert connection.run("echo in").text == "in\n"
    connection.close()


def test_a_site_that_turns_one_login_away_takes_the_next(busy: Sshd) -> None:
    connection = busy.connect()
    with ThreadPoolExecutor(4) as threads:
        with half_open(busy.port):
            answers = [threads.submit(connection.run, "echo in") for _ in range(4)]
            wait_for(lambda: connection.connections > 0, "the first try")
            time.sleep(0.05)
        assert [answer.result(20).text for answer in answers] == ["in\n"] * 4
    assert connection.connections <= 3 and busy.logged("Accepted publickey") == 1
    connection.close()


def test_a_server_that_hangs_up_before_its_banner_is_asked_once(tmp_path: Path) -> None:
    with running_sshd(tmp_path) as server, socket.create_server(("127.0.0.1", 0)) as listener:
        taken: list[int] = []

        def hang_up() -> None:
            with contextlib.suppress(OSError):
                while True:
                    sock, _ = listener.accept()
                    taken.append(1)
                    sock.close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        server.configure(f"Port {listener.getsockname()[1]}")
        connection = server.connect()
        with pytest.raises(LinkError, match=r"answered, but not as|ended the connection") as raised:
            connection.run("true")
        assert "refuse new connections" in raised.value.hint
        assert len(taken) == connection.connections == 1
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_ten_threads_a_log_and_a_lost_link_make_one_connection_at_a_time(
    tmp_path: Path, home: Home
) -> None:
    """As the TUI does it: one place for connections, a log, a refresh, actions, all at once."""
    with running_sshd(tmp_path) as server, Watch(server.port) as watch:
        server.trust()
        profile = (SITES / "minilumi.yaml").read_text()
        text = profile.replace("/tmp/minilumi/ssh/config", str(server.config))
        (home.config / "sites" / "minilumi.yaml").write_text(text)
        site = Sites(home.settings.profiles).load("minilumi")

        def ask(question: LoginQuestion) -> str | None:
            raise AssertionError(f"nothing is asked: {question}")

        connections = Connections(ask)
        lost, together = list[LinkError](), threading.Barrier(11)

        def transport() -> Transport:
            return connections.get(site).transport

        def work(number: int) -> int:
            together.wait(20)
            done = 0
            while done < 6:
                try:
                    assert transport().run(f"echo {number}").text == f"{number}\n"
                    done += 1
                except LinkLost as error:  # it was under way when the link was cut
                    lost.append(error)
            return done

        chunks: list[bytes] = []

        def log() -> int:
            together.wait(20)
            script, cuts = "while :; do echo tick; sleep 0.02; done", 0
            while cuts < 3 and len(chunks) < 40:
                try:
                    chunks.extend(transport().stream(script, stop=lambda: len(chunks) >= 40))
                except LinkLost:
                    cuts += 1
            return cuts

        with ThreadPoolExecutor(11) as threads:
            working = [threads.submit(work, number) for number in range(10)]
            logging = threads.submit(log)
            wait_for(lambda: server.logged("Accepted publickey") == 1, "the first login")
            wait_for(lambda: server.logged("Starting session") > 8, "work to begin")
            server.drop()
            assert [item.result(180) for item in working] == [6] * 10
            assert logging.result(180) <= 2
        # On a busy machine the link is lost once more in one of some 30.
        assert server.logged("Accepted publickey") in (2, 3)
        assert watch.most == 1 and len(server.sessions()) == 1
        assert len(lost) <= 10
        connections.close()
        wait_for(lambda: not server.sessions(), "the server to be left")


def test_leaving_while_it_connects_leaves_nothing_open(tmp_path: Path) -> None:
    with running_sshd(tmp_path) as server:
        for pause in (0.0, 0.02, 0.05, 0.1, 0.15):
            connection = server.connect()
            with ThreadPoolExecutor(1) as threads:
                request = threads.submit(connection.run, "true")
                time.sleep(pause)
                connection.close()
                assert request.exception(20) is None or isinstance(request.exception(), LinkError)
            connection.close()
            wait_for(lambda: not server.sessions(), "the server to be left")


def test_leaving_at_the_last_moment_of_connecting_leaves_nothing_open(tmp_path: Path) -> None:
    with running_sshd(tmp_path) as server:
        connection = server.connect()
        connects = connection._connect

        def leave(stopped: Callable[[], bool]) -> Link:
            made = connects(stopped)
            connection.close()
            return made

        connection._connect = leave
        with pytest.raises(LinkError, match="closed while it was being opened"):
            connection.run("true")
        wait_for(lambda: not server.sessions(), "the server to be left")
        connection._connect = connects
        assert connection.run("echo in").text == "in\n"
        connection.close()
