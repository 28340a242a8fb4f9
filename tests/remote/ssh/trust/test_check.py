"""Which host keys are trusted, against real servers."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.connection import Ssh
from tests.support.servers.sshd import (
    Answers,
    Sshd,
    fingerprint,
    logs_in,
    new_key,
    public,
)


def test_an_unknown_key_needs_a_yes_and_is_then_known(server: Sshd) -> None:
    refusing = Ssh(server.login(), Answers("no"))
    with pytest.raises(LinkError, match="did not accept"):
        refusing.run("true")
    assert not server.known_hosts.exists()
    answers = Answers("yes")
    logs_in(Ssh(server.login(), answers))
    (question,) = answers.questions
    assert question.kind == "host-key" and fingerprint(server.host_key) in question.text
    logs_in(Ssh(server.login()))


def test_the_published_key_is_trusted_without_a_question(server: Sshd) -> None:
    server.known_hosts.write_text("# no line end")
    server.configure("HashKnownHosts yes")
    for published in (fingerprint(server.host_key), ""):
        logs_in(Ssh(server.login(published)))
    text = server.known_hosts.read_text()
    assert text.startswith("# no line end\n|1|") and text.count("\n") == 2


def test_a_key_that_the_profile_has_unverified_needs_a_yes(server: Sshd) -> None:
    answers = Answers("no", "yes")
    unsure = replace(server.login(fingerprint(server.host_key)), sure=False)
    with pytest.raises(LinkError, match="did not accept"):
        Ssh(unsure, answers).run("true")
    with pytest.raises(LinkError, match="the site publishes SHA256:other"):
        Ssh(replace(server.login("SHA256:other"), sure=False), answers).run("true")
    accepting = Ssh(unsure, answers)
    assert accepting.host_key is None and accepting.run("echo in").text == "in\n"
    assert accepting.host_key and accepting.host_key.fingerprint == fingerprint(server.host_key)
    accepting.close()
    assert all("lists this key as unverified" in one.text for one in answers.questions)
    assert len(answers.questions) == 2


def test_a_published_key_that_known_hosts_contradicts_is_a_doubt(server: Sshd) -> None:
    accepting = Ssh(server.login(), Answers("yes"))
    accepting.run("true")
    accepting.close()
    assert not Ssh(server.login(fingerprint(server.host_key))).key_doubts
    (doubt,) = Ssh(server.login("SHA256:other")).key_doubts
    assert "publishes SHA256:other" in doubt and fingerprint(server.host_key) in doubt


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
    logs_in(Ssh(server.login()))


@pytest.mark.parametrize("name", ["127.0.0.2", "!*,[127.0.0.1]:{port}", "[127.0.0.1]:1"])
def test_names_that_mean_another_host(server: Sshd, name: str) -> None:
    server.trust(name.format(port=server.port))
    with pytest.raises(LinkError, match="Nobody accepted"):
        Ssh(server.login()).run("true")


def test_a_hashed_known_hosts_of_openssh_itself(server: Sshd) -> None:
    server.trust()
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", server.known_hosts], check=True)
    logs_in(Ssh(server.login()))


def test_an_alias_of_the_host_key(server: Sshd) -> None:
    server.configure("HostKeyAlias cluster")
    server.trust("cluster")
    logs_in(Ssh(server.login()))


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
    logs_in(Ssh(server.login(fingerprint(server.host_key))))
    with pytest.raises(LinkError, match="UserKnownHostsFile is empty"):
        Ssh(server.login(), Answers("yes")).run("true")


@pytest.mark.parametrize("strict", ["ask", "yes", "accept-new"])
def test_a_published_key_that_is_revoked_is_refused(server: Sshd, strict: str) -> None:
    server.known_hosts.write_text(f"@revoked * {public(server.host_key)}\n")
    server.configure(f"StrictHostKeyChecking {strict}")
    with pytest.raises(LinkError, match="is revoked in"):
        Ssh(server.login(fingerprint(server.host_key)), Answers("yes")).run("true")


def test_a_key_of_another_type_than_the_known_one_counts_as_changed(
    server: Sshd, tmp_path: Path
) -> None:
    old = new_key(tmp_path / "old", kind="ecdsa")
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {public(old)}\n")
    answers = Answers("yes")
    with pytest.raises(
        LinkError, match=r"changed: known_hosts has .* \(ecdsa-sha2-nistp256\)"
    ) as raised:
        Ssh(server.login(fingerprint(server.host_key)), answers).run("true")
    assert "now publishes" in raised.value.hint and not answers.questions


def test_an_authority_that_vouches_for_a_host_is_mentioned_where_nobody_is_asked(
    server: Sshd, tmp_path: Path
) -> None:
    authority = new_key(tmp_path / "authority")
    server.known_hosts.write_text(f"@cert-authority * {public(authority)}\n")
    server.configure("StrictHostKeyChecking yes")
    with pytest.raises(LinkError, match="cannot check host certificates"):
        Ssh(server.login(), Answers("yes")).run("true")
