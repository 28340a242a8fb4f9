"""How a login uses keys, passphrases and the agent, against real servers."""

import base64
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import paramiko
import pytest
from cryptography.exceptions import UnsupportedAlgorithm

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.ssh.prompts import LoginQuestion
from tests.support.servers.keys import add, agent, field
from tests.support.servers.sshd import (
    Answers,
    Sshd,
    fingerprint,
    logs_in,
    new_key,
)


def test_a_passphrase_is_asked_once_and_not_again_for_the_next_connection(
    server: Sshd, tmp_path: Path
) -> None:
    locked = new_key(tmp_path / "locked", "open sesame")
    server.allow(locked)
    server.configure(f"IdentityFile {locked}")
    connection = server.connect("open sesame")
    logs_in(connection)
    logs_in(connection)
    assert connection.connections == 2


@pytest.mark.parametrize(
    ("words", "said", "asked"),
    [(["wrong", "again"], "both passphrases were wrong", 2), ([], "did not answer", 1)],
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


def test_a_key_file_that_cannot_be_used_is_skipped_and_named(server: Sshd, tmp_path: Path) -> None:
    loop, good = tmp_path / "loop", server.identity
    loop.symlink_to(loop)
    unusable = [f"{tmp_path}", f"{tmp_path}/{'k' * 300}", f"{loop}", f"{good}/inside", "/dev/null"]
    server.configure(*(f"IdentityFile {place}" for place in (*unusable, good)))
    assert server.connect().run("echo in").text == "in\n", "as in OpenSSH, the next key is tried"
    server.allow(new_key(tmp_path / "other"))
    with pytest.raises(LinkError) as raised:
        Ssh(server.login()).run("true")
    assert f"{tmp_path} (it is not a file)" in raised.value.message
    assert "(File name too long)" in raised.value.message


def test_a_refused_key_is_named_with_the_user(server: Sshd, tmp_path: Path) -> None:
    server.allow(new_key(tmp_path / "another"))
    with pytest.raises(LinkError) as raised:
        server.connect().run("true")
    assert f"@127.0.0.1:{server.port}" in raised.value.message
    assert fingerprint(server.identity) in raised.value.message


def test_the_agent_and_only_its_configured_key(server: Sshd, tmp_path: Path) -> None:
    held = new_key(tmp_path / "held", kind="rsa")
    server.allow(held)
    with agent(tmp_path) as place:
        add(place, held)
        held.unlink()
        server.configure(f"IdentityAgent {place}", f"IdentityFile {held}")
        logs_in(server.connect())


def test_threads_that_wait_share_one_question(server: Sshd, tmp_path: Path) -> None:
    locked = new_key(tmp_path / "locked", "open sesame")
    server.trust()
    server.allow(locked)
    server.configure("IdentityFile none")
    asked = threading.Event()
    questions: list[LoginQuestion] = []

    def ask(question: LoginQuestion) -> None:
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


def test_a_key_of_a_security_token_is_skipped(server: Sshd, tmp_path: Path) -> None:
    """OpenSSH names them among its own default keys; the library raises an error of its own."""
    public = field(b"sk-ssh-ed25519@openssh.com") + field(bytes(32)) + field(b"ssh:")
    private = bytes(8) + public + b"\x01" + field(b"handle") + field(b"") + field(b"comment")
    private += bytes(range(1, 9))[: -len(private) % 8]
    blob = b"openssh-key-v1\x00" + field(b"none") + field(b"none") + field(b"")
    blob += (1).to_bytes(4, "big") + field(public) + field(private)
    lines = base64.encodebytes(blob).decode()
    path = tmp_path / "id_ed25519_sk"
    path.write_text(
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}-----END OPENSSH PRIVATE KEY-----\n"
    )
    path.chmod(0o600)
    with pytest.raises(UnsupportedAlgorithm):
        paramiko.PKey.from_path(path)
    server.configure(f"IdentityFile {path}")
    logs_in(Ssh(server.login(fingerprint(server.host_key))))
