"""Ssh against real servers: what crosses, whom it trusts, how it logs in, how it fails."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import paramiko
import pytest

from lumitui.remote.site.errors import LinkError, LinkLost, LumiError, RefusedError
from lumitui.remote.ssh.channels import RequestExchange
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.ssh.link import Channel
from lumitui.remote.transport.framing import Framing
from tests.support.servers.sshd import Sshd, free_port, running_sshd, wait_for


@pytest.fixture
def ssh(server: Sshd) -> Iterator[Ssh]:
    connection = server.connect()
    yield connection
    connection.close()


# What crosses


def test_one_connection_serves_all_requests_of_all_threads(ssh: Ssh) -> None:
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda n: ssh.run(f"echo {n}").text, range(18)))
    assert answers == [f"{n}\n" for n in range(18)]
    assert (ssh.connections, ssh.requests) == (1, 18)


def test_thirty_megabytes_come_back_as_they_left(ssh: Ssh) -> None:
    block = os.urandom(1 << 20)
    result = ssh.run("cat", stdin=(block for _ in range(30)))
    assert result.out == block * 30
    assert ssh.bytes_up > 30 << 20 and ssh.bytes_down > 30 << 20


def test_an_error_while_reading_the_input_ends_the_request(ssh: Ssh) -> None:
    def broken() -> Iterator[bytes]:
        yield b"x" * 100
        raise RefusedError("no more", "")

    with pytest.raises(RefusedError):
        ssh.run("cat", stdin=broken())
    assert ssh.run("echo on").text == "on\n"


def test_the_script_is_not_in_the_process_list(ssh: Ssh) -> None:
    result = ssh.run("secret=xyzzy-plugh; ps -eo args")
    assert ":lumitui-" in result.text
    assert "xyzzy-plugh" not in result.text


def test_a_login_that_runs_no_commands_is_said_with_its_last_words(tmp_path: Path) -> None:
    with running_sshd(tmp_path, "ForceCommand echo This account is closed; exit 1") as server:
        connection = server.connect()
        with pytest.raises(LinkError, match="This account is closed") as raised:
            connection.run("true")
        assert not isinstance(raised.value, LinkLost)
        connection.close()


def test_one_session_only_is_shared(tmp_path: Path) -> None:
    with running_sshd(tmp_path, "MaxSessions 1") as server:
        connection = server.connect()
        for number in range(8):
            assert connection.run(f"echo {number}").text == f"{number}\n"
        assert server.logged("no more sessions") <= 3, "one ahead is tried once"
        with ThreadPoolExecutor(3) as threads:
            answers = list(threads.map(lambda n: connection.run(f"echo {n}").text, range(6)))
        assert answers == [f"{n}\n" for n in range(6)]
        stream = connection.stream("tail -f /dev/null", stop=lambda: False)
        next(stream)
        with pytest.raises(LinkError, match="not allow more sessions"):
            connection.run("true", timeout=0.5)
        stream.close()  # type: ignore[attr-defined]  # a generator
        assert connection.run("echo free").text == "free\n"
        assert connection.connections == 1
        connection.close()


# How it fails


def test_a_session_that_dies_is_lost_and_the_next_request_connects(ssh: Ssh) -> None:
    with pytest.raises(LinkLost):
        ssh.run("kill -9 $PPID; sleep 5")
    assert ssh.run("echo again").text == "again\n"
    assert ssh.connections == 2


def test_a_stream_that_dies_is_lost(ssh: Ssh) -> None:
    with pytest.raises(LinkLost):
        list(ssh.stream("kill -9 $PPID; sleep 5", stop=lambda: False))


def test_a_script_killed_at_the_site_is_lost_and_the_connection_stays(ssh: Ssh) -> None:
    with pytest.raises(LinkLost):
        ssh.run("kill -9 $$")
    assert ssh.run("echo again").text == "again\n"
    assert ssh.connections == 1


def test_a_slow_script_is_given_up_and_the_connection_stays(ssh: Ssh) -> None:
    ssh.run("true")
    with pytest.raises(LinkLost, match=r"0\.5 s"):
        ssh.run("sleep 5", timeout=0.5)
    assert ssh.run("echo on").text == "on\n"
    assert ssh.connections == 1


def test_a_stalled_connection_is_replaced_before_anything_is_sent(server: Sshd) -> None:
    server.configure("ConnectTimeout 1")
    connection = server.connect()
    session = int(connection.run("echo $PPID").text)
    os.kill(session, signal.SIGSTOP)
    try:
        assert connection.run("echo $PPID").text != f"{session}\n"
        assert connection.connections == 2
    finally:
        os.kill(session, signal.SIGKILL)
        connection.close()


def test_closing_ends_a_request(server: Sshd) -> None:
    connection = server.connect()
    connection.run("true")
    raised: list[LumiError] = []

    def wait() -> None:
        try:
            connection.run("sleep 20")
        except LumiError as error:
            raised.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    wait_for(lambda: connection.requests == 2, "the request to start")
    connection.close()
    thread.join(5)
    assert not thread.is_alive() and isinstance(raised[0], LinkLost)


def test_closing_ends_a_connection_being_made(server: Sshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(1) as threads:
        server.configure(f"Port {silent.getsockname()[1]}", "ConnectTimeout 60")
        connection = server.connect()
        request = threads.submit(connection.run, "true")
        wait_for(lambda: connection.bytes_up > 0, "the client's banner to leave")
        connection.close()
        assert isinstance(request.exception(10), LinkError)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Port {port}", r"did not answer on port \d+: Connection refused"),
        ("HostName no-such-host.invalid", r"no-such-host\.invalid is unknown"),
        ("NoSuchOption yes", r"(?i)nosuchoption|bad configuration"),
    ],
)
def test_a_site_that_is_not_there_is_named(server: Sshd, line: str, said: str) -> None:
    server.configure(line.format(port=free_port()))
    with pytest.raises(LinkError, match=said):
        server.connect().run("true")


def test_something_else_than_ssh_listens(server: Sshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server.configure(f"Port {silent.getsockname()[1]}", "ConnectTimeout 1")
        with pytest.raises(LinkError, match="sent nothing within 1 s"):
            server.connect().run("true")


@pytest.mark.parametrize(("most", "needed"), [(1 << 21, 8), (1 << 17, 1)])
def test_room_for_a_little_is_not_used_at_once(most: int, needed: int) -> None:
    sent: list[object] = []
    inner: Any = paramiko.Channel(1)  # without a server: the test decides how much room there is
    inner.transport = SimpleNamespace(_send_user_message=sent.append)
    inner.remote_chanid, inner.out_window_size, inner.out_max_packet_size = 0, most, 1 << 16
    inner.settimeout(20)
    channel = Channel(inner)
    for _ in range(most >> 15):
        assert channel.send(bytes(1 << 15)) == 1 << 15
    full = len(sent)
    with ThreadPoolExecutor(1) as threads:
        more = threads.submit(channel.send, bytes(1 << 15))
        for made in range(1, needed + 1):
            assert len(sent) == full, f"after {made - 1} of {needed} times 96 KiB"
            inner._window_adjust(paramiko.Message((96 << 10).to_bytes(4, "big")))
            time.sleep(0.02)  # a thread that sends at once has done so by now
        assert more.result() == 1 << 15
    # A server that makes no more room than this is not waited for any longer.
    inner.settimeout(0.05)
    inner.out_window_size = 4096
    assert channel.send(bytes(1 << 15)) == 4096
    with inner.lock:
        inner._set_closed()
    with pytest.raises(OSError):
        channel.send(b"x")


def test_a_link_that_is_gone_while_an_answer_is_read_is_lost() -> None:
    """Receiving makes room for more: paramiko sends that, and raises EOFError without a socket."""

    def lost(message: object) -> None:
        raise EOFError

    inner: Any = paramiko.Channel(1)
    inner.transport = SimpleNamespace(_send_user_message=lost)
    inner.remote_chanid, inner.active, inner.in_window_threshold = 0, True, 0
    inner.in_buffer.feed(b"half an answer")
    inner.in_stderr_buffer.feed(b"x")
    exchange = RequestExchange(Channel(inner), Framing())
    exchange.step()
    assert exchange.ended
    with pytest.raises(LinkLost, match="was lost during a request"):
        exchange.code("it")
