"""The route to a site as the person's ssh configuration gives it, against real servers."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.remote.site.errors import AnswerNeeded, LinkError
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.ssh.prompts import attendance
from tests.support.servers.keys import add, agent
from tests.support.servers.sshd import (
    Answers,
    Sshd,
    fingerprint,
    free_port,
    logs_in,
    new_key,
    public,
    running_sshd,
    wait_for,
)

# What a thread of the library dies of would be printed over the screen.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")


@pytest.fixture(scope="module")
def jump_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("jump")) as other:
        yield other


@pytest.fixture
def jump(server: Sshd, jump_host: Sshd) -> Sshd:
    """A jump host in front of `server`; each has its own identity and host key."""
    jump_host.allow(jump_host.identity)
    configure(server, jump_host, "ProxyJump jump")
    know(server, site(server), site(jump_host))
    return jump_host


def configure(server: Sshd, jump: Sshd, *lines: str, identity: Path | None = None) -> None:
    server.configure(*lines)
    hop = f"Host jump\n  Port {jump.port}\n  IdentityFile {identity or jump.identity}\n"
    server.config.write_text(server.config.read_text().replace("Host *", f"{hop}Host *", 1))


def site(server: Sshd, key: Path | None = None, marker: str = "") -> str:
    """A line of known_hosts."""
    return f"{marker} [127.0.0.1]:{server.port} {public(key or server.host_key)}\n".lstrip()


def know(server: Sshd, *lines: str) -> None:
    server.known_hosts.write_text("".join(lines))


def test_a_jump_host_with_a_user_and_a_key_of_its_own(server: Sshd, jump: Sshd) -> None:
    accepted = (server.logged("Accepted publickey"), jump.logged("Accepted publickey"))
    connection = server.connect()
    assert connection.run("echo in").text == "in\n"
    assert connection.connections == 1
    for place, before in zip((server, jump), accepted, strict=True):
        assert place.logged("Accepted publickey") == before + 1
        assert place.logged(fingerprint(place.identity)) > 0, "its own key, not the other's"
    connection.close()
    wait_for(lambda: not jump.sessions() and not server.sessions(), "both to be left")


@pytest.mark.parametrize("known", ["unknown", "changed", "revoked"])
def test_the_jump_host_s_key_is_checked_as_strictly(
    server: Sshd, jump: Sshd, tmp_path: Path, known: str
) -> None:
    lines = {
        "unknown": [],
        "changed": [site(jump, new_key(tmp_path / "old"))],
        "revoked": [site(jump), site(jump, marker="@revoked")],
    }[known]
    know(server, site(server), *lines)
    before = (server.logged("Connection from"), jump.logged("Accepted "))
    answers = Answers("no")
    said = {"unknown": "did not accept", "changed": "changed", "revoked": "is revoked"}[known]
    # What the site publishes is of the site, not of the jump host.
    with pytest.raises(LinkError, match=said) as raised:
        Ssh(server.login(fingerprint(jump.host_key)), answers).run("true")
    assert f"[127.0.0.1]:{jump.port}" in raised.value.message
    assert len(answers.questions) == (known == "unknown")
    assert before == (server.logged("Connection from"), jump.logged("Accepted "))


@pytest.mark.parametrize("known", ["changed", "revoked"])
def test_the_site_s_key_is_checked_behind_a_jump_host_as_well(
    server: Sshd, jump: Sshd, tmp_path: Path, known: str
) -> None:
    old = site(server, new_key(tmp_path / "old"))
    lines = [old] if known == "changed" else [site(server), site(server, marker="@revoked")]
    know(server, site(jump), *lines)
    accepted = server.logged("Accepted ")
    with pytest.raises(LinkError, match=known) as raised:
        Ssh(server.login(), Answers("yes")).run("true")
    assert f"[127.0.0.1]:{server.port}" in raised.value.message
    assert server.logged("Accepted ") == accepted
    wait_for(lambda: not jump.sessions(), "the jump host to be left")


def test_a_jump_host_that_refuses_the_login_is_named(
    server: Sshd, jump: Sshd, tmp_path: Path
) -> None:
    configure(server, jump, "ProxyJump jump", identity=new_key(tmp_path / "foreign"))
    with pytest.raises(LinkError, match=rf"@127\.0\.0\.1:{jump.port} was refused"):
        server.connect().run("true")


def test_a_jump_host_that_does_not_reach_the_site_says_so(server: Sshd, jump: Sshd) -> None:
    port = free_port()
    configure(server, jump, "ProxyJump jump", f"Port {port}")
    with pytest.raises(LinkError, match=rf"cannot reach 127\.0\.0\.1 on port {port}"):
        server.connect().run("true")
    wait_for(lambda: not jump.sessions(), "the jump host to be left")


def test_two_jump_hosts(server: Sshd, jump: Sshd, tmp_path: Path) -> None:
    with running_sshd(tmp_path / "second") as second:
        second.allow(jump.identity)
        configure(server, jump, "ProxyJump jump,second")
        hop = f"Host second\n  Port {second.port}\n  IdentityFile {jump.identity}\n"
        text = server.config.read_text().replace("Host *", f"{hop}Host *", 1)
        server.config.write_text(text)
        know(server, site(server), site(jump), site(second))
        connection = server.connect()
        assert connection.run("echo in").text == "in\n"
        assert second.logged("Accepted publickey") == 1
        connection.close()


def test_a_jump_host_that_dies_leaves_one_connection_after_the_next_request(
    server: Sshd, jump: Sshd
) -> None:
    connection = server.connect()
    connection.run("true")
    server.drop()  # the far end alone: the jump host's connection still stands
    wait_for(lambda: connection._link is not None and not connection._link.alive(), "the end")
    assert connection.run("echo again").text == "again\n"
    assert len(jump.sessions()) == len(server.sessions()) == 1
    jump.drop()
    assert connection.run("echo again").text == "again\n"
    assert len(jump.sessions()) == 1 and connection.connections == 3
    connection.close()


def test_a_proxy_command_that_says_nothing_is_given_up(server: Sshd) -> None:
    server.configure("ProxyCommand sleep 60", "ConnectTimeout 1")
    began = time.monotonic()
    with pytest.raises(LinkError, match="ProxyCommand"):
        server.connect().run("true")
    assert time.monotonic() - began < 30


def test_a_proxy_command_of_openssh_with_a_host_key_that_is_not_known(server: Sshd) -> None:
    """`ssh -W` asks its own questions; without a terminal it ends, and its last line is shown."""
    server.trust()
    command = f"ssh -F {server.config} -o BatchMode=yes -o UserKnownHostsFile=/dev/null"
    server.configure(f"ProxyCommand {command} -o ProxyCommand=none -W %h:%p site")
    with pytest.raises(LinkError, match="Host key verification failed"):
        server.connect().run("true")


def test_an_included_file_is_followed(server: Sshd, tmp_path: Path) -> None:
    """paramiko reads no Include by itself: OpenSSH resolves it."""
    server.trust()
    included = tmp_path / "of the site"
    included.write_text("Host alias\n  HostName 127.0.0.1\n  HostKeyAlias alias.example\n")
    config = tmp_path / "config"
    config.write_text(f'Include "{included}"\n' + server.config.read_text())
    server.trust("alias.example")
    login = server.login()
    logs_in(Ssh(type(login)("alias", config=config)))


@pytest.mark.parametrize(("holder", "first"), [("second", "a b"), ("first", "a b"), ("none", "c")])
def test_known_hosts_files_with_spaces_and_several(
    server: Sshd, tmp_path: Path, holder: str, first: str
) -> None:
    one, two = tmp_path / first / "known hosts", tmp_path / "others"
    one.parent.mkdir()
    line = site(server)
    if holder != "none":
        (one if holder == "first" else two).write_text(line)
    server.configure(f'UserKnownHostsFile "{one}" {two}')
    logs_in(Ssh(server.login(fingerprint(server.host_key) if holder == "none" else "")))
    assert one.exists() == (holder != "second"), "a new key is added to the first file"
    assert two.exists() == (holder == "second")


def test_identities_only_keeps_the_agent_s_other_keys_at_home(server: Sshd, tmp_path: Path) -> None:
    server.trust()
    held = new_key(tmp_path / "held")
    with agent(tmp_path) as place:
        add(place, held)
        server.allow(held)
        server.configure(f"IdentityAgent {place}")  # with IdentitiesOnly yes
        with pytest.raises(LinkError, match="was refused") as raised:
            server.connect().run("true")
        assert fingerprint(held) not in raised.value.message
        assert server.logged(fingerprint(held)) == 0
        server.configure(f"IdentityAgent {place}", "IdentitiesOnly no")
        logs_in(server.connect())


def test_more_keys_than_the_site_allows_tries(server: Sshd, tmp_path: Path) -> None:
    with running_sshd(tmp_path / "s", "MaxAuthTries 2") as strict, agent(tmp_path) as place:
        for number in range(4):
            add(place, new_key(tmp_path / f"key{number}"))
        strict.allow()
        strict.configure(f"IdentityAgent {place}", "IdentitiesOnly no")
        with pytest.raises(LinkError, match="ended the connection") as raised:
            strict.connect().run("true")
        assert "IdentitiesOnly" in raised.value.hint


def test_the_environment_s_agent_is_used_without_a_word_in_the_configuration(
    server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.trust()
    held = new_key(tmp_path / "held")
    with agent(tmp_path) as place:
        add(place, held)
        server.allow(held)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(place))
        server.configure("IdentityAgent SSH_AUTH_SOCK", "IdentitiesOnly no", "IdentityFile none")
        logs_in(server.connect())
    server.allow(server.identity)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "gone"))
    logs_in(server.connect())  # an agent that is not there is passed over


@pytest.mark.parametrize("what", ["passphrase", "host-key"])
def test_nobody_is_asked_for_a_passphrase_or_a_host_s_key_by_a_clock(
    server: Sshd, tmp_path: Path, what: str
) -> None:
    answers = Answers("open sesame" if what == "passphrase" else "yes")
    if what == "passphrase":
        server.trust()
        locked = new_key(tmp_path / "locked", "open sesame")
        server.allow(locked)
        server.configure(f"IdentityFile {locked}")
    connection = Ssh(server.login(), answers)
    for _ in range(3):
        with attendance(False), pytest.raises(AnswerNeeded):
            connection.run("true")
    assert connection.connections == 1 and not answers.questions
    assert connection.run("echo in").text == "in\n"
    assert len(answers.questions) == 1
    server.drop()
    with attendance(False):  # what was opened and trusted stays so
        assert connection.run("echo back").text == "back\n"
    connection.close()


def test_ssh_itself_agrees_with_the_way(server: Sshd, jump: Sshd) -> None:
    """The same configuration through OpenSSH's own client."""
    plain = ["ssh", "-F", str(server.config), "-o", "BatchMode=yes", "site", "echo in"]
    done = subprocess.run(plain, capture_output=True, text=True, timeout=20)
    assert done.stdout == "in\n", done.stderr


def test_a_missing_key_file_is_named(server: Sshd, tmp_path: Path) -> None:
    server.trust()
    server.configure()
    key = server.identity.rename(tmp_path / "moved")
    with pytest.raises(LinkError, match="offered: no key") as raised:
        server.connect().run("true")
    assert f"No key was found at {server.identity}: set IdentityFile" in raised.value.hint
    key.rename(server.identity)
