"""New keys in the middle of a long transfer, asked for by sshd, in both directions."""

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.remote.ssh.connection import Ssh
from tests.support.servers.sshd import Sshd, running_sshd

CIPHERS = ("aes128-gcm@openssh.com", "aes256-ctr")
LIMIT, WHOLE = 2 << 20, 24 << 20
"""sshd asks for new keys every so many bytes; bytes of one transfer."""


@pytest.fixture(scope="module")
def rekeying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    folder = tmp_path_factory.mktemp("rekeying")
    options = (
        f"RekeyLimit {LIMIT}",
        "LogLevel DEBUG1",
        "Ciphers aes128-gcm@openssh.com,aes256-ctr",
    )
    with running_sshd(folder, *options) as server:
        yield server


@pytest.fixture(params=CIPHERS)
def ssh(rekeying: Sshd, request: pytest.FixtureRequest) -> Iterator[Ssh]:
    rekeying.configure(f"Ciphers {request.param}")
    connection = rekeying.connect()
    yield connection
    connection.close()


def keys_made(server: Sshd) -> int:
    """How many keys the server has taken so far, over all connections."""
    return server.logged("SSH2_MSG_NEWKEYS received")


def pieces(seed: int) -> Iterator[bytes]:
    made = random.Random(seed)
    for _ in range(WHOLE >> 18):
        yield made.randbytes(1 << 18)


def test_a_long_upload_and_its_answer_are_whole_over_many_keys(
    rekeying: Sshd, ssh: Ssh, tmp_path: Path
) -> None:
    ssh.run("true")
    before = keys_made(rekeying)
    whole = b"".join(pieces(1))
    answer = ssh.run(f"tee {tmp_path}/kept", stdin=pieces(1), timeout=300)
    assert answer.out == whole and (tmp_path / "kept").read_bytes() == whole
    assert keys_made(rekeying) - before >= 2 * WHOLE // LIMIT // 2
    assert ssh.connections == 1


def test_a_long_stream_is_whole_over_many_keys(rekeying: Sshd, ssh: Ssh, tmp_path: Path) -> None:
    whole = b"".join(pieces(2))
    (tmp_path / "file").write_bytes(whole)
    ssh.run("true")
    before, found = keys_made(rekeying), hashlib.sha256()
    for chunk in ssh.stream(f"cat {tmp_path}/file", stop=lambda: False):
        found.update(chunk)
    assert found.digest() == hashlib.sha256(whole).digest()
    assert keys_made(rekeying) - before >= WHOLE // LIMIT // 2
    assert ssh.run("echo on").text == "on\n" and ssh.connections == 1
