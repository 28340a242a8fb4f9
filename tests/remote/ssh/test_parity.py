"""lumitui beside OpenSSH: what `ssh` refuses, lumitui refuses; what it accepts, lumitui accepts.

Each row of CASES is one ssh_config, given to the real `ssh` and to lumitui against the same sshd.
Where lumitui is stricter on purpose, the row has the sentence that says so.
"""

import getpass
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import paramiko
import pytest

from lumitui.remote.ssh.connection import Ssh
from tests.support.servers.keys import add as add_to_agent
from tests.support.servers.keys import agent, certify
from tests.support.servers.sshd import Sshd, new_key, public, running_sshd
from tests.support.servers.two_clients import Person, by_lumitui, by_openssh, command_line

KNOWN = "[127.0.0.1]:{port} {key}\n"
RSA_KNOWN = "[127.0.0.1]:{port} {rsa}\n"
YES, NO = Person(trusts=True), Person(trusts=False)
NEVER = "/nonexistent/lumitui"


@dataclass(frozen=True)
class Case:
    """One configuration; `{names}` in it are those of `Laptop.names`."""

    name: str
    accepts: bool
    """Whether OpenSSH logs in."""
    lines: str = ""
    known: str = KNOWN
    person: Person = NO
    stricter: str = ""
    """What lumitui says when it refuses what OpenSSH accepts."""
    only_lumitui_asks: bool = False
    own_identity: bool = False
    """Whether `lines` say which key to use."""


CASES = (
    Case("nothing set", True),
    # Revoked host keys
    Case("revoked: a list with the key", False, "RevokedHostKeys {F}/revoked.list"),
    Case("revoked: a list with another key", True, "RevokedHostKeys {F}/others.list"),
    Case("revoked: a list with a comment only", True, "RevokedHostKeys {F}/comment.list"),
    Case("revoked: a list with a line that is no key", False, "RevokedHostKeys {F}/broken.list"),
    Case("revoked: an empty file", True, "RevokedHostKeys {F}/empty.list"),
    Case("revoked: no such file", False, "RevokedHostKeys {F}/missing"),
    Case("revoked: a folder", False, "RevokedHostKeys {F}"),
    Case("revoked: none", True, "RevokedHostKeys none"),
    Case("revoked: KRL with the key", False, "RevokedHostKeys {F}/revoked.krl"),
    Case("revoked: KRL with another key", True, "RevokedHostKeys {F}/others.krl"),
    Case("revoked: KRL with the SHA-1 hash", False, "RevokedHostKeys {F}/sha1.krl"),
    Case("revoked: KRL with the SHA-256 hash", False, "RevokedHostKeys {F}/sha256.krl"),
    Case("revoked: KRL with serial numbers", True, "RevokedHostKeys {F}/serial.krl"),
    Case("revoked: KRL cut short", False, "RevokedHostKeys {F}/cut.krl"),
    Case("revoked: a person's yes does not help", False, "RevokedHostKeys {F}/revoked.list",
         known="", person=YES),
    Case("revoked: by a marker", False, known=KNOWN + "@revoked * {key}\n"),
    # Which keys are known
    Case("known: nothing, and the person declines", False, known=""),
    Case("known: nothing, and the person says yes", True, known="", person=YES),
    Case("known: another key of that type", False, known="[127.0.0.1]:{port} {other}\n",
         person=YES),
    Case("known: without the port", True, known="127.0.0.1 {key}\n"),
    Case("known: without the port, another key", False, known="127.0.0.1 {other}\n"),
    Case("known: with the port another key, without it this one", False,
         known="[127.0.0.1]:{port} {other}\n127.0.0.1 {key}\n"),
    Case("known: an alias", True, "HostKeyAlias cluster", known="cluster {key}\n"),
    Case("known: an alias does not use the address", False, "HostKeyAlias cluster"),
    Case("known: an alias has no port", False, "HostKeyAlias cluster",
         known="[cluster]:{port} {key}\n"),
    Case("known: by the global file", True, "GlobalKnownHostsFile {F}/global", known=""),
    Case("known: the user's file is none", False, "UserKnownHostsFile none"),
    Case("known: a file named by %k", True, "UserKnownHostsFile {F}/known-%k", known=""),
    Case("known: a file named by ${{}}", True, "UserKnownHostsFile ${{LUMITUI_PLACE}}/global",
         known=""),
    Case("known: only the RSA key", True, known=RSA_KNOWN),
    Case("known: a key of another type than the one that is shown", False,
         "HostKeyAlgorithms ssh-ed25519", known=RSA_KNOWN, person=YES),
    Case("known: a line with the wrong type", False,
         known="[127.0.0.1]:{port} ssh-rsa {blob}\n"),
    Case("command: gives the key", True, "KnownHostsCommand /bin/cat {F}/global", known=""),
    Case("command: gives another key", False, "KnownHostsCommand /bin/cat {F}/global-other",
         known=""),
    Case("command: gives nothing", False, "KnownHostsCommand /bin/true", known=""),
    Case("command: fails", False, "KnownHostsCommand /bin/false"),
    Case("command: does not exist", True, "KnownHostsCommand " + NEVER,
         stricter="KnownHostsCommand"),
    Case("command: revokes", False, "KnownHostsCommand /bin/echo @revoked %H %t %K"),
    Case("command: repeats what is shown", True, "KnownHostsCommand /bin/echo %H %t %K", known=""),
    # Strictness
    Case("strict yes: known", True, "StrictHostKeyChecking yes"),
    Case("strict yes: not known, and nobody is asked", False, "StrictHostKeyChecking yes",
         known="", person=YES),
    Case("strict accept-new: not known", True, "StrictHostKeyChecking accept-new", known=""),
    Case("strict accept-new: changed", False, "StrictHostKeyChecking accept-new",
         known="[127.0.0.1]:{port} {other}\n"),
    Case("strict accept-new: revoked", False,
         "StrictHostKeyChecking accept-new\nRevokedHostKeys {F}/revoked.list", known=""),
    Case("strict no: not known", True, "StrictHostKeyChecking no", known="",
         stricter="StrictHostKeyChecking"),
    Case("strict off: not known, and the person says yes", True, "StrictHostKeyChecking off",
         known="", person=YES, only_lumitui_asks=True),
    Case("strict no: changed", True, "StrictHostKeyChecking no",
         known="[127.0.0.1]:{port} {other}\n", stricter="changed"),
    Case("strict ask in batch mode: not known", False, "BatchMode yes", known="", person=YES),
    Case("localhost without authentication", True, "NoHostAuthenticationForLocalhost yes",
         known="", stricter="NoHostAuthenticationForLocalhost"),
    Case("DNS says nothing", False, "VerifyHostKeyDNS yes", known=""),
    # Algorithms
    Case("host keys: RSA only, known", True, "HostKeyAlgorithms rsa-sha2-512", known=RSA_KNOWN),
    Case("host keys: RSA only, ed25519 known", False, "HostKeyAlgorithms rsa-sha2-512"),
    Case("host keys: an order of one's own", False, "HostKeyAlgorithms rsa-sha2-256,ssh-ed25519",
         person=YES),
    Case("host keys: one added, RSA known", True, "HostKeyAlgorithms +ssh-rsa", known=RSA_KNOWN),
    Case("host keys: one moved to the front", False, "HostKeyAlgorithms ^rsa-sha2-256"),
    Case("host keys: RSA known without the port", False, known="127.0.0.1 {rsa}\n"),
    Case("host keys: RSA known, and a key that is revoked", True,
         known="[127.0.0.1]:{port} {other}\n" + RSA_KNOWN + "@revoked * {other}\n"),
    Case("host keys: none that the site has", False, "HostKeyAlgorithms ecdsa-sha2-nistp521"),
    Case("host keys: removed from the list", False, "HostKeyAlgorithms -ssh-ed25519*"),
    Case("host keys: RSA shorter than asked", False,
         "HostKeyAlgorithms rsa-sha2-512\nRequiredRSASize 4096", known=RSA_KNOWN),
    Case("kex: one that both have", True, "KexAlgorithms diffie-hellman-group14-sha256"),
    Case("kex: one that the site has under another name only", False,
         "KexAlgorithms curve25519-sha256"),
    Case("kex: one that the site has not", False, "KexAlgorithms diffie-hellman-group18-sha512"),
    Case("ciphers: one that both have", True, "Ciphers aes256-ctr"),
    Case("ciphers: one that the site has not", False, "Ciphers aes192-ctr"),
    Case("ciphers: one that lumitui has not", True, "Ciphers chacha20-poly1305@openssh.com",
         stricter="Ciphers"),
    Case("MACs: one that both have", True, "Ciphers aes256-ctr\nMACs hmac-sha2-512"),
    Case("MACs: one that the site has not", False,
         "Ciphers aes256-ctr\nMACs hmac-sha2-256-etm@openssh.com"),
    Case("MACs: do not matter with GCM", True,
         "Ciphers aes256-gcm@openssh.com\nMACs hmac-sha2-256-etm@openssh.com"),
    Case("compression", True, "Compression yes"),
    Case("rekeying soon", True, "RekeyLimit 1M 1h"),
    # Ways to log in
    Case("no public keys", False, "PubkeyAuthentication no"),
    Case("public keys, unbound", True, "PubkeyAuthentication unbound"),
    Case("preferred: passwords only", False, "PreferredAuthentications password"),
    Case("preferred: keys only", True, "PreferredAuthentications publickey"),
    Case("preferred: one that lumitui has not", False, "PreferredAuthentications gssapi-with-mic"),
    Case("accepted: not the key's type", False, "PubkeyAcceptedAlgorithms rsa-sha2-512"),
    Case("accepted: removed from the list", False, "PubkeyAcceptedAlgorithms -ssh-ed25519"),
    Case("accepted: the RSA key's", True,
         "IdentityFile {F}/rsa\nPubkeyAcceptedAlgorithms rsa-sha2-256", own_identity=True),
    Case("accepted: an RSA key too short", False, "IdentityFile {F}/rsa\nRequiredRSASize 4096",
         own_identity=True),
    Case("the agent's key", True, "IdentityAgent {F}/agent\nIdentitiesOnly no\nIdentityFile none",
         own_identity=True),
    Case("the agent's key, of a type not accepted", False,
         "IdentityAgent {F}/agent\nIdentitiesOnly no\nIdentityFile none\n"
         "PubkeyAcceptedAlgorithms rsa-sha2-*", own_identity=True),
    Case("the agent by $NAME", True,
         "IdentityAgent $LUMITUI_AGENT\nIdentitiesOnly no\nIdentityFile none", own_identity=True),
    # Files of keys
    Case("a key that others may read", False, "IdentityFile {F}/open", own_identity=True),
    Case("PKCS#8, RSA", True, "IdentityFile {F}/rsa.p8", own_identity=True),
    Case("PKCS#8, ECDSA", True, "IdentityFile {F}/ecdsa.p8", own_identity=True),
    Case("PKCS#8, RSA, with a passphrase", True, "IdentityFile {F}/rsa.locked.p8",
         person=Person(secret="open sesame"), own_identity=True),
    Case("PKCS#8, a wrong passphrase", False, "IdentityFile {F}/rsa.locked.p8",
         person=Person(secret="guess"), own_identity=True),
    Case("a passphrase in batch mode", False, "IdentityFile {F}/rsa.locked.p8\nBatchMode yes",
         person=Person(secret="open sesame"), own_identity=True),
    Case("PEM, ECDSA", True, "IdentityFile {F}/ecdsa.pem", own_identity=True),
    Case("a certificate", True, "IdentityFile {F}/signed\nCertificateFile {F}/signed-by-%k.pub",
         own_identity=True),
    Case("a certificate of a type not accepted", False,
         "IdentityFile {F}/signed\nCertificateFile {F}/signed-by-%k.pub\n"
         "PubkeyAcceptedAlgorithms ssh-ed25519", own_identity=True),
    Case("tokens in IdentityFile", True, "IdentityFile {F}/tokens-%h-%p-%n-%r-%i-%u-%k-%%-%L",
         own_identity=True),
    Case("%C in IdentityFile", True, "IdentityFile {F}/%C", own_identity=True),
    Case("${{}} in IdentityFile", True, "IdentityFile ${{LUMITUI_PLACE}}/rsa", own_identity=True),
    Case("${{}} that is not set", False, "IdentityFile ${{LUMITUI_UNSET}}/rsa",
         own_identity=True),
    Case("a token that does not exist", False, "IdentityFile {F}/%Y", own_identity=True),
    # The way there
    Case("bind: an address of this machine", True, "BindAddress 127.0.0.5"),
    Case("bind: an address of another", False, "BindAddress 192.0.2.99"),
    Case("bind: the key is good from there only", True,
         "BindAddress 127.0.0.5\nIdentityFile {F}/from", own_identity=True),
    Case("bind: the key is not good from elsewhere", False, "IdentityFile {F}/from",
         own_identity=True),
    Case("bind: an interface", True, "BindInterface lo", stricter="BindInterface"),
    Case("address family: the right one", True, "AddressFamily inet"),
    Case("address family: the wrong one", False, "AddressFamily inet6"),
    Case("a proxy that passes its socket", True,
         "ProxyCommand python3 {F}/dial.py %h %p\nProxyUseFdpass yes"),
    Case("a proxy that passes no socket", False,
         "ProxyCommand true %h %p\nProxyUseFdpass yes"),
    Case("a token that a proxy has not", False, "ProxyCommand nc %h %p %i"),
    # Without a meaning for lumitui
    Case("forwards and tunnels", True,
         "ForwardAgent yes\nForwardX11 yes\nLocalForward {F}/s 127.0.0.1:1\nRequestTTY force"),
    Case("tunes", True, "IPQoS none\nTCPKeepAlive no\nServerAliveInterval 7\nLogLevel QUIET\n"
         "VisualHostKey yes\nFingerprintHash md5\nCheckHostIP yes\nUpdateHostKeys no"),
    Case("security keys and tokens", True, "SecurityKeyProvider none\nPKCS11Provider none"),
    Case("a local command", True, "PermitLocalCommand yes\nLocalCommand true"),
    Case("an unknown option", False, "Frobnicate yes"),
    Case("an unknown option that is to be ignored", True, "IgnoreUnknown Frob*\nFrobnicate yes"),
)  # fmt: skip


@dataclass
class Laptop:
    """A folder with keys, lists of revoked keys and certificates, and the server they are for."""

    server: Sshd
    folder: Path

    @property
    def names(self) -> dict[str, str]:
        server, key = self.server, public(self.server.host_key)
        return {
            "F": str(self.folder), "port": str(server.port), "key": key, "blob": key.split()[1],
            "rsa": public(self.folder / "host_rsa"), "other": public(self.folder / "other"),
        }  # fmt: skip


def _revocations(folder: Path, key: Path, other: Path) -> None:
    (folder / "revoked.list").write_text(f"# gone\n\n{public(other)}\n{public(key)} who\n")
    (folder / "others.list").write_text(public(other) + "\n")
    (folder / "comment.list").write_text("# nothing\n")
    (folder / "broken.list").write_text(f"nonsense\n{public(other)}\n")
    (folder / "empty.list").touch()
    specs = {
        "sha1": f"sha1: {public(key)}\n", "sha256": f"sha256: {public(key)}\n",
        "serial": "serial: 5-9\n", "revoked": public(key) + "\n", "others": public(other) + "\n",
    }  # fmt: skip
    for name, text in specs.items():
        (folder / f"{name}.spec").write_text(text)
        authority = ["-s", f"{other}.pub"] if name == "serial" else []
        made = [str(folder / f"{name}.krl"), *authority, str(folder / f"{name}.spec")]
        subprocess.run(["ssh-keygen", "-q", "-k", "-f", *made], check=True)
    (folder / "cut.krl").write_bytes((folder / "revoked.krl").read_bytes()[:-9])


def _private_keys(folder: Path) -> list[Path]:
    """Keys in every form that OpenSSH reads; returns those that the server is to accept."""
    made = [new_key(folder / kind, kind=kind) for kind in ("rsa", "ecdsa")]
    for source, name, style, words in (
        ("rsa", "rsa.p8", "PKCS8", ""),
        ("rsa", "rsa.locked.p8", "PKCS8", "open sesame"),
        ("ecdsa", "ecdsa.p8", "PKCS8", ""),
        ("ecdsa", "ecdsa.pem", "PEM", ""),
    ):
        copy = folder / name
        copy.write_bytes((folder / source).read_bytes())
        copy.chmod(0o600)
        change = ["ssh-keygen", "-q", "-p", "-P", "", "-N", words, "-m", style, "-f", str(copy)]
        subprocess.run(change, check=True, capture_output=True)
    readable = new_key(folder / "open")
    readable.chmod(0o644)
    return [*made, readable]


def _named_by_tokens(laptop: Laptop, key: Path) -> None:
    """Links to `key` under names that only the tokens of ssh_config give."""
    server, me = laptop.server, getpass.getuser()
    ask = ["ssh", "-F", str(server.config), "-o", "ControlPath=/%C/%i/%L", "-G", "site"]
    table = subprocess.run(ask, check=True, capture_output=True, text=True).stdout
    path = next(line for line in table.splitlines() if line.startswith("controlpath "))
    digest, number, short = path.split(" /")[1].split("/")
    tokens = f"tokens-127.0.0.1-{server.port}-site-{me}-{number}-{me}-site-%-{short}"
    for name in (tokens, digest):
        (laptop.folder / name).write_bytes(key.read_bytes())
        (laptop.folder / name).chmod(0o600)


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    folder = tmp_path_factory.mktemp("laptop")
    rsa, authority = new_key(folder / "host_rsa", kind="rsa"), new_key(folder / "authority")
    limits = (
        "KexAlgorithms curve25519-sha256@libssh.org,diffie-hellman-group14-sha256",
        "Ciphers aes256-ctr,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com",
        "MACs hmac-sha2-512,hmac-sha2-256",
    )
    more = (f"HostKey {rsa}", f"TrustedUserCAKeys {authority}.pub", *limits)
    with running_sshd(tmp_path_factory.mktemp("parity"), *more) as server, agent(folder) as place:
        laptop = Laptop(server, folder)
        other, signed = new_key(folder / "other"), new_key(folder / "signed")
        certify(authority, signed).rename(folder / "signed-by-site.pub")
        held = new_key(folder / "held")
        add_to_agent(place, held)
        keys = _private_keys(folder)
        _revocations(folder, server.host_key, other)
        _named_by_tokens(laptop, folder / "rsa")
        server.allow(server.identity, held, *keys)
        limited = f'from="127.0.0.5" {public(new_key(folder / "from"))}\n'
        with (server.folder / "authorized").open("a") as file:
            file.write(limited)
        line = KNOWN.format_map(laptop.names)
        (folder / "global").write_text(line)
        (folder / "known-site").write_text(line)
        wrong = f"[127.0.0.1]:{server.port} {laptop.names['other']}\n"
        (folder / "global-other").write_text(wrong)
        (folder / "dial.py").write_text(DIAL)
        yield laptop


DIAL = """
import array, socket, sys
far = socket.create_connection((sys.argv[1], int(sys.argv[2])))
near = socket.socket(fileno=1)
socket.send_fds(near, [b"x"], [far.fileno()])
"""


@pytest.fixture(autouse=True)
def environment(laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUMITUI_PLACE", str(laptop.folder))
    monkeypatch.setenv("LUMITUI_AGENT", str(laptop.folder / "agent"))
    monkeypatch.delenv("LUMITUI_UNSET", raising=False)
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def _write(laptop: Laptop, case: Case) -> None:
    """Put the case's configuration in place; each client begins with the same known_hosts."""
    server = laptop.server
    server.configure(*case.lines.format_map(laptop.names).splitlines())
    if case.own_identity:
        text = server.config.read_text().replace(f"IdentityFile {server.identity}\n", "")
        server.config.write_text(text)
    server.known_hosts.write_text(case.known.format_map(laptop.names))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
def test_both_clients_accept_and_refuse_the_same(laptop: Laptop, case: Case) -> None:
    _write(laptop, case)
    theirs = by_openssh(laptop.server.config, case.person)
    kept = laptop.server.known_hosts.read_text()
    _write(laptop, case)
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


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
def test_without_openssh_lumitui_decides_the_same(
    laptop: Laptop, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumitui.remote.ssh.connection.has_openssh", lambda: False)
    _write(laptop, case)
    ours = by_lumitui(laptop.server.config, case.person)
    assert ours.accepted == (case.accepts and not case.stricter), ours.said


@pytest.mark.parametrize(("allowed", "accepts"), [("rsa-sha2-256", True), ("rsa-sha2-512", False)])
def test_an_rsa_key_signs_only_as_the_configuration_allows(
    tmp_path: Path, allowed: str, accepts: bool
) -> None:
    key = new_key(tmp_path / "rsa", kind="rsa")
    with running_sshd(tmp_path / "s", "PubkeyAcceptedAlgorithms rsa-sha2-256") as server:
        server.trust()
        server.allow(key)
        server.configure(f"IdentityFile {key}", f"PubkeyAcceptedAlgorithms {allowed}")
        assert by_openssh(server.config, NO).accepted == accepts
        assert by_lumitui(server.config, NO).accepted == accepts


def test_new_keys_are_made_during_a_transfer_as_often_as_the_configuration_says(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchanges: list[object] = []
    begin = paramiko.Transport._send_kex_init  # type: ignore[attr-defined]

    def counted(transport: paramiko.Transport) -> None:
        exchanges.append(transport)
        begin(transport)

    monkeypatch.setattr(paramiko.Transport, "_send_kex_init", counted)
    _write(laptop, Case("rekeying", True, "RekeyLimit 1M"))
    with closing(Ssh(laptop.server.login())) as connection:
        assert connection.run("wc -c", stdin=b"x" * 8_000_000).text.strip() == "8000000"
        assert len(connection.run("head -c 8000000 /dev/zero").out) == 8_000_000
    assert 8 < len(exchanges) < 40


def test_a_jump_host_has_a_configuration_of_its_own(laptop: Laptop, tmp_path: Path) -> None:
    """What is set for the jump host alone is held against it, and not against the site."""
    with running_sshd(tmp_path / "jump") as jump:
        jump.allow(laptop.server.identity)
        known = KNOWN.format_map(laptop.names)
        for line, accepts in (
            ("AddressFamily any", True),
            (f"RevokedHostKeys {jump.host_key}.pub", False),
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
