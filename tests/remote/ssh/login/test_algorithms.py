"""No login rests on SHA-1: a server that offers nothing else is refused before any secret is sent.

The library decides that (paramiko takes both below 5.0), so this is a test of the versions that
pyproject.toml allows.
"""

from pathlib import Path

import pytest

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.connection import Ssh
from tests.support.servers.sshd import Answers, Sshd, logs_in, new_key, running_sshd


def refused(server: Sshd) -> None:
    answers = Answers("yes")
    with pytest.raises(LinkError, match="no common algorithm"):
        Ssh(server.login(), answers).run("true")
    assert not answers.questions and server.logged("Accepted ") == 0


@pytest.mark.parametrize(
    "kex",
    [
        "diffie-hellman-group14-sha1",
        "diffie-hellman-group1-sha1",
        "diffie-hellman-group-exchange-sha1",
    ],
)
def test_a_key_exchange_with_sha1_is_refused(tmp_path: Path, kex: str) -> None:
    with running_sshd(tmp_path / "server", f"KexAlgorithms {kex}") as server:
        refused(server)


def test_an_rsa_host_key_with_sha1_is_refused_and_with_sha2_taken(tmp_path: Path) -> None:
    rsa = new_key(tmp_path / "rsa", kind="rsa")
    for name, old in (("ssh-rsa", True), ("rsa-sha2-512", False)):
        options = [f"HostKey {rsa}", f"HostKeyAlgorithms {name}"]
        with running_sshd(tmp_path / name, *options) as server:
            if old:
                refused(server)
                continue
            logs_in(Ssh(server.login(), Answers("yes")))
