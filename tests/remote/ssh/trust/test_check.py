"""Which host keys are trusted, against real servers."""

import base64
import subprocess
from pathlib import Path

import pytest

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.ssh.options.resolve import resolve
from lumitui.remote.ssh.options.sources import openssh_table
from lumitui.remote.ssh.trust.host_trust import check
from lumitui.remote.ssh.trust.known_hosts import HostKey
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


def test_a_published_key_does_not_replace_a_known_one_where_only_known_ones_count(
    server: Sshd,
) -> None:
    server.configure("StrictHostKeyChecking yes")
    answers = Answers("yes")
    with pytest.raises(LinkError, match="StrictHostKeyChecking is yes") as raised:
        Ssh(server.login(fingerprint(server.host_key)), answers).run("true")
    assert "the site publishes" in raised.value.hint and not answers.questions
    assert not server.known_hosts.exists()


def test_a_published_key_needs_no_file_to_be_kept_in(server: Sshd) -> None:
    server.configure("UserKnownHostsFile none")
    connection = Ssh(server.login(fingerprint(server.host_key)))
    assert connection.run("echo in").text == "in\n"
    connection.close()
    with pytest.raises(LinkError, match="UserKnownHostsFile names no file"):
        Ssh(server.login(), Answers("yes")).run("true")


@pytest.mark.parametrize("strict", ["ask", "yes", "accept-new"])
def test_a_published_key_that_is_revoked_is_refused(
    server: Sshd, tmp_path: Path, strict: str
) -> None:
    revoked = tmp_path / "revoked"
    revoked.write_text(public(server.host_key) + "\n")
    server.trust()
    server.configure(f"StrictHostKeyChecking {strict}", f"RevokedHostKeys {revoked}")
    with pytest.raises(LinkError, match="is revoked in"):
        Ssh(server.login(fingerprint(server.host_key)), Answers("yes")).run("true")


def test_a_key_of_another_type_than_the_known_one_counts_as_changed(
    server: Sshd, tmp_path: Path
) -> None:
    old = new_key(tmp_path / "old", kind="ecdsa")
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {public(old)}\n")
    answers = Answers("yes")
    with pytest.raises(LinkError, match=r"changed: .*\(ecdsa-sha2-nistp256\) is known") as raised:
        Ssh(server.login(fingerprint(server.host_key)), answers).run("true")
    assert "now publishes" in raised.value.hint and not answers.questions


def test_another_key_that_is_known_for_the_address_is_refused(server: Sshd, tmp_path: Path) -> None:
    """CheckHostIP. OpenSSH leaves 127.0.0.1 out, so the address is a made-up one."""
    other = new_key(tmp_path / "other")
    known = f"[127.0.0.1]:{server.port} {public(server.host_key)}\n"
    server.known_hosts.write_text(f"{known}[192.0.2.7]:{server.port} {public(other)}\n")
    kind, blob = public(server.host_key).split()
    shown = HostKey(kind, base64.b64decode(blob))
    for wanted in ("no", "yes"):
        server.configure(f"CheckHostIP {wanted}")
        login = server.login()
        host = resolve(login, openssh_table(login))
        check(host, shown, {}, Answers(), "192.0.2.8")
        if wanted == "no":
            check(host, shown, {}, Answers(), "192.0.2.7")
            continue
        with pytest.raises(LinkError, match=r"192\.0\.2\.7.* changed"):
            check(host, shown, {}, Answers(), "192.0.2.7")


def test_an_authority_that_vouches_for_a_host_is_mentioned_where_nobody_is_asked(
    server: Sshd, tmp_path: Path
) -> None:
    authority = new_key(tmp_path / "authority")
    server.known_hosts.write_text(f"@cert-authority * {public(authority)}\n")
    server.configure("StrictHostKeyChecking yes")
    with pytest.raises(LinkError, match="cannot check host certificates"):
        Ssh(server.login(), Answers("yes")).run("true")


def test_a_command_that_says_too_much_or_fails(server: Sshd, tmp_path: Path) -> None:
    script = tmp_path / "keys"
    script.write_text("#!/bin/sh\nyes '# noise'\n")
    script.chmod(0o700)
    server.trust()
    server.configure(f"KnownHostsCommand {script}")
    with pytest.raises(LinkError, match="more than 1048576 bytes"):
        Ssh(server.login()).run("true")
    script.write_text("#!/bin/sh\necho no keys today >&2; exit 3\n")
    with pytest.raises(LinkError, match=r"KnownHostsCommand for .* failed"):
        Ssh(server.login()).run("true")
