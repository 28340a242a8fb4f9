"""Jump hosts, proxy commands, login nodes, and how the configuration is read."""

import shlex
from pathlib import Path

import pytest

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh import tcp
from lumitui.remote.ssh.config import Login, jump_login
from lumitui.remote.ssh.options.openssh import openssh_table
from lumitui.remote.ssh.options.resolve import resolve
from tests.support.program.child import is_gone
from tests.support.servers.sshd import Sshd, running_sshd, wait_for


def test_a_jump_host_and_a_proxy_command(server: Sshd, tmp_path: Path) -> None:
    with running_sshd(tmp_path / "jump") as jump:
        jump.allow(server.identity)
        jump.trust()
        both = server.known_hosts
        server.trust()
        both.write_text(both.read_text() + jump.known_hosts.read_text())
        extra = f"\nHost jump\nPort {jump.port}\n"
        for option in ("ProxyJump jump", f"ProxyCommand ssh -F {server.config} -W %h:%p jump"):
            server.configure(option)
            text = server.config.read_text()
            server.config.write_text(text.replace("\nHost *", extra + "Host *", 1))
            connection = server.connect()
            result = connection.run('echo "$SSH_CLIENT"; wc -c', stdin=b"x" * 100_000)
            assert result.text.split()[-1] == "100000"
            connection.close()
            assert connection.connections == 1
        log = (jump.folder / "log").read_text()
        assert log.count("Accepted publickey") == 2


def test_a_proxy_command_that_fails_says_why(server: Sshd) -> None:
    server.configure("ProxyCommand echo no route today >&2")
    with pytest.raises(LinkError, match="no route today"):
        server.connect().run("true")


def test_the_login_node_is_kept_and_left_when_it_is_down(server: Sshd) -> None:
    server.configure("HostName localhost", "HostKeyAlias cluster")
    server.trust("cluster")
    connection = server.connect()
    connection.run("true")
    assert connection.node == "127.0.0.1"
    connection.close()
    connection._peer = "127.0.0.9"  # a node that does not listen
    assert connection.run("echo in").text == "in\n"
    assert connection.node == "127.0.0.1"
    connection.close()


def test_settings_come_from_openssh_with_include_and_match(tmp_path: Path) -> None:
    included = tmp_path / "included"
    included.write_text("Match user somebody\n  Port 2200\n  ProxyJump a@b:3,c\n")
    config = tmp_path / "config"
    config.write_text(
        f"Include {included}\nHost lumi\n  HostName example.org\n  IdentityFile %d/k\n"
    )
    login = Login("lumi", user="somebody", config=config, identity=Path("~/mine"))
    found = resolve(login, openssh_table(login))
    assert (found.hostname, found.port, found.user) == ("example.org", 2200, "somebody")
    assert found.jumps == ("a@b:3", "c") and found.trust.name == "[example.org]:2200"
    assert found.identities == (Path("~/mine").expanduser(), Path.home() / "k")
    jump = jump_login(login, "a@[::1]:3")
    assert (jump.host, jump.port, jump.user) == ("::1", 3, "a")


def test_without_openssh_nothing_is_connected_and_that_is_said(
    server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LinkError, match="OpenSSH is not installed on this machine") as raised:
        server.connect().run("true")
    assert "Install the package" in raised.value.hint


@pytest.mark.parametrize(
    "script", ["yes wrong | head -n 3000000 >&2; echo last word >&2", "echo last word >&2; exit 7"]
)
def test_the_last_words_of_a_proxy_are_kept_and_no_more(script: str) -> None:
    proxy = tcp.Proxy(f"sh -c {shlex.quote(script)}")
    wait_for(lambda: proxy.complaint() == "last word", "the last word")
    proxy.close()


def test_a_proxy_that_complains_without_end_is_given_up_and_nothing_of_it_goes_on(
    server: Sshd, tmp_path: Path
) -> None:
    script = f"sh -c 'echo $$ >{tmp_path}/pid; exec yes no way >&2'; true"
    server.configure(f"ProxyCommand sh -c {shlex.quote(script)}", "ConnectTimeout 1")
    with pytest.raises(LinkError, match=r"ProxyCommand to .* failed: n"):
        server.connect().run("true")
    wait_for(lambda: is_gone((tmp_path / "pid").read_text().strip()), "its end")
