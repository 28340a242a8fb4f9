"""Certificates against a real sshd: a person's (valid, expired ...), in files and in the agent."""

import base64
import hashlib
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.connection import Ssh
from lumitui.remote.ssh.keyring import certificate_objection
from tests.support.servers.keys import add, agent, certify, field
from tests.support.servers.sshd import (
    Answers,
    Sshd,
    fingerprint,
    logs_in,
    new_key,
    public,
    running_sshd,
)

DAY = 86400


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_key(tmp_path_factory.mktemp("authority") / "authority")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, authority: Path) -> Iterator[Sshd]:
    folder = tmp_path_factory.mktemp("certified")
    with running_sshd(folder, f"TrustedUserCAKeys {authority}.pub") as server:
        server.allow()  # no key is known but through its certificate
        yield server


@pytest.fixture
def server(shared: Sshd) -> Sshd:
    shared.configure()
    shared.trust()
    return shared


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_a_valid_certificate(server: Sshd, authority: Path, tmp_path: Path, kind: str) -> None:
    key = new_key(tmp_path / "key", kind=kind)
    certify(authority, key, "-V", "-1d:+1d")
    server.configure(f"IdentityFile {key}")
    logs_in(server.connect())


@pytest.mark.parametrize(
    ("more", "name", "said"),
    [
        (("-V", "20010101:20010102"), "", "key-cert.pub expired on 2001-01-02 00:00"),
        (("-V", "20660101:20660102"), "", "is not valid before 2066-01-01 00:00"),
        ((), "somebody,other", "is for somebody, other, not for "),
    ],
)
def test_a_certificate_that_will_not_do_says_why(
    server: Sshd, authority: Path, tmp_path: Path, more: tuple[str, ...], name: str, said: str
) -> None:
    key = new_key(tmp_path / "key")
    certify(authority, key, *more, name=name)
    server.configure(f"IdentityFile {key}")
    with pytest.raises(LinkError, match=said) as raised:
        server.connect().run("true")
    assert "Get a new certificate" in raised.value.hint


@pytest.mark.parametrize("certified", [True, False])
def test_a_site_that_says_how_to_renew_is_quoted(
    server: Sshd, authority: Path, tmp_path: Path, certified: bool
) -> None:
    key = new_key(tmp_path / "key")
    if certified:
        certify(authority, key, "-V", "20010101:20010102")
    server.configure(f"IdentityFile {key}")
    server.trust()
    login = replace(server.login(), renew="Run get-certificate once a day.")
    with pytest.raises(LinkError) as raised:
        Ssh(login).run("true")
    assert "Run get-certificate once a day." in raised.value.hint
    assert "where the site gives them out" not in raised.value.hint


@pytest.mark.parametrize(("days", "said"), [("-1d:+1d", ""), ("20010101:20010102", "expired on")])
def test_a_certificate_in_the_agent(
    server: Sshd, authority: Path, tmp_path: Path, days: str, said: str
) -> None:
    key = new_key(tmp_path / "key")
    certificate = certify(authority, key, "-V", days)
    with agent(tmp_path) as place:
        add(place, key)
        for path in (key, certificate):
            path.unlink()
        server.configure(f"IdentityAgent {place}", "IdentitiesOnly no", f"IdentityFile {key}")
        connection = server.connect()
        if said:
            with pytest.raises(LinkError, match=said):
                connection.run("true")
        else:
            assert connection.run("echo in").text == "in\n"
        connection.close()


def test_a_certificate_with_a_name_of_its_own(
    server: Sshd, authority: Path, tmp_path: Path
) -> None:
    key = new_key(tmp_path / "key")
    own = certify(authority, key).rename(tmp_path / "from the site.pub")
    server.configure(f"IdentityFile {key}", f'CertificateFile "{own}"')
    logs_in(server.connect())


def test_a_host_known_by_its_authority_needs_its_own_key_once(
    tmp_path: Path, authority: Path
) -> None:
    """The limit: the library negotiates no host certificates. It is said, and nothing is trusted
    on the authority's word."""
    host = tmp_path / "s" / "host_key"
    with running_sshd(tmp_path / "s", f"HostCertificate {host}-cert.pub") as server:
        command = ["ssh-keygen", "-q", "-h", "-s", str(authority), "-I", "host", f"{host}.pub"]
        subprocess.run(command, check=True)
        server.known_hosts.write_text(f"@cert-authority * {public(authority)}\n")
        refusing = Answers("no")
        with pytest.raises(LinkError, match="@cert-authority") as raised:
            Ssh(server.login(), refusing).run("true")
        assert "cannot check" in str(raised.value)
        (question,) = refusing.questions
        assert "@cert-authority" in question.text and fingerprint(host) in question.text
        logs_in(Ssh(server.login(fingerprint(host))))


def blob_of(public_file: Path) -> bytes:
    return base64.b64decode(public_file.read_text().split()[1])


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa"])
def test_the_certificate_of_a_hardware_key_is_read(
    authority: Path, tmp_path: Path, kind: str
) -> None:
    # A hardware key's public half is a plain one's with another type and one more field.
    plain, words = public(new_key(tmp_path / "key", kind=kind)).split()
    key = base64.b64decode(words).removeprefix(field(plain.encode()))
    name = f"sk-{plain}@openssh.com"
    blob = field(name.encode()) + key + field(b"ssh:")
    (tmp_path / "key.pub").write_text(f"{name} {base64.b64encode(blob).decode()} stick\n")
    signed = certify(authority, tmp_path / "key", "-V", "20010101:20010102", name="a,b")
    assert certificate_objection(blob_of(signed), "a").startswith("expired on 2001-01-0")
    signed = certify(authority, tmp_path / "key", name="a,b")
    assert certificate_objection(blob_of(signed), "b") == ""
    assert certificate_objection(blob_of(signed), "c") == "is for a, b, not for c"


def test_a_certificate_of_an_authority_on_a_hardware_key_is_read(
    authority: Path, tmp_path: Path
) -> None:
    signed = certify(authority, new_key(tmp_path / "key"), name="a")
    blob = blob_of(signed)
    own = field(blob_of(Path(f"{authority}.pub")))
    assert blob.count(own) == 1
    kind = b"sk-ssh-ed25519@openssh.com"
    # PROTOCOL.u2f: what a stick signs are two hashes, with its flags and its counter in between.
    stick, tail = Ed25519PrivateKey.generate(), b"\x01" + struct.pack(">I", 5)
    hardware = field(b"".join(map(field, (kind, stick.public_key().public_bytes_raw(), b"ssh:"))))
    other = blob[: blob.index(own)] + hardware
    hashes = (hashlib.sha256(part).digest() for part in (b"ssh:", other))
    other += field(field(kind) + field(stick.sign(tail.join(hashes))) + tail)
    for certificate in (blob, other):
        assert certificate_objection(certificate, "a") == ""
        assert certificate_objection(certificate, "b") == "is for a, not for b"


def test_what_is_no_certificate_is_not_objected_to() -> None:
    kind = b"ssh-ed25519-cert-v01@openssh.com"
    for blob in (b"", b"\xff" * 200, field(b"ssh-ed25519") + bytes(40), field(kind) + bytes(90)):
        assert certificate_objection(blob, "anybody") == ""


def test_a_certificate_without_names_or_end_is_for_all_and_for_ever(
    authority: Path, tmp_path: Path
) -> None:
    key = new_key(tmp_path / "key")
    command = ["ssh-keygen", "-q", "-s", str(authority), "-I", "all"]
    for valid, said in (
        ("always:forever", ""),
        ("20660101:forever", "not valid before 2066-01-01"),
    ):
        subprocess.run([*command, "-V", valid, f"{key}.pub"], check=True)
        assert said in certificate_objection(blob_of(Path(f"{key}-cert.pub")), "anybody")
