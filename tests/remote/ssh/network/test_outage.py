"""What a laptop's life does to a link: silence, sleep, another network."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from paramiko.packet import Packetizer

from lumitui.remote.site.errors import LinkError, LinkLost
from lumitui.remote.ssh.connection import Ssh
from tests.support.places import ROOT
from tests.support.servers.link_proxy import LinkProxy, link_proxy
from tests.support.servers.sshd import Sshd, running_sshd, wait_for

pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

QUICK = ("HostKeyAlias cluster", "ConnectTimeout 1", "ServerAliveInterval 1")
BOUND = 30.0
"""Seconds that no wait may exceed on a busy machine; the limits themselves are 1 to 3 s."""


@pytest.fixture
def network(server: Sshd) -> Iterator[LinkProxy]:
    with link_proxy(server.port) as proxy:
        server.configure(f"Port {proxy.port}", *QUICK)
        server.trust("cluster")
        yield proxy


@pytest.fixture
def ssh(server: Sshd, network: LinkProxy) -> Iterator[Ssh]:
    connection = Ssh(server.login())
    yield connection
    connection.close()


def test_a_silent_log_notices_a_dead_link_by_its_keep_alive(ssh: Ssh, network: LinkProxy) -> None:
    stream = ssh.stream("echo on; tail -f /dev/null", stop=lambda: False)
    assert next(chunk for chunk in stream if chunk) == b"on\n"
    network.stall()
    began, longest, last = time.monotonic(), 0.0, time.monotonic()
    with pytest.raises(LinkLost):
        for _ in stream:
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
            assert last - began < BOUND
    assert longest < 5, "the reader stays responsive meanwhile"
    network.flow()
    assert ssh.run("echo again").text == "again\n"


def test_a_silent_log_over_a_good_link_is_left_alone(ssh: Ssh, network: LinkProxy) -> None:
    stream = ssh.stream("echo on; tail -f /dev/null", stop=lambda: False)
    assert next(chunk for chunk in stream if chunk) == b"on\n"
    network.reset()
    began = time.monotonic()
    while time.monotonic() - began < 1.5:
        assert next(stream) == b""
    counts = network.stats()
    assert 1 <= counts.turns <= 12, "it was asked for a sign of life, and not more often"
    assert counts.up < 2000
    stream.close()  # type: ignore[attr-defined]  # a generator
    assert ssh.run("echo on").text == "on\n"
    assert ssh.connections == 1


def test_a_stall_is_waited_for_a_bounded_time_and_then_over(ssh: Ssh, network: LinkProxy) -> None:
    ssh.run("true")
    network.stall()
    began = time.monotonic()
    with pytest.raises(LinkError) as raised:
        ssh.run("echo nothing is sent")
    assert not isinstance(raised.value, LinkLost) and time.monotonic() - began < BOUND
    network.flow()
    assert ssh.run("echo again").text == "again\n"


def test_a_request_under_way_in_a_stall_is_lost_and_said_so(ssh: Ssh, network: LinkProxy) -> None:
    with ThreadPoolExecutor(1) as threads:
        request = threads.submit(ssh.run, "sleep 60", timeout=1)
        wait_for(lambda: ssh.requests == 1, "the request to start")
        network.stall()
        error = request.exception(BOUND)
    assert isinstance(error, LinkLost) and "did not answer within 1 s" in error.message
    network.flow()
    assert ssh.run("echo again").text == "again\n"


def test_a_stall_that_ends_in_a_cut_is_over_with_the_next_request(
    ssh: Ssh, network: LinkProxy, server: Sshd
) -> None:
    ssh.run("true")
    network.stall()
    network.cut()
    network.flow()
    assert ssh.run("echo again").text == "again\n"
    assert ssh.connections == 2


def test_a_site_that_refuses_for_a_while_is_asked_once_a_request(
    ssh: Ssh, network: LinkProxy
) -> None:
    ssh.run("true")
    network.refuse()
    for _ in range(3):
        with pytest.raises(LinkError):
            ssh.run("true")
    assert ssh.connections == 4
    network.accept()
    assert ssh.run("echo again").text == "again\n"


def test_a_socket_that_is_gone_before_anybody_noticed(
    ssh: Ssh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library then raises EOFError out of a send; a few microseconds that a test must make."""

    def gone(packetizer: Packetizer, out: bytes) -> None:
        raise EOFError

    def data() -> Iterator[bytes]:
        yield b"x" * 100
        monkeypatch.setattr(Packetizer, "write_all", gone)
        yield b"y" * 100

    with pytest.raises(LinkLost):
        ssh.run("cat", stdin=data(), timeout=2)
    monkeypatch.undo()
    assert ssh.run("echo again").text == "again\n"


def test_another_network_is_taken_with_the_next_request(
    ssh: Ssh, network: LinkProxy, server: Sshd
) -> None:
    """The old route is gone for good; the configuration (a VPN, a jump) names another one."""
    assert ssh.run("echo in").text == "in\n"
    network.refuse()
    with link_proxy(server.port) as other:
        server.configure(f"Port {other.port}", *QUICK)
        assert ssh.run("echo elsewhere").text == "elsewhere\n"
        assert other.stats().connections == 1
        wait_for(lambda: len(server.sessions()) == 1, "the old connection to be gone")


CLIENT = """
import json, sys, time
from pathlib import Path
from lumitui.remote.site.errors import LumiError
from lumitui.remote.ssh.config import Login
from lumitui.remote.ssh.connection import Ssh
ssh = Ssh(Login("site", config=Path(sys.argv[1])))
for line in sys.stdin:
    began = time.monotonic()
    try:
        text = ssh.run(line).text
    except LumiError as error:
        text = type(error).__name__
    answer = {"text": text, "seconds": time.monotonic() - began, "connections": ssh.connections}
    print(json.dumps(answer), flush=True)
"""


@pytest.mark.parametrize(
    "asleep_in", [pytest.param("nothing", marks=pytest.mark.slow), "a request"]
)
def test_a_laptop_that_slept_connects_with_the_next_request(tmp_path: Path, asleep_in: str) -> None:
    # The site gives a client up that is silent for 2 s; a laptop sleeps longer.
    with running_sshd(tmp_path, "ClientAliveInterval 1", "ClientAliveCountMax 1") as server:
        server.configure(*QUICK)
        server.trust("cluster")
        argv = [sys.executable, "-c", CLIENT, str(server.config)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        with subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as laptop:
            assert laptop.stdin and laptop.stdout

            def ask(line: str) -> None:
                assert laptop.stdin
                laptop.stdin.write(line + "\n")
                laptop.stdin.flush()

            def answered() -> dict[str, object]:
                assert laptop.stdout
                return dict(json.loads(laptop.stdout.readline()))

            ask("echo awake")
            assert answered()["text"] == "awake\n"
            if asleep_in == "a request":
                ask("echo begun; sleep 60")
                wait_for(lambda: server.logged("Starting session") == 2, "the request to begin")
            os.kill(laptop.pid, signal.SIGSTOP)
            wait_for(lambda: not server.sessions(), "the site to give the laptop up", 30)
            os.kill(laptop.pid, signal.SIGCONT)
            if asleep_in == "a request":
                assert answered()["text"] == "LinkLost"
            ask("echo again")
            answer = answered()
            assert answer["text"] == "again\n" and answer["connections"] == 2
            assert isinstance(answer["seconds"], float) and answer["seconds"] < BOUND
            laptop.stdin.close()
