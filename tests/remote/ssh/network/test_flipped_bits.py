"""Bits that flip on the way to a real sshd and back: a lost link each time, and never a defect."""

import contextlib
import os
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lumitui.app.runs import Runs
from lumitui.remote.connect import Connection
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.scheduler.slurm import Slurm
from lumitui.remote.site.errors import LinkError, LumiError
from lumitui.remote.site.profile import Site
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.ssh.prompts import Ask
from tests.support.jobs.made_runs import a_run
from tests.support.program.home import Home
from tests.support.servers.link_proxy import LinkProxy, link_proxy
from tests.support.servers.sshd import Sshd

WHOLE = os.urandom(200_000)
Request = Callable[[Ssh], bytes]


@pytest.fixture(scope="module")
def proxy(shared: Sshd) -> Iterator[LinkProxy]:
    with link_proxy(shared.port) as found:
        yield found


@pytest.fixture
def ssh(server: Sshd, proxy: LinkProxy) -> Iterator[Ssh]:
    server.configure(f"Port {proxy.port}")
    server.trust(f"[127.0.0.1]:{proxy.port}")
    connection = server.connect()
    yield connection
    proxy.flip(0)
    connection.close()


def _there_and_back(ssh: Ssh) -> bytes:
    return ssh.run("cat", stdin=WHOLE, timeout=2).out


def _stream(ssh: Ssh) -> bytes:
    return b"".join(ssh.stream("head -c 200000 /dev/zero", stop=lambda: False))


def _small(ssh: Ssh) -> bytes:
    return b"".join(ssh.run(f"echo {number}", timeout=2).out for number in range(20))


REQUESTS: dict[Request, bytes] = {
    _there_and_back: WHOLE,
    _stream: bytes(200_000),
    _small: b"".join(b"%d\n" % number for number in range(20)),
}


@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("count", [4, pytest.param(150, marks=pytest.mark.slow)])
def test_a_flipped_bit_is_a_lost_link(ssh: Ssh, proxy: LinkProxy, way: str, count: int) -> None:
    """In the version, the key exchange, the login, a request, its answer."""
    lost = 0
    for number in range(count):
        chance = random.Random(f"{way} {number}")
        request = chance.choice(list(REQUESTS))
        if chance.random() < 0.5:
            ssh.close()
        else:
            ssh.run("true")
        before = proxy.flip(chance.choice([30, 300, 3000, 30_000]), way).flips  # type: ignore[arg-type]
        try:
            answer = request(ssh)
        except LinkError as error:
            assert error.message and error.exit_code == 3
            lost += 1
        else:  # OpenSSH passes over what it does not know in a greeting
            assert answer == REQUESTS[request] and proxy.stats().flips - before <= 2
        proxy.flip(0)
        assert ssh.run("echo back").text == "back\n"
    assert lost > (count / 2 if count > 100 else 0)


def test_a_damaged_packet_is_a_lost_link_for_every_thread(ssh: Ssh, proxy: LinkProxy) -> None:
    """The thread that reads packets meets the damage; all that wait for an answer are told."""
    ssh.run("true")
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(ssh.run, "sleep 1; echo late", timeout=3) for _ in range(4)]
        proxy.flip(40, "down")
        errors = [request.exception(30) for request in waiting]
    assert all(isinstance(error, LinkError) for error in errors), errors
    proxy.flip(0)
    assert ssh.run("echo back").text == "back\n"


def test_the_proxy_flips_about_as_often_as_it_was_told(proxy: LinkProxy, ssh: Ssh) -> None:
    ssh.run("true")
    before = proxy.flip(1000, "up").flips
    with pytest.raises(LinkError):
        ssh.run("cat", stdin=WHOLE, timeout=2)
    assert proxy.stats().flips > before


def test_a_server_that_never_sends_its_version_is_given_up(
    server: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumitui.remote.ssh.link._BANNER_SECONDS", 0.5)
    for script in ("while :; do printf x; sleep 0.1; done", "yes | tr -d '\\n'", "yes"):
        server.configure(f'ProxyCommand sh -c "{script}"')
        with pytest.raises(LinkError, match=r"ProxyCommand|answered, but not as"):
            server.connect().run("true")


def test_a_refresh_over_a_damaging_link_is_a_warning_each_time(
    ssh: Ssh, proxy: LinkProxy, home: Home
) -> None:
    def connecting(site: Site, ask: Ask) -> Connection:
        return Connection(ssh, Slurm(ssh), lambda: "me", "~")

    runs = Runs(home.settings, connect=connecting)
    runs.history.begin(a_run("r1", site="lumi", state=State.RUNNING, job_id="7", folder="/r1"))
    for number in range(4):
        proxy.flip([40, 400, 4000][number % 3])
        for words in runs.refresh("lumi").warnings:
            assert "Error" not in words.split(":")[0], words
        with contextlib.suppress(LumiError):
            runs.read_log("r1")
    proxy.flip(0)
    assert runs.refresh("lumi").failed == {}
    runs.close()
