"""lumitui beside OpenSSH: what `ssh` refuses, lumitui refuses; what it accepts, lumitui accepts.

Each row of CASES is one ssh_config, given to the real `ssh` and to lumitui against the same sshd.
Where lumitui is stricter on purpose, the row has the sentence that says so.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import paramiko
import pytest

from lumitui.remote.ssh.connection import Ssh
from tests.support.servers.clients.cases import CASES, KNOWN, NO, Case, odd_case
from tests.support.servers.clients.laptop import Laptop, prepared_laptop, write
from tests.support.servers.clients.two_clients import by_lumitui, by_openssh, command_line
from tests.support.servers.sshd import public, running_sshd

# What lumitui says where it refuses more than OpenSSH.
STRICTER = (
    "lumitui supports none of these",
    "is revoked in",  # under the name without the port
    "which lumitui does not support",
    "StrictHostKeyChecking",
)


ONE_OF_FOUR = [
    pytest.param(case, marks=[] if number % 4 == 0 or case.stricter else [pytest.mark.slow])
    for number, case in enumerate(CASES)
]
"""The others with the slow tests."""


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    with prepared_laptop(tmp_path_factory.mktemp("parity") / "laptop") as found:
        yield found


@pytest.fixture(autouse=True)
def environment(laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUMITUI_PLACE", str(laptop.folder))
    monkeypatch.setenv("LUMITUI_AGENT", str(laptop.folder / "agent"))
    monkeypatch.delenv("LUMITUI_UNSET", raising=False)
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.mark.parametrize("case", ONE_OF_FOUR, ids=lambda case: case.name.replace(" ", "_"))
def test_both_clients_accept_and_refuse_the_same(laptop: Laptop, case: Case) -> None:
    write(laptop, case)
    theirs = by_openssh(laptop.server.config, case.person)
    kept = laptop.server.known_hosts.read_text()
    write(laptop, case)
    ours = by_lumitui(laptop.server.config, case.person)
    what = f"{command_line(laptop.server.config)}\n{theirs.said}\n{ours.said}"
    assert theirs.accepted == case.accepts, what
    if case.stricter:
        assert not ours.accepted and case.stricter in ours.said, what
        return
    assert ours.accepted == theirs.accepted, what
    assert ours.accepted or ours.said.count(". ") >= 1, "what happened, and what to try"
    asks = "host-key" in theirs.asked or case.only_lumitui_asks
    assert ("host-key" in ours.asked) == asks, what
    assert bool(kept) == bool(laptop.server.known_hosts.read_text()), "a new key is kept, or not"


def test_an_rsa_key_signs_and_macs_count_only_as_the_configuration_allows(
    laptop: Laptop, tmp_path: Path
) -> None:
    """lumitui offers other MACs beside AES-GCM, which needs none; they must not be used."""
    site = ("PubkeyAcceptedAlgorithms rsa-sha2-256,ssh-ed25519", "Ciphers aes256-ctr")
    key = laptop.folder / "rsa"
    with running_sshd(tmp_path / "s", *site, "MACs hmac-sha2-512,hmac-sha2-256") as server:
        server.trust()
        server.allow(server.identity, key)
        for allowed, accepts in (("rsa-sha2-256", True), ("rsa-sha2-512", False)):
            server.configure(f"IdentityFile {key}", f"PubkeyAcceptedAlgorithms {allowed}")
            assert by_openssh(server.config, NO).accepted == accepts, allowed
            assert by_lumitui(server.config, NO).accepted == accepts, allowed
        for allowed, accepts in (("hmac-sha2-512", True), ("hmac-sha1", False)):
            server.configure(f"MACs {allowed}")
            assert by_openssh(server.config, NO).accepted == accepts, allowed
            ours = by_lumitui(server.config, NO)
            assert ours.accepted == accepts and (accepts or "MACs" in ours.said)


def test_a_token_is_one_where_this_openssh_has_it(laptop: Laptop) -> None:
    """`%j` is empty here: OpenSSH 9.2 refuses it, 9.4 logs in with the key."""
    for line in ("IdentityFile {F}/rsa%j", "IdentityFile {F}/rsa\nCertificateFile {F}/%j"):
        case = Case("a newer token", True, line, own_identity=True)
        write(laptop, case)
        theirs = by_openssh(laptop.server.config, NO)
        ours = by_lumitui(laptop.server.config, NO)
        assert ours.accepted == theirs.accepted, f"{theirs.said}\n{ours.said}"
        assert ours.accepted or "%j" in ours.said


_LOGGED = {
    "Ciphers": r"debug1: kex: \S+ cipher: (\S+)",
    "MACs": r"debug1: kex: .* MAC: (\S+)",
    "KexAlgorithms": r"debug1: kex: algorithm: (\S+)",
}


@pytest.mark.parametrize(
    "line",
    [
        "Ciphers ^aes256-ctr",
        "Ciphers aes192-ctr,aes128-gcm@openssh.com",
        "Ciphers aes256-gcm@openssh.com,aes128-gcm@openssh.com",
        "Ciphers ^aes128-cbc\nMACs ^hmac-sha2-512",
        "KexAlgorithms ecdh-sha2-nistp521",
        "KexAlgorithms ^ecdh-sha2-nistp384",
        "KexAlgorithms diffie-hellman-group16-sha512,curve25519-sha256",
    ],
)
def test_what_is_negotiated_is_what_the_configuration_prefers(tmp_path: Path, line: str) -> None:
    offers = "Ciphers +aes128-cbc,aes192-ctr"
    with running_sshd(tmp_path / "s", offers, "LogLevel DEBUG1") as server:
        server.trust()
        server.configure(line)

        def agreed() -> list[str]:
            """Return what the server logged of that which the line sets."""
            words = [keyword for keyword in _LOGGED if keyword in line]
            text = (server.folder / "log").read_text()
            return [name for keyword in words for name in re.findall(_LOGGED[keyword], text)]

        assert by_openssh(server.config, NO).accepted
        theirs = agreed()
        (server.folder / "log").write_text("")
        assert by_lumitui(server.config, NO).accepted
        assert theirs and agreed() == theirs


# On a busy machine paramiko, having begun new keys, sometimes never sees the server's answer
# ("Key-exchange timed out"): a lost link, which lumitui reports. Keys that the server begins are
# tested in test_rekeying.py.
@pytest.mark.slow
def test_new_keys_are_made_during_a_transfer_as_often_as_the_configuration_says(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchanges: list[object] = []
    begin = paramiko.Transport._send_kex_init  # type: ignore[attr-defined]

    def counted(transport: paramiko.Transport) -> None:
        exchanges.append(transport)
        begin(transport)

    monkeypatch.setattr(paramiko.Transport, "_send_kex_init", counted)
    write(laptop, Case("rekeying", True, "RekeyLimit 1M"))
    with closing(Ssh(laptop.server.login())) as connection:
        assert connection.run("wc -c", stdin=b"x" * 8_000_000).text.strip() == "8000000"
        assert len(connection.run("head -c 8000000 /dev/zero").out) == 8_000_000
    assert 8 < len(exchanges) < 40


def test_a_tiny_limit_for_new_keys_leaves_room_for_the_transfer_and_is_told(laptop: Laptop) -> None:
    write(laptop, Case("rekeying at once", True, "RekeyLimit 16"))
    with closing(Ssh(laptop.server.login())) as connection:
        assert connection.run("wc -c", stdin=b"x" * 1_000_000).text.strip() == "1000000"
        assert len(connection.run("head -c 1000000 /dev/zero").out) == 1_000_000
        assert any("RekeyLimit 16 0:" in note for note in connection.notes)


def test_a_jump_host_has_a_configuration_of_its_own(laptop: Laptop, tmp_path: Path) -> None:
    """What is set for the jump host alone is held against it, and not against the site."""
    with running_sshd(tmp_path / "jump") as jump:
        jump.allow(laptop.server.identity)
        known = KNOWN.format_map(laptop.names)
        for line, accepts in (
            ("AddressFamily any", True),
            ("PubkeyAcceptedAlgorithms rsa-sha2-512", False),
            ("PubkeyAuthentication no", False),
            ("StrictHostKeyChecking yes\nUserKnownHostsFile /dev/null", False),
        ):
            laptop.server.configure("ProxyJump jump")
            hop = f"Host jump\nPort {jump.port}\n{line}\n"
            text = laptop.server.config.read_text().replace("Host *", f"{hop}Host *", 1)
            laptop.server.config.write_text(text)
            there = f"[127.0.0.1]:{jump.port} {public(jump.host_key)}\n"
            laptop.server.known_hosts.write_text(known + there)
            assert by_openssh(laptop.server.config, NO).accepted == accepts, line
            assert by_lumitui(laptop.server.config, NO).accepted == accepts, line


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300))
def test_no_configuration_put_together_by_chance_makes_lumitui_looser(
    laptop: Laptop, seed: int
) -> None:
    case = odd_case(seed)
    write(laptop, case)
    theirs = by_openssh(laptop.server.config, case.person)
    write(laptop, case)
    ours = by_lumitui(laptop.server.config, case.person)
    what = f"{case.lines}\n{laptop.server.known_hosts.read_text()}\n{theirs.said}\n{ours.said}"
    assert theirs.accepted or not ours.accepted, what
    if theirs.accepted and not ours.accepted:
        assert any(sentence in ours.said for sentence in STRICTER), what
