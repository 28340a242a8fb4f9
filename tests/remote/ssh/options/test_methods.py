"""Which ways to log in are used, how often and in which order, beside the real `ssh`.

The server is paramiko's, which takes passwords without an account; test_parity.py has the keys.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.servers.clients.asking_server import CODE, PASSWORD, Server
from tests.support.servers.clients.two_clients import Outcome, Person, by_lumitui, by_openssh
from tests.support.servers.sshd import public


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
def server(tmp_path: Path) -> Iterator[Server]:
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
    server: Server, tmp_path: Path, case: Case
) -> None:
    config = tmp_path / "config"
    server.methods = [case.wants]
    configure(server, case.lines)
    outcomes: list[tuple[Outcome, tuple[str, ...]]] = []
    for client in (by_openssh, by_lumitui):
        server.attempts.clear()
        outcome = client(config, Person(secret=case.secret))
        outcomes.append((outcome, tuple(server.attempts)))
    (theirs, seen_of_theirs), (ours, seen_of_ours) = outcomes
    assert seen_of_theirs == case.seen, theirs.said
    assert seen_of_ours == case.seen, ours.said
    assert ours.accepted == theirs.accepted == any(word.endswith("right") for word in case.seen)


def test_a_configuration_that_leaves_no_way_is_refused_before_anything_is_sent(
    server: Server, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    configure(server, "PreferredAuthentications gssapi-with-mic")
    ours = by_lumitui(config, Person())
    assert "allows no login" in ours.said and "PreferredAuthentications" in ours.said
    assert not server.attempts


def test_what_the_configuration_switches_off_is_named(server: Server, tmp_path: Path) -> None:
    config = tmp_path / "config"
    server.methods = ["password"]
    configure(server, "PasswordAuthentication no")
    assert "disables: password" in by_lumitui(config, Person()).said
