"""Which host keys are trusted, against real servers."""

import subprocess
from pathlib import Path

import pytest

from lumitui.remote.errors import LinkError
from lumitui.remote.ssh.connection import Ssh
from tests.support.servers.sshd import (
    Answers,
    Sshd,
    fingerprint,
    new_key,
    public,
)


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


@pytest.mark.parametrize("name", ["127.0.0.2", "!*,[127.0.0.1]:{port}", "[127.0.0.1]:1"])
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
