"""Whom Ssh trusts, how it logs in and by which route, against real servers."""

import base64
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import paramiko
import pytest
from cryptography.exceptions import UnsupportedAlgorithm

from lumitui.remote.errors import LinkError
from lumitui.remote.ssh.config import Login, jump_login, openssh_table, resolve
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.ssh.prompts import Question
from tests.support.servers.sshd import (
    Answers,
    Sshd,
    fingerprint,
    new_key,
    public,
    running_sshd,
    wait_for,
)

# Whom it trusts


def test_an_unknown_key_needs_a_yes_and_is_then_known(server: Sshd) -> None:
    refusing = Ssh(server.login(), Answers("no"))
    with pytest.raises(LinkError, match="was not accepted"):
        refusing.run("true")
    assert not server.known_hosts.exists()
    answers = Answers("yes")
    accepting = Ssh(server.login(), answers)
    assert accepting.run("echo in").text == "in\n"
    accepting.close()
    (question,) = answers.questions
    assert question.kind == "host-key" and fingerprint(server.host_key) in question.text
    again = Ssh(server.login())
    assert again.run("echo known").text == "known\n"
    again.close()


def test_the_published_key_is_trusted_without_a_question(server: Sshd) -> None:
    server.known_hosts.write_text("# no line end")
    server.configure("HashKnownHosts yes")
    for published in (fingerprint(server.host_key), ""):
        connection = Ssh(server.login(published))
        assert connection.run("echo in").text == "in\n"
        connection.close()
    text = server.known_hosts.read_text()
    assert text.startswith("# no line end\n|1|") and text.count("\n") == 2


def test_another_key_than_the_published_one_is_refused_without_a_question(server: Sshd) -> None:
    answers = Answers("yes")
    with pytest.raises(LinkError, match="the site publishes SHA256:other"):
        Ssh(server.login("SHA256:other"), answers).run("true")
    assert not answers.questions and not server.known_hosts.exists()


def test_a_changed_key_is_refused_with_both_fingerprints(server: Sshd, tmp_path: Path) -> None:
    old = new_key(tmp_path / "old")
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {public(old)}\n")
    answers = Answers("yes")
    with pytest.raises(LinkError) as raised:
        Ssh(server.login(), answers).run("true")
    assert fingerprint(old) in raised.value.message
    assert fingerprint(server.host_key) in raised.value.message
    assert "ssh-keygen -R" in raised.value.hint and not answers.questions


def test_a_revoked_key_is_refused(server: Sshd) -> None:
    server.trust()
    with server.known_hosts.open("a") as file:
        file.write(f"@revoked * {public(server.host_key)}\n")
    with pytest.raises(LinkError, match="is revoked"):
        Ssh(server.login(fingerprint(server.host_key)), Answers("yes")).run("true")


@pytest.mark.parametrize("name", ["[127.0.0.1]:{port}", "[127.0.0.*]:{port}", "other,[*]:{port}"])
def test_names_and_patterns_of_known_hosts(server: Sshd, name: str) -> None:
    server.trust(name.format(port=server.port))
    connection = Ssh(server.login())
    assert connection.run("echo known").text == "known\n"
    connection.close()


@pytest.mark.parametrize("name", ["127.0.0.1", "!*,[127.0.0.1]:{port}", "[127.0.0.1]:1"])
def test_names_that_mean_another_host(server: Sshd, name: str) -> None:
    server.trust(name.format(port=server.port))
    with pytest.raises(LinkError, match="was not accepted"):
        Ssh(server.login()).run("true")


def test_a_hashed_known_hosts_of_openssh_itself(server: Sshd) -> None:
    server.trust()
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", server.known_hosts], check=True)
    connection = Ssh(server.login())
    assert connection.run("echo known").text == "known\n"
    connection.close()


def test_an_alias_of_the_host_key(server: Sshd) -> None:
    server.configure("HostKeyAlias cluster")
    server.trust("cluster")
    connection = Ssh(server.login())
    assert connection.run("echo known").text == "known\n"
    connection.close()


# How it logs in


def test_a_passphrase_is_asked_once_and_not_again_for_the_next_connection(
    server: Sshd, tmp_path: Path
) -> None:
    locked = new_key(tmp_path / "locked", "open sesame")
    server.allow(locked)
    server.configure(f"IdentityFile {locked}")
    connection = server.connect("open sesame")
    assert connection.run("echo in").text == "in\n"
    connection.close()
    assert connection.run("echo in").text == "in\n"
    assert connection.connections == 2
    connection.close()


@pytest.mark.parametrize(
    ("words", "said", "asked"), [(["wrong", "again"], "neither", 2), ([], "not answered", 1)]
)
def test_a_wrong_or_no_passphrase(
    server: Sshd, tmp_path: Path, words: list[str], said: str, asked: int
) -> None:
    locked = new_key(tmp_path / "locked", "open sesame")
    server.allow(locked)
    server.trust()
    answers = Answers(*words)
    with pytest.raises(LinkError, match=said):
        Ssh(server.login(identity=locked), answers).run("true")
    assert [question.kind for question in answers.questions] == ["passphrase"] * asked


def test_a_refused_key_is_named_with_the_user(server: Sshd, tmp_path: Path) -> None:
    server.allow(new_key(tmp_path / "another"))
    with pytest.raises(LinkError) as raised:
        server.connect().run("true")
    assert f"@127.0.0.1:{server.port}" in raised.value.message
    assert fingerprint(server.identity) in raised.value.message


def test_the_agent_and_only_its_configured_key(server: Sshd, tmp_path: Path) -> None:
    place = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", place], stdout=subprocess.DEVNULL)
    try:
        wait_for(place.exists, "the agent")
        held = new_key(tmp_path / "held", kind="rsa")
        server.allow(held)
        subprocess.run(
            ["ssh-add", "-q", held], env={**os.environ, "SSH_AUTH_SOCK": str(place)}, check=True
        )
        held.unlink()
        server.configure(f"IdentityAgent {place}", f"IdentityFile {held}")
        connection = server.connect()
        assert connection.run("echo in").text == "in\n"
        connection.close()
    finally:
        agent.terminate()
        agent.wait(10)


def test_a_certificate(tmp_path: Path) -> None:
    authority = new_key(tmp_path / "authority")
    with running_sshd(tmp_path / "s", f"TrustedUserCAKeys {authority}.pub") as server:
        key = new_key(tmp_path / "key")
        who = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
        command = ["ssh-keygen", "-q", "-s", str(authority), "-I", "test", "-n", who, f"{key}.pub"]
        subprocess.run(command, check=True)
        server.configure(f"IdentityFile {key}")
        connection = server.connect()
        assert connection.run("echo in").text == "in\n"
        connection.close()


def test_threads_that_wait_share_one_question(server: Sshd, tmp_path: Path) -> None:
    locked = new_key(tmp_path / "locked", "open sesame")
    server.trust()
    server.allow(locked)
    server.configure("IdentityFile none")
    asked = threading.Event()
    questions: list[Question] = []

    def ask(question: Question) -> None:
        questions.append(question)
        asked.set()
        time.sleep(0.3)  # the others arrive while the person thinks

    connection = Ssh(server.login(identity=locked), ask)
    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(connection.run, "true")
        assert asked.wait(10)
        others = [threads.submit(connection.run, "true") for _ in range(2)]
        for waiting in (first, *others):
            assert isinstance(waiting.exception(10), LinkError)
    assert len(questions) == 1


# The route


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
    assert found.jumps == ("a@b:3", "c") and found.key_name == "[example.org]:2200"
    assert found.identities == (Path("~/mine").expanduser(), Path.home() / "k")
    jump = jump_login(login, "a@[::1]:3")
    assert (jump.host, jump.port, jump.user) == ("::1", 3, "a")


def test_without_openssh_the_configuration_is_read_and_that_is_said(
    server: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumitui.remote.ssh.connection.has_openssh", lambda: False)
    connection = server.connect()
    assert connection.run("echo in").text == "in\n"
    assert "Include and Match" in connection.notes[0]
    connection.close()
    with pytest.raises(LinkError, match="is not known") as raised:
        Ssh(Login("only-in-an-included-file.invalid")).run("true")
    assert "OpenSSH is not installed" in raised.value.hint


def test_a_key_of_a_security_token_is_skipped(server: Sshd, tmp_path: Path) -> None:
    """OpenSSH names them among its own default keys; the library raises an error of its own."""
    blob = b"openssh-key-v1\x00"
    for part in (b"none", b"none", b""):
        blob += len(part).to_bytes(4, "big") + part
    name = b"sk-ssh-ed25519@openssh.com"
    public = b"".join(len(part).to_bytes(4, "big") + part for part in (name, bytes(32), b"ssh:"))
    private = (
        bytes(8)
        + public
        + b"\x01"
        + b"".join(len(part).to_bytes(4, "big") + part for part in (b"handle", b"", b"comment"))
    )
    private += bytes(range(1, 9))[: -len(private) % 8]
    blob += (1).to_bytes(4, "big")
    for part in (public, private):
        blob += len(part).to_bytes(4, "big") + part
    lines = base64.encodebytes(blob).decode()
    path = tmp_path / "id_ed25519_sk"
    path.write_text(
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}-----END OPENSSH PRIVATE KEY-----\n"
    )
    path.chmod(0o600)
    with pytest.raises(UnsupportedAlgorithm):
        paramiko.PKey.from_path(path)
    server.configure(f"IdentityFile {path}")
    connection = Ssh(server.login(fingerprint(server.host_key)))
    assert connection.run("echo in").text == "in\n"
    connection.close()
