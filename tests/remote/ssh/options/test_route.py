"""The way to a host through others, and the methods of a login."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh import tcp
from lumitui.remote.ssh.config import Login, jump_login
from lumitui.remote.ssh.options.openssh import openssh_table
from lumitui.remote.ssh.options.resolve import resolve
from tests.support.program.child import is_gone
from tests.support.servers.clients.asking_server import CODE, PASSWORD, Server
from tests.support.servers.clients.two_clients import Outcome, Person, by_lumitui, by_openssh
from tests.support.servers.sshd import Sshd, public, running_sshd, wait_for


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


@dataclass(frozen=True)
class Case:
    """What the server wants, the configuration, what is typed, and what the server then saw."""

    wants: str
    lines: str
    secret: str
    seen: tuple[str, ...]


CASES = (
    Case("password", "", PASSWORD, ("password right",)),
    Case("password", "PasswordAuthentication no", PASSWORD, ()),
    Case("password", "BatchMode yes", PASSWORD, ()),
    Case("password", "NumberOfPasswordPrompts 1", "guess", ("password wrong",)),
    Case("password", "NumberOfPasswordPrompts 2", "guess", ("password wrong",) * 2),
    Case("password", "PreferredAuthentications publickey", PASSWORD, ()),
    Case("keyboard-interactive", "", CODE, ("keyboard-interactive right",)),
    Case("keyboard-interactive", "KbdInteractiveAuthentication no", CODE, ()),
    Case("keyboard-interactive", "ChallengeResponseAuthentication no", CODE, ()),
    Case("keyboard-interactive", "BatchMode yes", CODE, ()),
    Case("keyboard-interactive", "NumberOfPasswordPrompts 1", "0", ("keyboard-interactive wrong",)),
    Case("either", "NumberOfPasswordPrompts 1\nPreferredAuthentications password", "guess",
         ("password wrong",)),
    Case("either", "NumberOfPasswordPrompts 1\nPasswordAuthentication no", "guess",
         ("keyboard-interactive wrong",)),
    Case("either", "NumberOfPasswordPrompts 1\nPubkeyAuthentication no\n"
         "PreferredAuthentications publickey,password", "guess", ("password wrong",)),
)  # fmt: skip


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.close()


def configure(server: Server, lines: str) -> None:
    """Let `lines` win in the person's configuration, and the host's key be known."""
    config = server.login.config
    assert config is not None
    config.write_text(f"{lines}\n{config.read_text()}")
    port = config.read_text().split("Port ")[1].split()[0]
    known = f"[127.0.0.1]:{port} {public(server.host_key)}\n"
    (config.parent / "known").write_text(known)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.wants} {case.lines!r}")
def test_the_server_sees_the_same_of_both_clients(
    asking: Server, tmp_path: Path, case: Case
) -> None:
    config = tmp_path / "config"
    asking.methods = [case.wants]
    configure(asking, case.lines)
    outcomes: list[tuple[Outcome, tuple[str, ...]]] = []
    for client in (by_openssh, by_lumitui):
        asking.attempts.clear()
        outcome = client(config, Person(secret=case.secret))
        outcomes.append((outcome, tuple(asking.attempts)))
    (theirs, seen_of_theirs), (ours, seen_of_ours) = outcomes
    assert seen_of_theirs == case.seen, theirs.said
    assert seen_of_ours == case.seen, ours.said
    assert ours.accepted == theirs.accepted == any(word.endswith("right") for word in case.seen)


def test_a_configuration_that_leaves_no_way_is_refused_before_anything_is_sent(
    asking: Server, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    configure(asking, "PreferredAuthentications gssapi-with-mic")
    ours = by_lumitui(config, Person())
    assert "allows no login" in ours.said and "PreferredAuthentications" in ours.said
    assert not asking.attempts


def test_what_the_configuration_switches_off_is_named(asking: Server, tmp_path: Path) -> None:
    config = tmp_path / "config"
    asking.methods = ["password"]
    configure(asking, "PasswordAuthentication no")
    assert "disables: password" in by_lumitui(config, Person()).said
